/* SPDX-License-Identifier: Apache-2.0 */
/* The host API: everything that a C program, or the Cython layer, includes to use plugins.
 *
 *     cuplug_operator *gather;
 *     cuplug_error error;
 *     if (cuplug_find("gather", &gather, &error)) return puts(error.message), 1;
 *     cuplug_argument args[] = {cuplug_array(&source), cuplug_array(&index), cuplug_array(&out)};
 *     if (cuplug_invoke(gather, args, 3, NULL, &error)) return puts(error.message), 1;
 *
 * Conventions. A function returns a cuplug_status and fills the error record when it is not
 * CUPLUG_OK; the record needs no preparation and may be NULL. Pointers are borrowed until the call
 * returns unless a sentence says otherwise. Operators live until the process ends. Nothing here
 * prints, exits or aborts.
 *
 * Tags: [thread-safe] any thread at any time; [no-cuda] never touches CUDA; [stream-ordered] puts
 * work on a stream and returns; [syncs] waits for the device.
 */
#ifndef CUPLUG_HOST_H
#define CUPLUG_HOST_H

#include <cuplug/plugin.h>

#define CUPLUG_VERSION "0.1.0"

#define CUPLUG_MAX_NDIM 64 /* dimensions of one array */
#define CUPLUG_MAX_NAME 64

CUPLUG__BEGIN_C

#define CUPLUG_ERROR_MESSAGE_BYTES 4080

/* An error record. It lies in the caller's frame. `status` is CUPLUG_OK while `message` is empty.
 */
typedef struct cuplug_error {
  int32_t status;         /* a cuplug_status */
  int32_t cuda_code;      /* the CUresult or cudaError_t behind ERROR_CUDA, else 0 */
  uint32_t message_bytes; /* room in `message`, the terminating zero included */
  uint32_t reserved;
  char message[CUPLUG_ERROR_MESSAGE_BYTES];
} cuplug_error;

#define CUPLUG_API __attribute__((visibility("default")))

/* The version of the loaded core, "0.1.0". [thread-safe] [no-cuda] */
CUPLUG_API const char *cuplug_version(void);
/* "ERROR_VALUE" for CUPLUG_ERROR_VALUE; NULL for a number that is no status. */
CUPLUG_API const char *cuplug_status_name(int status);

/* ---- Signatures ---------------------------------------------------------------------------- */

typedef enum cuplug_argument_kind {
  CUPLUG_ARGUMENT_ABSENT, /* not given: the default is taken */
  CUPLUG_ARGUMENT_ARRAY,
  CUPLUG_ARGUMENT_BOOL,     /* scalar.i */
  CUPLUG_ARGUMENT_INT,      /* scalar.i */
  CUPLUG_ARGUMENT_UINT,     /* scalar.u: an integer of 2^63 or more */
  CUPLUG_ARGUMENT_HUGE_INT, /* an integer beyond 64 bits; scalar.f: the nearest float64 */
  CUPLUG_ARGUMENT_FLOAT,    /* scalar.f */
  CUPLUG_ARGUMENT_COMPLEX,  /* scalar.c */
  CUPLUG_ARGUMENT_STRING,   /* scalar.s */
  CUPLUG_ARGUMENT_NONE,     /* Python's None */
  CUPLUG_ARGUMENT_LIST,     /* list: of arguments */
  CUPLUG_ARGUMENT_OTHER     /* scalar.s says what it is, for the error message */
} cuplug_argument_kind;

/* The name of the k-th dtype of CUPLUG_DTYPE_LIST, and the dtype; NULL and 0 past the last. */
CUPLUG_API const char *cuplug_dtype_name(uint32_t k);
CUPLUG_API uint32_t cuplug_dtype_id(uint32_t k);

/* ---- Operators ----------------------------------------------------------------------------- */

/* One operator: one or more rows of one plugin that share a name. Opaque; never freed. */
typedef struct cuplug_operator cuplug_operator;
/* One of its rows in the symbol table: <cuplug/listing.h>. */
typedef struct cuplug_row cuplug_row;

/* Finds an operator by "operator" or "plugin.operator". lib<operator>.so is looked up first,
 * without a scan; else the first plugin in search order that has the operator. Reads the table,
 * runs nothing. The same operator is returned every time. ERROR_NOT_FOUND lists the directories
 * looked in and near names. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_find(const char *name, cuplug_operator **op, cuplug_error *error);

/* The same before the program knows its own directories: looks only where cuplug_add_directory
 * cannot change what is found, and does not scan. *op is NULL, without an error, when it is not
 * there. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_find_early(const char *name, cuplug_operator **op, cuplug_error *error);

/* Registers the plugin in one file, ahead of the search path, whatever its file is called. Fills at
 * most `room` operators and sets their number. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_load(const char *path, cuplug_operator **ops, uint32_t room, uint32_t *n_ops,
                           cuplug_error *error);

/* What an operator is. Strings live until the process ends. [thread-safe] [no-cuda] */
typedef struct cuplug_operator_info {
  const char *name;
  const char *plugin;
  const char *version;
  const char *path;
  const char *architectures;
  uint32_t n_rows;
  int32_t loaded;
} cuplug_operator_info;
CUPLUG_API void cuplug_describe(const cuplug_operator *op, cuplug_operator_info *info);
/* Row k < n_rows of its table. */
CUPLUG_API const cuplug_row *cuplug_operator_row(const cuplug_operator *op, uint32_t k);

/* Loads the code now instead of at the first call, and checks the entries. Returns at once when
 * that is done. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_load_code(cuplug_operator *op, cuplug_error *error);

/* Takes in the file of an operator anew when it was replaced on disk, by another file renamed over
 * it, and loads the code beside the old, which stays. Sets `fresh` to the operator of that name,
 * the same one when nothing has changed. cuplug_find gives that one from then on; operators found
 * before go on with the old code. On an error nothing changes: the new file is broken or refused,
 * or has no such operator (ERROR_NOT_FOUND; its other operators are taken in). [thread-safe]
 * [no-cuda] */
CUPLUG_API int cuplug_reload(const cuplug_operator *op, cuplug_operator **fresh,
                             cuplug_error *error);

/* ---- Arguments ----------------------------------------------------------------------------- */

/* Properties of an array that its tensor cannot say. */
#define CUPLUG_READ_ONLY 1u
#define CUPLUG_BYTE_SWAPPED 2u /* of the other byte order: refused */
#define CUPLUG_MISALIGNED 4u   /* base or strides are no multiples of the element: needs a copy */
#define CUPLUG_ODD_STRIDES 8u  /* strides are no multiples: `strides` cannot say them */

struct cuplug_argument_list {
  const struct cuplug_argument *items;
  uint32_t n;
};

typedef struct cuplug_argument {
  uint32_t kind;
  uint32_t flags;
  union {
    cuplug_tensor tensor; /* strides NULL: C-contiguous. byte_offset is honoured */
    cuplug_scalar scalar;
    struct cuplug_argument_list list;
  };
} cuplug_argument;

static inline cuplug_argument cuplug_array(const cuplug_tensor *tensor) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_ARRAY, a.flags = 0, a.tensor = *tensor;
  return a;
}
static inline cuplug_argument cuplug_float(double value) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_FLOAT, a.flags = 0, a.scalar.f = value;
  return a;
}
static inline cuplug_argument cuplug_int(int64_t value) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_INT, a.flags = 0, a.scalar.i = value;
  return a;
}
static inline cuplug_argument cuplug_string(const char *value) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_STRING, a.flags = 0, a.scalar.s = value;
  return a;
}
static inline cuplug_argument cuplug_absent(void) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_ABSENT, a.flags = 0, a.scalar.u = 0;
  return a;
}

/* ---- One call ------------------------------------------------------------------------------ */

/* Told every 100 ms, and at the end of what took as long, how many bytes have been copied, both
 * ways together. Another status than CUPLUG_OK (or ERROR_MEMORY), with the error record filled,
 * ends the transfer. Called on the thread that called cuplug_run or cuplug_copy_watched. */
typedef int cuplug_progress(void *user, uint64_t done_bytes, uint64_t total_bytes,
                            cuplug_error *error);

/* bind, outputs from the arguments behind the parameters, run; for C programs. Of overloads with
 * different numbers of parameters, the one with n_args parameters and outputs says which are which.
 * `device` NULL: where the arrays are. [thread-safe] */
CUPLUG_API int cuplug_invoke(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                             const cuplug_device *device, cuplug_error *error);

CUPLUG__END_C

#include <cuplug/devices.h>
#include <cuplug/listing.h>
#endif

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

#define CUPLUG_MAX_TENSORS 32    /* arrays of one operator, outputs included */
#define CUPLUG_MAX_PARAMETERS 32 /* parameters of one operator, outputs not included */
#define CUPLUG_MAX_OUTPUTS 8
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
  CUPLUG_ARGUMENT_HUGE_INT, /* an integer beyond 64 bits */
  CUPLUG_ARGUMENT_FLOAT,    /* scalar.f */
  CUPLUG_ARGUMENT_COMPLEX,  /* scalar.c */
  CUPLUG_ARGUMENT_STRING,   /* scalar.s */
  CUPLUG_ARGUMENT_NONE,     /* Python's None */
  CUPLUG_ARGUMENT_OTHER     /* scalar.s says what it is, for the error message */
} cuplug_argument_kind;

typedef enum cuplug_parameter_kind {
  CUPLUG_PARAMETER_ARRAY,  /* x: T[n] */
  CUPLUG_PARAMETER_INOUT,  /* inout x: T[n] */
  CUPLUG_PARAMETER_SCALAR, /* a: T, a: float64, a: int */
  CUPLUG_PARAMETER_STRING, /* s: str */
  CUPLUG_PARAMETER_CHOICE, /* s: "a" | "b" */
  CUPLUG_PARAMETER_OUTPUT  /* -> T[n] */
} cuplug_parameter_kind;

typedef enum cuplug_dim_kind {
  CUPLUG_DIM_FIXED,    /* 3: `value` is the size */
  CUPLUG_DIM_NAMED,    /* n: `value` is its number among the signature's dimension names */
  CUPLUG_DIM_VARIADIC, /* *n: any number of dimensions, equal wherever n stands; `value` its number
                        */
  CUPLUG_DIM_LOOP,     /* ...: any number of dimensions, broadcast between arrays */
  CUPLUG_DIM_UNKNOWN   /* ?: known after the run; outputs only */
} cuplug_dim_kind;

typedef struct cuplug_dim {
  int32_t kind;
  int32_t reserved;
  int64_t value;
} cuplug_dim;

typedef struct cuplug_parameter {
  char name[CUPLUG_MAX_NAME]; /* outputs without a name: "" */
  int32_t kind;               /* a cuplug_parameter_kind */
  int32_t type_variable;      /* number in `variables`; -1 for strings and choices */
  int32_t n_dims;             /* length of `dims`; arrays only */
  int32_t has_default;
  cuplug_dim dims[16];
  int32_t default_kind; /* a cuplug_argument_kind: NONE (an array that may be left out), BOOL, INT,
                           UINT, FLOAT, STRING; for a choice INT, its number */
  int32_t n_choices;
  cuplug_scalar default_value; /* the member that default_kind says; a string lives with the
                                  signature */
  const char *default_text;    /* as written; NULL without; lives with the signature */
  const char *choices[8];      /* live with the signature */
} cuplug_parameter;

/* A type variable, or a dtype that stands for itself (then `name` is "" and one bit is set). */
typedef struct cuplug_type_variable {
  char name[CUPLUG_MAX_NAME];
  uint32_t dtypes; /* bit k: the k-th dtype of CUPLUG_DTYPE_LIST is allowed */
  uint32_t reserved;
} cuplug_type_variable;

/* A parsed signature. */
typedef struct cuplug_signature {
  char name[CUPLUG_MAX_NAME]; /* the operator */
  int32_t n_parameters;       /* parameters, outputs not included */
  int32_t n_outputs;
  int32_t n_variables;
  int32_t n_dim_names;
  cuplug_parameter parameters[CUPLUG_MAX_PARAMETERS + CUPLUG_MAX_OUTPUTS]; /* outputs last */
  cuplug_type_variable variables[16];
  char dim_names[24][CUPLUG_MAX_NAME]; /* of NAMED and VARIADIC dimensions */
  char text[512];                      /* what it was parsed from */
  char strings[1024];                  /* storage of default_text and choices */
} cuplug_signature;

/* Parses signature text. On an error `position` (may be NULL) is the byte offset of the place.
 * [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_parse_signature(const char *text, cuplug_signature *signature,
                                      uint32_t *position, cuplug_error *error);

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
/* Row k < n_rows: its table row, and its parsed signature. */
CUPLUG_API const cuplug_row *cuplug_operator_row(const cuplug_operator *op, uint32_t k);
CUPLUG_API const cuplug_signature *cuplug_operator_signature(const cuplug_operator *op, uint32_t k);

/* Loads the code now instead of at the first call, and checks the entries. Returns at once when
 * that is done. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_load_code(cuplug_operator *op, cuplug_error *error);

/* ---- Arguments ----------------------------------------------------------------------------- */

/* Properties of an array that its tensor cannot say. */
#define CUPLUG_READ_ONLY 1u
#define CUPLUG_BYTE_SWAPPED 2u /* of the other byte order: refused */
#define CUPLUG_MISALIGNED 4u   /* base or strides are no multiples of the element: needs a copy */
#define CUPLUG_ODD_STRIDES 8u  /* strides are no multiples: `strides` cannot say them */

typedef struct cuplug_argument {
  uint32_t kind;
  uint32_t flags;
  union {
    cuplug_tensor tensor; /* strides NULL: C-contiguous. byte_offset is honoured */
    cuplug_scalar scalar;
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

typedef struct cuplug_frame cuplug_frame;

/* Gives an output of unknown size its memory: sets tensor->data for tensor->shape, on
 * tensor->device. Returns a status. Called on the thread that called cuplug_run. */
typedef int cuplug_allocate(void *user, cuplug_frame *frame, uint32_t tensor, cuplug_error *error);

/* Told every 100 ms, and at the end of what took as long, how many bytes have been copied, both
 * ways together. Another status than CUPLUG_OK (or ERROR_MEMORY), with the error record filled,
 * ends the transfer. Called on the thread that called cuplug_run or cuplug_copy_watched. */
typedef int cuplug_progress(void *user, uint64_t done_bytes, uint64_t total_bytes,
                            cuplug_error *error);

/* One call under way, in the caller's stack frame. Filled by cuplug_bind; nothing in it needs to be
 * prepared or freed. Fields marked (set) may be set by the caller between bind and run. */
struct cuplug_frame {
  cuplug_operator *op;
  const cuplug_signature *signature; /* of the row that matched */
  uint32_t row;                      /* its number */
  uint32_t n_tensors;                /* arrays in signature order, then outputs */
  uint32_t n_inputs;                 /* tensors that are parameters: the outputs begin here */
  uint32_t n_scalars;
  uint32_t copy_mask; /* bit k: tensor k must be given as a C-contiguous, aligned copy */
  uint32_t odd_mask;  /* of these, those that cuplug_is_staged does not help: CUPLUG_ODD_STRIDES */
  cuplug_device home; /* where the arrays are; type 0: there is none */
  cuplug_device
      device;   /* (set) where to run, and after the run where it ran. Bind leaves the arrays'
                   GPU, or type 0: the host entry, unless the row has none or prefers CUDA */
  void *stream; /* (set) CUstream; NULL: the legacy default stream, and without arrays cuplug_run
                   waits for it */
  cuplug_allocate *allocate; /* (set) for outputs of unknown size */
  cuplug_progress *progress; /* (set) while host arrays go through the GPU; NULL: not wanted */
  void *user;                /* (set) the first argument of both */
  int32_t staged;            /* after the run: 1 when host arrays went through the GPU */
  uint32_t is_brief; /* 1: on the host it takes microseconds: keep locks, as Python's, around it */
  uint8_t parameter[CUPLUG_MAX_TENSORS];     /* parameter number of each tensor */
  cuplug_tensor tensors[CUPLUG_MAX_TENSORS]; /* outputs: (set) data; shape and dtype are filled */
  cuplug_scalar scalars[CUPLUG_MAX_PARAMETERS];
  int32_t loop_ndim; /* the broadcast shape of `...` */
  int64_t loop_shape[CUPLUG_MAX_NDIM];
  uint32_t n_stored;                                         /* words of `storage` in use */
  int64_t storage[CUPLUG_MAX_TENSORS * CUPLUG_MAX_NDIM * 2]; /* shapes and strides made here */
};

/* Matches arguments (in the order of the signature's parameters; missing ones at the end are
 * absent) against the operator's rows, the row used last first. Checks number, kinds, dtypes,
 * ranks, dimensions, layout, devices, ranges; converts scalars; computes the outputs' shapes and
 * dtypes.
 *
 * Where an input would have to be copied first (not C-contiguous, misaligned, or to be broadcast)
 * `copy_mask` says so and the caller either passes such copies (shapes from cuplug_wanted_shape) in
 * a second bind, or gives up: cuplug_run refuses a frame whose mask is not 0, unless
 * cuplug_is_staged says that the call goes through the GPU. In-out arrays are never copied but
 * refused. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_bind(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                           cuplug_frame *frame, cuplug_error *error);

/* 1 when the bound frame, with its `device` as it is now, will run on a GPU and its arrays are on
 * the host. They travel in parts, which are put in order on the way: copies need not be made.
 * [thread-safe] */
CUPLUG_API int cuplug_is_staged(const cuplug_frame *frame);

/* The shape that input tensor k of a bound frame must have after broadcasting. Returns its ndim.
 * [thread-safe] [no-cuda] */
CUPLUG_API int32_t cuplug_wanted_shape(const cuplug_frame *frame, uint32_t k,
                                       int64_t shape[CUPLUG_MAX_NDIM]);

/* Writes the copy of input tensor k that `copy_mask` asks for, in that shape; it is not in
 * `odd_mask`, and on the host. Large ones on several threads. [thread-safe] [no-cuda] */
CUPLUG_API void cuplug_copy_input(const cuplug_frame *frame, uint32_t k, void *to);

/* Takes `given` as output k (from 0): checks dtype, shape, layout, device, read-only, and that its
 * memory overlaps no input and no other output given. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_set_output(cuplug_frame *frame, uint32_t k, const cuplug_argument *given,
                                 cuplug_error *error);

/* Runs a bound frame whose outputs have memory. Host arrays with frame->device set to CUDA are
 * staged through the GPU [syncs]; host arrays otherwise run on the host entry before it returns;
 * device arrays are [stream-ordered]. A fault of an earlier asynchronous call is reported here,
 * with the name of its operator, before anything is run. [thread-safe] */
CUPLUG_API int cuplug_run(cuplug_frame *frame, cuplug_error *error);

/* bind, outputs from the arguments behind the parameters, run; for C programs. Of overloads with
 * different numbers of parameters, the one with n_args parameters and outputs says which are which.
 * `device` NULL: where the arrays are. [thread-safe] */
CUPLUG_API int cuplug_invoke(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                             const cuplug_device *device, cuplug_error *error);

CUPLUG__END_C

#include <cuplug/define.h>
#include <cuplug/devices.h>
#include <cuplug/jit.h>
#include <cuplug/listing.h>
#endif

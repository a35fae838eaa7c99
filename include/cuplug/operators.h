/* SPDX-License-Identifier: Apache-2.0 */
/* The host API of operators: found, loaded, called. Part of <cuplug/host.h>, which has its
 * conventions. */
#ifndef CUPLUG_OPERATORS_H
#define CUPLUG_OPERATORS_H

#include <cuplug/entry.h>

#define CUPLUG_MAX_NDIM 64 /* dimensions of one array */
#define CUPLUG_MAX_NAME 64

CUPLUG__BEGIN_C

#define CUPLUG_ERROR_MESSAGE_BYTES 4080

/** An error record, whose size never changes. It is in the caller's frame, and belongs to one
 * thread. `status` is CUPLUG_OK while `message` is empty. */
typedef struct cuplug_error {
  int32_t status;         /* a cuplug_status */
  int32_t cuda_code;      /* the CUresult or cudaError_t of ERROR_CUDA, else 0 */
  uint32_t message_bytes; /* room in `message`, the terminating zero included */
  uint32_t reserved;
  char message[CUPLUG_ERROR_MESSAGE_BYTES];
} cuplug_error;

#define CUPLUG_API __attribute__((visibility("default")))

/** The version of the loaded core, "0.1.0". [thread-safe] [no-cuda] */
CUPLUG_API const char *cuplug_version(void);
/** "ERROR_VALUE" for CUPLUG_ERROR_VALUE; NULL for a number that is not a status. [thread-safe]
 * [no-cuda] */
CUPLUG_API const char *cuplug_status_name(int status);

/* ---- Operators ----------------------------------------------------------------------------- */

/** One operator: one or more overloads of one plugin that share a name. Never freed.
 * <cuplug/describe.h> has the functions that describe it. */
typedef struct cuplug_operator cuplug_operator;
/** One overload of an operator: one note of a plugin's table. */
typedef struct cuplug_overload cuplug_overload;

/** Finds an operator by "operator" or "plugin.operator". lib<operator>.so is looked up first,
 * without a scan; else the first plugin in search order that has the operator. Reads the table,
 * runs nothing. The same operator is returned every time. ERROR_NOT_FOUND lists the directories
 * looked in and near names. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_find(const char *name, cuplug_operator **op, cuplug_error *error);

/** The same before the program knows its own directories: searches only directories whose results
 * cuplug_add_directory cannot change, and does not scan. If the operator is not found, *op is NULL,
 * without an error. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_find_early(const char *name, cuplug_operator **op, cuplug_error *error);

/** Registers the plugin in one file, ahead of the search path, whatever its file is called. Fills
 * at most `room` operators and sets their number, for which NULL is taken. ERROR_NOT_FOUND if there
 * is no such file, ERROR_PLUGIN if it is not a plugin or not trusted. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_load(const char *path, cuplug_operator **ops, uint32_t room, uint32_t *n_ops,
                           cuplug_error *error);

/** Loads the code now instead of at the first call, and checks the entries. Returns at once when
 * that is done. ERROR_PLUGIN if the file was changed, or cannot be loaded. [thread-safe] [loads]
 * [no-cuda] */
CUPLUG_API int cuplug_load_code(cuplug_operator *op, cuplug_error *error);

/** Reads the file of an operator again if another file was renamed over it, and loads the new code;
 * the old code stays loaded. Sets `fresh` to the operator of that name, which is the same one if
 * nothing has changed. cuplug_find returns that one from then on; operators found before keep the
 * old code. On an error nothing changes: the new file is broken or rejected, or has no such
 * operator (ERROR_NOT_FOUND; its other operators are reloaded). [thread-safe] [loads] [no-cuda] */
CUPLUG_API int cuplug_reload(const cuplug_operator *op, cuplug_operator **fresh,
                             cuplug_error *error);

/* ---- Arrays -------------------------------------------------------------------------------- */

/** A C-contiguous array in host memory. `shape` (ndim sizes, not checked here) and the memory are
 * borrowed for as long as the tensor is used. [thread-safe] [no-cuda] */
static inline cuplug_tensor cuplug_make_tensor(void *data, cuplug_type_id dtype, int32_t ndim,
                                               int64_t *shape) {
  cuplug_tensor x;
  x.data = data, x.device.type = CUPLUG_CPU, x.device.id = 0;
  x.ndim = ndim, x.shape = shape, x.strides = NULL, x.byte_offset = 0;
  x.dtype.code = (uint8_t)((uint32_t)dtype >> 24);
  x.dtype.bits = (uint8_t)((uint32_t)dtype >> 16);
  x.dtype.lanes = (uint16_t)dtype;
  return x;
}

/** The same in the memory of a GPU. [thread-safe] [no-cuda] */
static inline cuplug_tensor cuplug_make_cuda_tensor(void *data, cuplug_type_id dtype, int32_t ndim,
                                                    int64_t *shape, int32_t device) {
  cuplug_tensor x = cuplug_make_tensor(data, dtype, ndim, shape);
  x.device.type = CUPLUG_CUDA, x.device.id = device;
  return x;
}

/* ---- Handles ------------------------------------------------------------------------------- */

/** An object of a plugin that an operator `-> handle[tag]` has made. It fits the parameters with
 * that tag of operators of the same library, in calls that run on the device where it was made. A
 * forked child cannot use or close the handles of its parent. Handles that are open when the
 * process ends are not closed. */
typedef struct cuplug_handle cuplug_handle;

/** Closes a handle: later calls reject it. The plugin's function is called once: now, or, while
 * calls on other threads use the handle, at the end of the last one, on its thread; an error of the
 * function is then lost. Does nothing to a closed handle, or to NULL. The handle is closed also
 * after an error. [thread-safe] */
CUPLUG_API int cuplug_close_handle(cuplug_handle *handle, cuplug_error *error);

/** Closes a handle and frees it: no call uses it any more, and it is not used again. Returns what
 * closing it returned. NULL is taken. */
CUPLUG_API int cuplug_free_handle(cuplug_handle *handle, cuplug_error *error);

/** The properties of a handle: 1 if closed, its tag, the operator that made it, its device.
 * [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_handle_is_closed(const cuplug_handle *handle);
CUPLUG_API const char *cuplug_handle_tag(const cuplug_handle *handle);
CUPLUG_API const cuplug_operator *cuplug_handle_operator(const cuplug_handle *handle);
CUPLUG_API cuplug_device cuplug_handle_device(const cuplug_handle *handle);

/* ---- Arguments ----------------------------------------------------------------------------- */

typedef enum cuplug_argument_kind {
  CUPLUG_ARGUMENT_ABSENT, /* not given: the default is taken */
  CUPLUG_ARGUMENT_ARRAY,
  CUPLUG_ARGUMENT_BOOL,     /* scalar.i */
  CUPLUG_ARGUMENT_INT,      /* scalar.i */
  CUPLUG_ARGUMENT_UINT,     /* scalar.u: an integer of 2^63 or more */
  CUPLUG_ARGUMENT_HUGE_INT, /* an integer beyond 64 bits; scalar.f: the closest float64 */
  CUPLUG_ARGUMENT_FLOAT,    /* scalar.f */
  CUPLUG_ARGUMENT_COMPLEX,  /* scalar.c */
  CUPLUG_ARGUMENT_STRING,   /* scalar.s */
  CUPLUG_ARGUMENT_NONE,     /* Python's None */
  CUPLUG_ARGUMENT_LIST,     /* list: of arguments */
  CUPLUG_ARGUMENT_OTHER,    /* scalar.s describes it, for the error message */
  CUPLUG_ARGUMENT_HANDLE,   /* scalar.handle: a cuplug_handle */
  CUPLUG_ARGUMENT_DTYPE     /* scalar.dtype */
} cuplug_argument_kind;

/** Properties of an array that its tensor cannot represent. */
#define CUPLUG_READ_ONLY 1u
#define CUPLUG_BYTE_SWAPPED 2u /* of the other byte order: rejected */
#define CUPLUG_MISALIGNED 4u   /* base or strides are not multiples of the element: needs a copy */
#define CUPLUG_UNALIGNED_STRIDES 8u /* strides are not multiples, so `strides` cannot hold them */
/** Of a handle: scalar.handle is a cuplug_handle **, the place of a result. */
#define CUPLUG_NEW_HANDLE 16u

/** The items of a list argument: borrowed for as long as the argument is used. */
struct cuplug_argument_list {
  const struct cuplug_argument *items;
  uint32_t n;
};

/** One argument, whose size never changes. The functions below create each kind; all are
 * [thread-safe] [no-cuda]. */
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
  const uint32_t is_complex = tensor->dtype.code == CUPLUG_COMPLEX64 >> 24;
  const uintptr_t alignment = (uintptr_t)cuplug_element_bytes(tensor) >> is_complex;
  const uintptr_t address = (uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset;
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_ARRAY, a.tensor = *tensor;
  a.flags = alignment && address % alignment ? CUPLUG_MISALIGNED : 0;
  return a;
}
/** An array that must not be written: it is rejected as an output and for `inout`. */
static inline cuplug_argument cuplug_read_only_array(const cuplug_tensor *tensor) {
  cuplug_argument a = cuplug_array(tensor);
  a.flags |= CUPLUG_READ_ONLY;
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
static inline cuplug_argument cuplug_uint(uint64_t value) {
  cuplug_argument a;
  a.kind = value >> 63 ? CUPLUG_ARGUMENT_UINT : CUPLUG_ARGUMENT_INT, a.flags = 0;
  a.scalar.u = value;
  return a;
}
static inline cuplug_argument cuplug_bool(int value) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_BOOL, a.flags = 0, a.scalar.i = value != 0;
  return a;
}
static inline cuplug_argument cuplug_complex(double real, double imaginary) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_COMPLEX, a.flags = 0;
  a.scalar.c[0] = real, a.scalar.c[1] = imaginary;
  return a;
}
/** UTF-8, zero-terminated; also the name of a choice, and of a dtype. NULL is None. */
static inline cuplug_argument cuplug_string(const char *value) {
  cuplug_argument a;
  a.kind = value ? CUPLUG_ARGUMENT_STRING : CUPLUG_ARGUMENT_NONE, a.flags = 0, a.scalar.s = value;
  return a;
}
static inline cuplug_argument cuplug_none(void) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_NONE, a.flags = 0, a.scalar.u = 0;
  return a;
}
/** A list of n numbers or arrays. */
static inline cuplug_argument cuplug_list_argument(const cuplug_argument *items, uint32_t n) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_LIST, a.flags = 0, a.list.items = items, a.list.n = n;
  return a;
}
/** A handle, for a parameter of type handle[tag]. */
static inline cuplug_argument cuplug_handle_argument(cuplug_handle *handle) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_HANDLE, a.flags = 0, a.scalar.handle = handle;
  return a;
}
/** A dtype, for a parameter of type dtype. [thread-safe] [no-cuda] */
static inline cuplug_argument cuplug_dtype_argument(cuplug_type_id dtype) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_DTYPE, a.flags = 0, a.scalar.u = 0;
  a.scalar.dtype.code = (uint8_t)((uint32_t)dtype >> 24);
  a.scalar.dtype.bits = (uint8_t)((uint32_t)dtype >> 16);
  a.scalar.dtype.lanes = (uint16_t)dtype;
  return a;
}
/** The destination of the result of an operator `-> handle[tag]`, instead of its output. After an
 * error it has no valid contents. */
static inline cuplug_argument cuplug_new_handle(cuplug_handle **place) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_HANDLE, a.flags = CUPLUG_NEW_HANDLE, a.scalar.handle = place;
  return a;
}
/** Not given: a parameter has its default, an output is allocated, and an optional output is not
 * computed: pass cuplug_bool(1) instead to have it computed and allocated. */
static inline cuplug_argument cuplug_absent(void) {
  cuplug_argument a;
  a.kind = CUPLUG_ARGUMENT_ABSENT, a.flags = 0, a.scalar.u = 0;
  return a;
}

/* ---- One call ------------------------------------------------------------------------------ */

/** Allocates an output. Called for each output that was not given, whether its size is known before
 * the run or only during it, on the thread that called cuplug_invoke; never while a lock is held.
 * `output` counts from 0. `tensor` has dtype, device, ndim and shape, C-contiguous unless it has
 * strides, as outputs that are `like` an input (without gaps, in the same number of bytes): set
 * `data`, which may stay NULL for an output without elements, and return CUPLUG_OK. Memory of a GPU
 * must be usable by work on the call's stream. `tensor->shape` may be read only during this call.
 *
 * Any other result becomes the status of cuplug_invoke, or CUPLUG_ERROR_MEMORY if it is not a
 * status; `error`, never NULL, may be filled, otherwise a message is written. CUPLUG_OK without
 * memory is ERROR_VALUE. Memory that was allocated for a failed call belongs to the program. */
typedef int cuplug_allocate_output(void *user, uint32_t output, cuplug_tensor *tensor,
                                   cuplug_error *error);

/** Called every 100 ms, and at the end of a transfer of at least this time, with the number of
 * bytes copied, both ways together. A status other than CUPLUG_OK (or ERROR_MEMORY), with the error
 * record filled, ends the transfer. With total_bytes 0, an entry requests whether to continue:
 * cuplug_interrupted. Called on the thread of cuplug_invoke or cuplug_copy_with_progress. */
typedef int cuplug_progress(void *user, uint64_t done_bytes, uint64_t total_bytes,
                            cuplug_error *error);

/** Instead of a GPU's number, for arrays of the host: a call is split along its loop dimensions,
 * and runs on all GPUs. A call that cannot be split is rejected. */
#define CUPLUG_ALL_GPUS (-1)

/** How a call is made; cuplug_default_options() and then what differs. */
typedef struct cuplug_options {
  uint32_t struct_bytes; /* sizeof(cuplug_options) */
  uint32_t reserved;     /* 0 */
  cuplug_device device;  /* where to run; type 0: where the arrays are, and on the host
                            entry for arrays of the host unless the overload prefers CUDA */
  void *stream;          /* CUstream or cudaStream_t for arrays of a GPU; NULL: the legacy
                            default stream, which a call without arrays waits for */
  cuplug_allocate_output *allocate; /* NULL: all outputs are given */
  cuplug_progress *progress;        /* for offloaded host arrays, and cuplug_interrupted of an
                                       entry; may be NULL */
  void *user;                       /* the first argument of both functions */
} cuplug_options;

/** [thread-safe] [no-cuda] */
static inline cuplug_options cuplug_default_options(void) {
  cuplug_options o;
  o.struct_bytes = sizeof o, o.reserved = 0;
  o.device.type = 0, o.device.id = 0, o.stream = NULL;
  o.allocate = NULL, o.progress = NULL, o.user = NULL;
  return o;
}

/** Calls an operator. `args` are its parameters in the order of the signature, then its outputs;
 * those missing at the end are absent. Overloads with different numbers of parameters are told
 * apart by n_args, the number of parameters and outputs: name all outputs there. `options` NULL:
 * the defaults.
 *
 * On the host the outputs are written when it returns. Arrays of the host that go through a GPU
 * too [syncs]; with arrays of a GPU the work is on the stream then [stream-ordered], and the arrays
 * must live until it is done. A fault of an earlier call of this thread on a GPU is raised here,
 * with the name of its operator, before anything is run.
 *
 * Errors: ERROR_TYPE, ERROR_VALUE and ERROR_UNSUPPORTED for arguments, ERROR_PLUGIN for its code,
 * ERROR_MEMORY, ERROR_CUDA, and any that an entry reports. [thread-safe] [loads] */
CUPLUG_API int cuplug_invoke(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                             const cuplug_options *options, cuplug_error *error);

/** Computes the outputs of a call with these arguments: nothing is loaded or run, and arrays may
 * have no memory (data NULL). Sets `overload` to the number of the one that takes them. Fills at
 * most *n_outputs outputs, whose shapes are in `sizes`, and sets *n_outputs to their number: dtype,
 * device (type 0 without array inputs), ndim, shape, with -1 for a size that is known after the
 * run; data is NULL. Rejects the same arguments as cuplug_invoke. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_infer(cuplug_operator *op, const cuplug_argument *args, uint32_t n_args,
                            uint32_t *overload, cuplug_tensor *outputs,
                            int64_t (*sizes)[CUPLUG_MAX_NDIM], uint32_t *n_outputs,
                            cuplug_error *error);

CUPLUG__END_C

#endif

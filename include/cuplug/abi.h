/* SPDX-License-Identifier: Apache-2.0 */
/* The structures and numbers of the plugin ABI; docs/abi.md describes them byte by byte. Part of
 * <cuplug/plugin.h>. */
#ifndef CUPLUG_ABI_H
#define CUPLUG_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CUPLUG_ABI_MAJOR 2
#define CUPLUG_ABI_MINOR 0
#define CUPLUG_ABI_VERSION (((uint32_t)CUPLUG_ABI_MAJOR << 16) | CUPLUG_ABI_MINOR)

#ifdef __cplusplus
#define CUPLUG__EXTERN_C extern "C"
#define CUPLUG__BEGIN_C extern "C" {
#define CUPLUG__END_C }
#else
#define CUPLUG__EXTERN_C extern
#define CUPLUG__BEGIN_C
#define CUPLUG__END_C
#endif
#define CUPLUG__MUST_USE __attribute__((warn_unused_result))

CUPLUG__BEGIN_C

/* ---- Status -------------------------------------------------------------------------------- */

/** X(name, value, meaning). Values are spaced, pinned and never reused. */
#define CUPLUG_STATUS_LIST(X)                                                             \
  X(OK, 0, "success")                                                                     \
  X(ERROR_VALUE, 100, "an argument's value, shape or layout is wrong")                    \
  X(ERROR_TYPE, 200, "an argument's type or dtype is wrong, or the arguments' number is") \
  X(ERROR_INDEX, 300, "an index is out of range")                                         \
  X(ERROR_MEMORY, 400, "memory ran out")                                                  \
  X(ERROR_CUDA, 500, "the CUDA driver or runtime reported an error")                      \
  X(ERROR_PLUGIN, 600, "a plugin is broken, incompatible or was refused")                 \
  X(ERROR_NOT_FOUND, 700, "no plugin or operator of that name")                           \
  X(ERROR_COMPILE, 800, "a compiler refused a source, or there is none")                  \
  X(ERROR_CANCELLED, 900, "the caller ended it before it was done")                       \
  X(ERROR_UNSUPPORTED, 1000, "these arguments, or this device, are not supported")

typedef enum cuplug_status {
#define CUPLUG__X(name, value, meaning) CUPLUG_##name = value,
  CUPLUG_STATUS_LIST(CUPLUG__X)
#undef CUPLUG__X
} cuplug_status;

/* ---- Arrays and scalars -------------------------------------------------------------------- */

/** Device types and type codes are DLPack's (https://dmlc.github.io/dlpack), version 1. */
#define CUPLUG_CPU 1
#define CUPLUG_CUDA 2
#define CUPLUG_CUDA_HOST 3
#define CUPLUG_CUDA_MANAGED 13

typedef struct cuplug_device {
  int32_t type; /* in a call CPU or CUDA; arrays may also be CUDA_HOST, CUDA_MANAGED */
  int32_t id;   /* ordinal, from 0 */
} cuplug_device;

typedef struct cuplug_dtype {
  uint8_t code, bits;
  uint16_t lanes;
} cuplug_dtype;

/** X(name, NAME, DLPack type code, bits, lanes, minor): all dtypes, in this list only. Names follow
 * the Python Array API, ml_dtypes and PyTorch; `minor` is the ABI version 2.minor that added the
 * dtype. Two lanes are packed in one byte, the first in its low bits. New dtypes are added at the
 * end, with a new CUPLUG_ABI_MINOR. */
#define CUPLUG_DTYPE_LIST(X)                         \
  X(bool, BOOL, 6, 8, 1, 0)                          \
  X(int8, INT8, 0, 8, 1, 0)                          \
  X(int16, INT16, 0, 16, 1, 0)                       \
  X(int32, INT32, 0, 32, 1, 0)                       \
  X(int64, INT64, 0, 64, 1, 0)                       \
  X(uint8, UINT8, 1, 8, 1, 0)                        \
  X(uint16, UINT16, 1, 16, 1, 0)                     \
  X(uint32, UINT32, 1, 32, 1, 0)                     \
  X(uint64, UINT64, 1, 64, 1, 0)                     \
  X(float16, FLOAT16, 2, 16, 1, 0)                   \
  X(bfloat16, BFLOAT16, 4, 16, 1, 0)                 \
  X(float32, FLOAT32, 2, 32, 1, 0)                   \
  X(float64, FLOAT64, 2, 64, 1, 0)                   \
  X(complex64, COMPLEX64, 5, 64, 1, 0)               \
  X(complex128, COMPLEX128, 5, 128, 1, 0)            \
  X(float8_e4m3fn, FLOAT8_E4M3FN, 10, 8, 1, 0)       \
  X(float8_e5m2, FLOAT8_E5M2, 12, 8, 1, 0)           \
  X(float8_e4m3fnuz, FLOAT8_E4M3FNUZ, 11, 8, 1, 0)   \
  X(float8_e5m2fnuz, FLOAT8_E5M2FNUZ, 13, 8, 1, 0)   \
  X(float8_e8m0fnu, FLOAT8_E8M0FNU, 14, 8, 1, 0)     \
  X(float4_e2m1fn_x2, FLOAT4_E2M1FN_X2, 17, 4, 2, 0) \
  X(int4_x2, INT4_X2, 0, 4, 2, 0)                    \
  X(uint4_x2, UINT4_X2, 1, 4, 2, 0)

/** One number for each dtype, to switch on: switch (cuplug_type(x)) { case CUPLUG_FLOAT32: ... } */
#define CUPLUG_TYPE(code, bits, lanes) \
  (((uint32_t)(code) << 24) | ((uint32_t)(bits) << 16) | (uint32_t)(lanes))
typedef enum cuplug_type_id {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  CUPLUG_##NAME = ((code) << 24) | ((bits) << 16) | (lanes),
  CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
} cuplug_type_id;

/* The place of each dtype in the list, and their number. */
enum cuplug__dtype_place {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) CUPLUG__PLACE_OF_##NAME,
  CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
      CUPLUG__N_DTYPES
};

/** An array, laid out as DLPack's DLTensor. In a call: `data` is aligned as C aligns elements, no
 * more; `byte_offset` is 0; `strides` (in elements) is NULL, meaning C-contiguous, unless the
 * overload has CUPLUG_TAKES_STRIDES, when it is never NULL, or CUPLUG_CUDA_TAKES_STRIDES; an
 * omitted optional array or output has `ndim` -1 and `data` NULL. Outputs share memory with no
 * other array. */
typedef struct cuplug_tensor {
  void *data;
  cuplug_device device;
  int32_t ndim;
  cuplug_dtype dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} cuplug_tensor;

/** A list argument, `int[]`, `float[]`, `T[n][]` or `T[n][each]`: int64_t, double or cuplug_tensor,
 * n of them. Tensors of lists `T[n][each]`, and of calls with more than 64 arrays, are not among
 * call->tensors. */
typedef struct cuplug_items {
  const void *items;
  int64_t n;
} cuplug_items;

/** A scalar or a list: the declaration decides which member holds it. */
typedef union cuplug_scalar {
  double f;           /* floating dtypes, rounded to nothing narrower than float64 */
  int64_t i;          /* bool and signed integers; a choice ("a" | "b"): its number, from 0 */
  uint64_t u;         /* unsigned integers */
  double c[2];        /* complex: real and imaginary part */
  const char *s;      /* str: UTF-8, zero-terminated */
  void *handle;       /* handle[tag]: what cuplug_set_handle was given */
  cuplug_dtype dtype; /* a parameter of type dtype */
  cuplug_items list;
} cuplug_scalar;

/* ---- Calls --------------------------------------------------------------------------------- */

typedef struct cuplug_fault cuplug_fault; /* <cuplug/fault.h> */
typedef struct cuplug_call cuplug_call;

/** How a kernel is launched. */
typedef struct cuplug_grid {
  uint32_t blocks[3];
  uint32_t threads[3];   /* of a block */
  uint32_t shared_bytes; /* dynamic ones, of each block */
  uint32_t flags;        /* CUPLUG_COOPERATIVE ... */
  uint32_t cluster[3];   /* blocks of a cluster; 0: no clusters */
  uint32_t reserved;
} cuplug_grid;

#define CUPLUG_COOPERATIVE 1u  /* its blocks may wait for each other */
#define CUPLUG_PROGRAMMATIC 2u /* may begin while the kernel ahead runs: programmatic launch */

/** Items `begin` to `end` - 1 of a parallel loop. Returns CUPLUG_OK, or the result of cuplug_fail:
 * ranges that have not begun are then skipped. */
typedef int cuplug_body(void *context, int64_t begin, int64_t end);

/** The services of the host for an entry. The process has one table; it grows at its end, so
 * CUPLUG_HAS_FIELD(call->services, field) tests for fields newer than ABI 2.0. <cuplug/entry.h> has
 * and documents a function for each. */
typedef struct cuplug_services {
  uint32_t struct_bytes; /* the bytes that the host set */
  uint32_t reserved;
  int (*fail)(const cuplug_call *call, int status, int cuda_code, const char *text);
  void *(*workspace)(const cuplug_call *call, uint64_t bytes);
  int (*output)(const cuplug_call *call, uint32_t tensor, const int64_t *shape);
  /* `kernel`: a CUkernel, CUfunction or cudaKernel_t; `arguments`: a pointer to each */
  int (*launch)(const cuplug_call *call, void *kernel, const cuplug_grid *grid, void **arguments);
  int (*parallel)(const cuplug_call *call, int64_t n, int64_t grain, cuplug_body *body,
                  void *context);
  int (*threads)(const cuplug_call *call);
  int (*interrupted)(const cuplug_call *call);
  int (*device_attribute)(const cuplug_call *call, int32_t attribute, int64_t *value);
  void *(*second_stream)(const cuplug_call *call);
  int (*set_handle)(const cuplug_call *call, void *handle);
} cuplug_services;

/** One call of an entry. Everything is borrowed until the entry returns. */
struct cuplug_call {
  uint32_t struct_bytes; /* the bytes that the host set: CUPLUG_HAS_FIELD tests against it */
  uint32_t abi_version;  /* the host's CUPLUG_ABI_VERSION */
  cuplug_device device;  /* where to run; for CUDA it is the current device */
  void *stream;          /* CUstream or cudaStream_t to launch on, never NULL; NULL on the host */
  const cuplug_tensor *tensors; /* array parameters in signature order, then those in lists that
                                   are short, then outputs */
  const cuplug_tensor *outputs; /* a part of `tensors` */
  const cuplug_scalar *scalars; /* the other parameters in signature order, lists included */
  uint64_t none_mask;           /* bit k: scalar k is None */
  uint32_t n_tensors, n_scalars;
  cuplug_fault *fault; /* for kernels; NULL on the host */
  const cuplug_services *services;
  void *run;              /* the host's own */
  uint32_t max_threads;   /* of an entry on the host; 0: no limit. 1 in a forked child */
  uint32_t n_inputs;      /* tensors that are not outputs: `outputs` is `tensors` + n_inputs */
  uint64_t supplied_mask; /* bit k: the caller supplied the memory of output k */
  void *state;            /* what CUPLUG_STATE made for this device; NULL without */
  void *context;          /* of an operator that was made in memory; NULL for a plugin's */
};

/** The one type of all entry points. Returns CUPLUG_OK or what cuplug_fail returned. */
typedef int cuplug_entry(const cuplug_call *call);

#define CUPLUG_ENTRY CUPLUG__EXTERN_C __attribute__((visibility("default")))

#define CUPLUG_HAS_FIELD(object, field) \
  ((object)->struct_bytes >=            \
   (size_t)((const char *)(&(object)->field + 1) - (const char *)(object)))

/* ---- Notes ---------------------------------------------------------------------------------- */

/** A note: ELF's header of a note, the owner "cuplug", and text: zero-terminated strings
 * "key=value", consecutive. Readers skip unknown keys; a key that begins with "!" must be known. */
#define CUPLUG_NOTE_OWNER "cuplug\0"
#define CUPLUG_NOTE_PLUGIN 0x70756332u   /* "2cup" in memory */
#define CUPLUG_NOTE_OPERATOR 0x6f756332u /* "2cuo" */
#define CUPLUG_MAX_SIGNATURE 65535       /* bytes */

CUPLUG__END_C

#endif

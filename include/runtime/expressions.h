/* SPDX-License-Identifier: Apache-2.0 */
/* Operators whose code is compiled at the first use: the entries for cuplug_define, and their
 * requests to the compiler. The tags are those of <cuplug/host.h>; entries are [thread-safe]. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_H
#define CUPLUG_RUNTIME_EXPRESSIONS_H

#include <runtime/define.h>

CUPLUG__BEGIN_C

/* The variant of the code. Compared byte by byte. */
typedef struct cuplug_variant {
  uint64_t still;  /* CUDA, element-wise: bit k: array k is broadcast in the last dimension */
  uint64_t fixed;  /* CUDA reductions: bit k: array k is broadcast along the reduced loop */
  uint64_t near;   /* CUDA element-wise, by segments: bit k: array k is unit-stride there */
  uint64_t across; /* CUDA element-wise, by tiles: bit k: array k goes through a tile */
  int32_t device;  /* number of a GPU; -1: the host */
  uint32_t types[CUPLUG_MAX_ARGUMENTS]; /* dtype of each array, a cuplug_type_id */
  uint8_t n_arrays;
  uint8_t width;     /* CUDA: elements of an array that are loaded at once */
  uint8_t unroll;    /* CUDA: number of such loads per thread */
  uint8_t ndim;      /* CUDA: dimensions of the outputs' loop; 0: all arrays are contiguous */
  uint8_t n_reduced; /* CUDA: dimensions of the reduced loop */
  uint8_t wide;      /* CUDA: 1: elements must be numbered with 64 bits */
  uint8_t columns;   /* CUDA: 1: a thread has its own outputs; 0: threads share outputs */
  uint8_t alone;     /* CUDA: 1: no thread shares outputs with another */
  uint8_t flat;      /* CUDA: 1: elements are contiguous, and begin and end anywhere */
  uint8_t few;       /* CUDA: 1: a segment has adjacent outputs; scans: blocks share segments */
  uint8_t stores;    /* CUDA: 1: a thread's outputs are stored as one pack */
  uint8_t walk;      /* CUDA element-wise: a cuplug_walk_kind */
} cuplug_variant;

typedef struct cuplug_code {
  void *function; /* host: by kind of operator, see <cuplug/loop.h>; CUDA: a CUfunction */
  /* CUDA reductions: the kernel that combines parts. Element-wise on the host: a sum of
   * CUPLUG_CODE_... */
  void *finish;
  uint32_t has_halves; /* set by the core: 1: float16 or bfloat16 are among the arrays */
} cuplug_code;

#define CUPLUG_CODE_FULL_GROUPS 1 /* the code requires complete groups of elements */
#define CUPLUG_CODE_RAW_HALVES 2  /* the code requires float16 and bfloat16 as stored */

/* Compiles. It is called once for each variant, or by several threads at once. Returns a status. */
typedef int cuplug_compile(void *user, const cuplug_variant *variant, cuplug_code *code,
                           cuplug_error *error);

/* The context of the entries below. Its owner zeroes it and sets the fields above `compiled`. */
typedef struct cuplug_source {
  cuplug_compile *compile;
  void *user;
  uint32_t in_order; /* 1: the code counts elements, so it must iterate over them in C order */
  uint32_t accumulator_bytes; /* reductions */
  uint32_t has_identity;      /* reductions and rows: 1: the result for no elements is defined */
  uint32_t strided_below;     /* reductions on the host: shorter rows are processed together */
  uint32_t n_outputs;         /* reductions, rows and scans */
  uint64_t raw;               /* element-wise: bit k: code indexes array k itself */
  uint32_t work;              /* element-wise, CUDA: functions such as exp per element */
  uint32_t n_sizes;
  const cuplug_term *sizes; /* element-wise: numbers that the code receives after the scalars */
  void *compiled;
} cuplug_source;

/* Entries of element-wise operators: overloads with CUPLUG_TAKES_STRIDES whose arrays all have one
 * shape; or, without that flag, overloads in which the arrays that are not `raw` have one shape,
 * and one array is not `raw`. They may imply their strides. The host's code is a
 * cuplug_loop_part. */
CUPLUG_API cuplug_entry cuplug_elementwise_host;
CUPLUG_API cuplug_entry cuplug_elementwise_cuda;

/* Entries of reductions: overloads with CUPLUG_TAKES_STRIDES and CUPLUG_NO_SPLIT whose arrays
 * have only the loop dimensions, and whose last two scalars are `axis: int[] = None` (negative
 * numbers count from the end; None: all) and `keepdims: bool = False`. */
CUPLUG_API cuplug_entry cuplug_reduction_host;
CUPLUG_API cuplug_entry cuplug_reduction_cuda;
CUPLUG_API cuplug_reshape cuplug_reduction_reshape;

/* Entries of functions of rows: overloads with CUPLUG_TAKES_STRIDES and CUPLUG_NO_SPLIT whose
 * inputs have the loop dimensions and one more, of size n or 1, and whose outputs have these or
 * only the loop dimensions. */
CUPLUG_API cuplug_entry cuplug_rows_host;
CUPLUG_API cuplug_entry cuplug_rows_cuda;

/* Entries of scans: rows as above, whose last scalar is `axis: int = -1`. */
CUPLUG_API cuplug_entry cuplug_scan_host;
CUPLUG_API cuplug_entry cuplug_scan_cuda;

typedef enum cuplug_kernel_argument_kind {
  CUPLUG_KERNEL_ARGUMENT_ARRAY,  /* address of array `operand` */
  CUPLUG_KERNEL_ARGUMENT_SCALAR, /* scalar `operand` as a value of `type` */
  CUPLUG_KERNEL_ARGUMENT_NUMBER, /* a formula as a value of `type` */
  CUPLUG_KERNEL_ARGUMENT_FAULT,  /* the call's fault record */
  CUPLUG_KERNEL_ARGUMENT_CALL    /* the call; only for functions, which always have it */
} cuplug_kernel_argument_kind;

/* Parameters of a kernel, or of a function. */
#define CUPLUG_MAX_PASSES 80

/* The value of one parameter. */
typedef struct cuplug_kernel_argument {
  int32_t kind; /* a cuplug_kernel_argument_kind */
  int32_t operand;
  uint32_t type; /* type of the parameter: a cuplug_type_id */
  /* Size of the elements of an array parameter if they are structures, else 0. */
  uint16_t unit_bytes;
  uint16_t unit_alignment;
  cuplug_term number; /* set for all kinds */
} cuplug_kernel_argument;

/* The call of the code: cuplug_code.finish, which `compile` creates for the entries below. The
 * sizes are those of a kernel's launch. Never freed. */
typedef struct cuplug_launch_plan {
  cuplug_term grid[3]; /* blocks; if `per_thread`, threads, in blocks of block[0] */
  cuplug_term block[3];
  cuplug_term shared_bytes;
  const cuplug_kernel_argument *passes;
  uint32_t n_passes;
  uint32_t per_thread;
} cuplug_launch_plan;

/* Calls the function for the host. `numbers` has the value of each argument that is a
 * CUPLUG_KERNEL_ARGUMENT_NUMBER, at its position among the arguments. Returns a status. */
typedef int cuplug_host_function(const cuplug_call *call, const int64_t *numbers);

/* The entries of operators with one kernel and one function: cuplug_code.function is a CUfunction,
 * or a cuplug_host_function. */
CUPLUG_API cuplug_entry cuplug_kernel_cuda;
CUPLUG_API cuplug_entry cuplug_function_host;

CUPLUG__END_C
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code that was compiled at run time, and its kernels. Not installed. */
#ifndef CUPLUG_RUNTIME_JIT_H
#define CUPLUG_RUNTIME_JIT_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Machine code or PTX for the driver (CUDA 12.0 or newer). Opaque; never freed, because running
 * work may use it: a caller that loads the same thing repeatedly keeps the first result. */
typedef struct cuplug_image cuplug_image;
typedef struct cuplug_kernel cuplug_kernel;

/* Copies an image and loads it; `name` is for messages. [thread-safe] */
CUPLUG_API int cuplug_load_image(const void *image, uint64_t bytes, const char *name,
                                 cuplug_image **loaded, cuplug_error *error);

/* Returns the lowered names of the kernels, valid until the process exits. `n`: in, the capacity of
 * `names`; out, their number, 0 if the driver cannot report it (before CUDA 12.4). [thread-safe] */
CUPLUG_API int cuplug_list_kernels(cuplug_image *image, const char **names, uint32_t *n,
                                   cuplug_error *error);

/* Returns a kernel by its lowered name. `name` is for messages. It is never freed. ERROR_NOT_FOUND
 * if no such kernel exists. [thread-safe] */
CUPLUG_API int cuplug_find_kernel(cuplug_image *image, const char *lowered, const char *name,
                                  cuplug_kernel **kernel, cuplug_error *error);

/* Returns the memory of a __device__ or __constant__ variable on a GPU. ERROR_NOT_FOUND if no such
 * variable exists. [thread-safe] */
CUPLUG_API int cuplug_find_global(cuplug_image *image, const char *lowered, const char *name,
                                  int32_t device, void **pointer, uint64_t *bytes,
                                  cuplug_error *error);

#define CUPLUG_MAX_KERNEL_PARAMETERS 256

/* Returns the size in bytes of each parameter, read from the code on a GPU. `n`: in, the number
 * that the compiler reported, or -1 to query it, for which tools that trace the driver see one
 * rejected query; out, the number, or -1 if the driver cannot report it (before CUDA 12.4).
 * [thread-safe] */
CUPLUG_API int cuplug_kernel_parameters(cuplug_kernel *kernel, int32_t device,
                                        uint64_t sizes[CUPLUG_MAX_KERNEL_PARAMETERS], int32_t *n,
                                        cuplug_error *error);

typedef struct cuplug_kernel_info {
  int32_t max_threads;  /* per block */
  int32_t n_registers;  /* per thread */
  int32_t shared_bytes; /* static, per block */
  int32_t local_bytes;  /* per thread */
  int32_t constant_bytes;
  int32_t max_dynamic_shared_bytes; /* per block, with the device's opt-in */
  int32_t sizes[6];           /* the maximum x, y and z of a block on the GPU, then of a grid */
  int32_t n_processors;       /* of the GPU */
  int32_t compute_capability; /* 90 for 9.0 */
} cuplug_kernel_info;
CUPLUG_API int cuplug_query_kernel(cuplug_kernel *kernel, int32_t device, cuplug_kernel_info *info,
                                   cuplug_error *error);

/* Occupancy: the blocks, with a given number of threads, that a multiprocessor holds at once; the
 * block size of highest occupancy, and the blocks that fill the GPU. [thread-safe] */
CUPLUG_API int cuplug_max_active_blocks(cuplug_kernel *kernel, int32_t device, int32_t n_threads,
                                        uint64_t shared_bytes, int32_t *n_blocks,
                                        cuplug_error *error);
CUPLUG_API int cuplug_suggest_block(cuplug_kernel *kernel, int32_t device, uint64_t shared_bytes,
                                    int32_t *n_threads, int32_t *n_blocks, cuplug_error *error);

/* Allows launches with more than 48 KiB of shared memory per block. [thread-safe] */
CUPLUG_API int cuplug_opt_in_shared(cuplug_kernel *kernel, int32_t device, uint32_t bytes,
                                    cuplug_error *error);

/* Launches a kernel; `parameters` points to the value of each. A grid without blocks launches
 * nothing and is not an error. A fault of an earlier call is reported first. [thread-safe]
 * [stream-ordered] */
CUPLUG_API int cuplug_launch_kernel(cuplug_kernel *kernel, int32_t device, const cuplug_grid *grid,
                                    void *stream, void *const *parameters, cuplug_error *error);

/* The CUfunction of a kernel on a GPU, for the caller's own launches. [thread-safe] */
CUPLUG_API int cuplug_kernel_function(cuplug_kernel *kernel, int32_t device, void **function,
                                      cuplug_error *error);

CUPLUG__END_C
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of images. */
#ifndef CUPLUG_RUNTIME_KERNELS_KERNEL_H
#define CUPLUG_RUNTIME_KERNELS_KERNEL_H

#include "cuda/driver.h"
#include "cuda/gpus.h"

#include <runtime/jit.h>
#include <stdatomic.h>

struct cuplug_kernel {
  cuplug_kernel *next; /* next of the image's */
  cuplug_image *image;
  CUkernel handle;
  char *name;
  _Atomic(CUfunction) functions[CUPLUG__MAX_GPUS]; /* NULL: not loaded there yet */
  uint32_t shared_bytes[CUPLUG__MAX_GPUS];         /* opted in to, dynamic; see kernel.c */
};

/* Returns the function of a kernel on the current device, where the first call loads its code. */
int cuplug__kernel_load(cuplug_kernel *kernel, int32_t device, CUfunction *function,
                        cuplug_error *error);

#endif

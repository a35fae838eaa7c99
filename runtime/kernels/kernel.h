/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of images. */
#ifndef CUPLUG_RUNTIME_KERNELS_KERNEL_H
#define CUPLUG_RUNTIME_KERNELS_KERNEL_H

#include "cuda/driver.h"
#include "cuda/gpus.h"

#include <runtime/jit.h>
#include <stdatomic.h>

struct cuplug_kernel {
  cuplug_kernel *next; /* of the image's */
  cuplug_image *image;
  CUkernel handle;
  char *name;
  _Atomic(CUfunction) functions[CUPLUG__MAX_GPUS]; /* NULL: not loaded there yet */
  uint32_t shared_bytes[CUPLUG__MAX_GPUS]; /* dynamic ones that it opted in to; see kernel.c */
};

/* The function of a kernel on an entered device: its code is loaded there by the first call. */
int cuplug__kernel_load(cuplug_kernel *kernel, int32_t device, CUfunction *function,
                        cuplug_error *error);

#endif

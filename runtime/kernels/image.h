/* SPDX-License-Identifier: Apache-2.0 */
/* Machine code in the driver. */
#ifndef CUPLUG_RUNTIME_KERNELS_IMAGE_H
#define CUPLUG_RUNTIME_KERNELS_IMAGE_H

#include "cuda/driver.h"

#include <runtime/jit.h>

struct cuplug_image {
  cuplug_image *next; /* next of all images, which are never freed */
  CUlibrary library;
  cuplug_kernel *kernels;
  char log[1024]; /* the driver's messages about PTX, possibly from the first use of a kernel */
  char name[];
};

/* Copies the driver's messages about code of the image to the record. Returns the status. */
int cuplug__fail_load(cuplug_error *error, int code, const cuplug_image *image);

#endif

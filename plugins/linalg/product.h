/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, in the last two dimensions of arrays, on a GPU. */
#ifndef CUPLUG_PLUGINS_LINALG_PRODUCT_H
#define CUPLUG_PLUGINS_LINALG_PRODUCT_H

#include <cuplug/plugin.h>

/* A factor. With is_adjoint, its matrices are transposed and, if complex, conjugated. */
typedef struct factor {
  const cuplug_tensor *x;
  const char *name;
  int is_adjoint;
} factor;

/* out = x @ y, or out + x @ y if it is added. The dimensions before the last two broadcast. If the
 * output has fewer of them, or sizes of 1, products are summed, and it is contiguous.
 *
 * Rows or columns of a factor are contiguous, and so are rows of the output and rows of a factor
 * that will be conjugated. The operators that call this have the state of make_blas. */
int product(const cuplug_call *call, factor x, factor y, const cuplug_tensor *out, int is_added);

#define BLAS_STATE CUPLUG_STATE(make_blas)

#endif

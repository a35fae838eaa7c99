/* SPDX-License-Identifier: Apache-2.0 */
/* matmul(x, y) = x @ y by cuBLASLt: NumPy's product of matrices,
 * out[..., i, j] = sum_l x[..., i, l] y[..., l, j].
 *
 *   x       T[..., m, k]     strided: rows or columns of each matrix are contiguous
 *   y       T[..., k, n]     strided in the same way; the loop dimensions broadcast, without a copy
 *   out     T[..., m, n]
 *
 * matmul_backward(grad, x, y): its gradient, grad @ y^H and x^H @ grad. Nothing is transposed in
 * memory. Products for one matrix that was broadcast are summed: in one product if the arrays are
 * contiguous, else consecutively, rounded to T each time.
 * matmul_backward_backward(grad_grad_x, grad_grad_y, grad, x, y): the gradient of matmul_backward.
 *
 * T: float16, bfloat16 (summed in float32), float32, float64, complex64, complex128. */
#include "linalg/product.h"

#include <cuplug/format.h>

static int times(const cuplug_call *call, factor x, factor y, int output) {
  return product(call, x, y, &call->outputs[output], 0);
}

CUPLUG_ENTRY int matmul_cuda(const cuplug_call *call) {
  const factor x = {&call->tensors[0], "x", 0}, y = {&call->tensors[1], "y", 0};
  return times(call, x, y, 0);
}

/* The adjoint matrices. */
static factor adjoint(factor x) { return x.is_adjoint = 1, x; }

/* The loop dimensions of grad are the loop dimensions of x and y, broadcast. */
static int check_grad(const cuplug_call *call, const cuplug_tensor *grad, const cuplug_tensor *x,
                      const cuplug_tensor *y) {
  const int32_t ndim = x->ndim < y->ndim ? y->ndim : x->ndim;
  if (grad->ndim != ndim)
    return cuplug_failf(call, CUPLUG_ERROR_VALUE, "grad: got %d dimensions, expected %d",
                        (int)grad->ndim, (int)ndim);
  for (int32_t d = 3; d <= ndim; d++) {
    const int64_t of_x = d <= x->ndim ? x->shape[x->ndim - d] : 1;
    const int64_t of_y = d <= y->ndim ? y->shape[y->ndim - d] : 1;
    const int64_t expected = of_x == 1 ? of_y : of_x, got = grad->shape[ndim - d];
    if (got != expected)
      return cuplug_failf(call, CUPLUG_ERROR_VALUE,
                          "grad: got size %lld in dimension %d, expected %lld", (long long)got,
                          (int)(ndim - d), (long long)expected);
  }
  return CUPLUG_OK;
}

CUPLUG_ENTRY int matmul_backward_cuda(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors;
  const factor grad = {&t[0], "grad", 0}, x = {&t[1], "x", 0}, y = {&t[2], "y", 0};
  int status = check_grad(call, &t[0], &t[1], &t[2]);
  if (!status) status = times(call, grad, adjoint(y), 0);
  return status ? status : times(call, adjoint(x), grad, 1);
}

CUPLUG_ENTRY int matmul_backward_backward_cuda(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors;
  const factor by_x = {&t[0], "grad_grad_x", 0}, by_y = {&t[1], "grad_grad_y", 0};
  const factor grad = {&t[2], "grad", 0}, x = {&t[3], "x", 0}, y = {&t[4], "y", 0};
  int status = check_grad(call, &t[2], &t[3], &t[4]);
  if (!status) status = times(call, by_x, y, 0);
  if (!status) status = product(call, x, by_y, &call->outputs[0], 1);
  if (!status) status = times(call, grad, adjoint(by_y), 1);
  return status ? status : times(call, adjoint(by_x), grad, 2);
}

#define REAL "T: float16 | bfloat16 | float32 | float64"
#define COMPLEX "T: complex64 | complex128"
#define X "x: T[*p, m, k]"
#define Y "y: T[*q, k, n]"
#define GRADIENTS "grad_" X ", grad_" Y ")"
#define CONTIGUOUS ", contiguous(grad), contiguous(grad_x), contiguous(grad_y)"
#define ALL_CONTIGUOUS \
  CONTIGUOUS ", contiguous(grad_grad), contiguous(grad_grad_x), contiguous(grad_grad_y)"

CUPLUG_CUDA_OPERATOR(matmul_cuda,
                     "matmul(x: T[..., m, k], y: T[..., k, n]) -> T[..., m, n] where " REAL
                     " | complex64 | complex128, k > 0",
                     "The product of matrices, by cuBLASLt." CUPLUG_CUDA_TAKES_STRIDES BLAS_STATE
                         CUPLUG_GRADIENT(matmul_backward));

/* For complex numbers, all arrays are contiguous: the library conjugates only transposed arrays. */
#define BACKWARD(where, strides)                                                         \
  CUPLUG_CUDA_OPERATOR(matmul_backward_cuda,                                             \
                       "matmul_backward(grad: T[*g, m, n], " X ", " Y ") -> (" GRADIENTS \
                       " where " where,                                                  \
                       "The gradients of matmul." strides BLAS_STATE CUPLUG_LINEAR(grad) \
                           CUPLUG_GRADIENT(matmul_backward_backward))
#define BACKWARD_TWICE(where, strides)                                                             \
  CUPLUG_CUDA_OPERATOR(matmul_backward_backward_cuda,                                              \
                       "matmul_backward_backward(grad_grad_" X ", grad_grad_" Y                    \
                       ", grad: T[*g, m, n], " X ", " Y ") -> (grad_grad: T[*g, m, n], " GRADIENTS \
                       " where " where,                                                            \
                       "The gradients of matmul_backward." strides BLAS_STATE)
BACKWARD(REAL ", k > 0" CONTIGUOUS, CUPLUG_CUDA_TAKES_STRIDES);
BACKWARD(COMPLEX ", k > 0", );
BACKWARD_TWICE(REAL ", k > 0" ALL_CONTIGUOUS, CUPLUG_CUDA_TAKES_STRIDES);
BACKWARD_TWICE(COMPLEX ", k > 0", );
CUPLUG_PLUGIN(linalg, "1.0.0");

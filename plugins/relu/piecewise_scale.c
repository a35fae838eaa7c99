/* SPDX-License-Identifier: Apache-2.0 */
/* piecewise_scale(x) = f(x) x with f(x) = 0.5 where x < 0, 2 where 0 <= x < 1, else 0.1.
 * piecewise_scale_backward(grad, x) = f(x) grad.          grad, x: T[...] -> T[...]
 * T: floating dtypes. NaN stays NaN. Each element is read and written once. float16 and bfloat16
 * are computed as float32. 0.1 is rounded to the dtype of the computation. */
#include "relu/factors.h"

CUPLUG_ENTRY int piecewise_scale_cuda(const cuplug_call *call);
CUPLUG_ENTRY int piecewise_scale_backward_cuda(const cuplug_call *call);

#define GIVEN(T)
#define FACTOR(v, T) ((v) < 0 ? (T)0.5 : (v) < 1 ? (T)2 : (T)0.1)
FACTOR_ENTRIES(piecewise_scale)

CUPLUG_OPERATOR(piecewise_scale_cuda, piecewise_scale_host,
                "piecewise_scale(x: T[...]) -> T[...] where T: floating",
                "0.5 x if x < 0, 2 x if 0 <= x < 1, otherwise 0.1 x." CUPLUG_CUDA_TAKES_STRIDES
                    CUPLUG_NONBLOCKING CUPLUG_IN_PLACE CUPLUG_DETERMINISTIC
                        CUPLUG_GRADIENT(piecewise_scale_backward));
CUPLUG_OPERATOR(
    piecewise_scale_backward_cuda, piecewise_scale_backward_host,
    "piecewise_scale_backward(grad: T[...], x: T[...]) -> T[...] where T: floating",
    "The gradient of piecewise_scale: grad times the factor of x." CUPLUG_CUDA_TAKES_STRIDES
        CUPLUG_NONBLOCKING CUPLUG_IN_PLACE CUPLUG_DETERMINISTIC
            CUPLUG_GRADIENT(piecewise_scale_backward) CUPLUG_LINEAR(grad));

/* SPDX-License-Identifier: Apache-2.0 */
/* leaky_relu(x, slope) = x where x > 0, else slope x.               x: T[...] -> T[...]
 * leaky_relu_backward(grad, x, slope) = grad where x > 0, else slope grad.
 *                                                             grad, x: T[...] -> T[...]
 * T: floating dtypes; slope is rounded to float32 (float64 for T float64). NaN stays NaN. Each
 * element is read and written once. float16 and bfloat16 are computed as float32. */
#include "relu/factors.h"

CUPLUG_ENTRY int leaky_relu_cuda(const cuplug_call *call);
CUPLUG_ENTRY int leaky_relu_backward_cuda(const cuplug_call *call);

#define GIVEN(T) const T slope = (T)call->scalars[0].f;
#define FACTOR(v, T) ((v) > 0 ? 1 : slope)
FACTOR_ENTRIES(leaky_relu)

CUPLUG_OPERATOR(
    leaky_relu_cuda, leaky_relu_host,
    "leaky_relu(x: T[...], slope: float = 0.01) -> T[...] where T: floating",
    "x if it is positive, else slope times x." CUPLUG_CUDA_TAKES_STRIDES CUPLUG_NONBLOCKING
        CUPLUG_IN_PLACE CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(leaky_relu_backward));
CUPLUG_OPERATOR(leaky_relu_backward_cuda, leaky_relu_backward_host,
                "leaky_relu_backward(grad: T[...], x: T[...], slope: float = 0.01) -> T[...] "
                "where T: floating",
                "The gradient of leaky_relu: grad if x is positive, else slope times "
                "grad." CUPLUG_CUDA_TAKES_STRIDES CUPLUG_NONBLOCKING CUPLUG_IN_PLACE
                    CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(leaky_relu_backward) CUPLUG_LINEAR(grad));

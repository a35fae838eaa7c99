/* SPDX-License-Identifier: Apache-2.0 */
/* half(x) = x / 2: the smallest useful plugin. */
#include <cuplug/plugin.h>

CUPLUG_ENTRY int half_host(const cuplug_call *call) {
  const float *x = call->tensors[0].data;
  float *out = call->tensors[1].data;
  const int64_t n = cuplug_n_elements(&call->tensors[0]);
  for (int64_t i = 0; i < n; i++) out[i] = x[i] / 2;
  return CUPLUG_OK;
}

CUPLUG_HOST_OPERATOR(half_host, "half(x: float32[...]) -> float32[...]", "Half of each element.");
CUPLUG_PLUGIN(half, "1.0.0");

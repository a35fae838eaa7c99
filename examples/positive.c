/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose output has a size that is known after the run: the elements above zero. */
#include <cuplug/plugin.h>

CUPLUG_ENTRY int positive_host(const cuplug_call *call) {
  const float *x = call->tensors[0].data;
  int64_t n = call->tensors[0].shape[0], n_kept = 0;
  for (int64_t i = 0; i < n; i++) n_kept += x[i] > 0;
  int status = cuplug_output(call, 1, &n_kept);
  if (status) return status;
  float *y = call->tensors[1].data;
  for (int64_t i = 0; i < n; i++)
    if (x[i] > 0) *y++ = x[i];
  return CUPLUG_OK;
}

CUPLUG_HOST_OPERATOR(positive_host, "positive(x: float32[n]) -> float32[?]",
                     "The elements above zero.");
CUPLUG_PLUGIN(positive, "1.0.0");

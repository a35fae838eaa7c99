/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that uses each part of the ABI 2.0 on the host. The binary beside it must work for as
 * long as ABI 2 lives. */
#include <cuplug/plugin.h>
#include <string.h>

/* x[i] * factor + bias[i]; absent and strided arrays, a scalar that may be None. */
CUPLUG_ENTRY int affine_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0], *bias = &call->tensors[1], *y = &call->outputs[0];
  const double factor = call->none_mask & 1 ? 1 : call->scalars[0].f;
  if (call->n_tensors != 3 || call->n_scalars != 1 || call->n_inputs != 2)
    return cuplug_fail(call, CUPLUG_ERROR_PLUGIN, "got other counts, expected those of the table");
  for (int64_t i = 0; i < x->shape[0]; i++) {
    double value = factor * ((const double *)x->data)[i * x->strides[0]];
    if (bias->ndim >= 0) value += ((const double *)bias->data)[i * bias->strides[0]];
    ((double *)y->data)[i * y->strides[0]] = value;
  }
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(
    affine_host,
    "affine(x: float64[n], bias: float64[n] = None, factor: float = None) -> float64[n]",
    "factor * x + bias." CUPLUG_TAKES_STRIDES CUPLUG_GRADIENT(affine_backward));

/* The sizes of arrays, times weights, and the length of a text, or its number in a choice. */
CUPLUG_ENTRY int measure_host(const cuplug_call *call) {
  const cuplug_items xs = call->scalars[0].list, weights = call->scalars[1].list;
  int64_t *out = call->outputs[0].data;
  for (int64_t k = 0; k < xs.n; k++)
    out[k] = cuplug_n_elements((const cuplug_tensor *)xs.items + k) *
             ((const int64_t *)weights.items)[k];
  out[xs.n] = (int64_t)strlen(call->scalars[2].s);
  out[xs.n + 1] = call->scalars[3].i;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(measure_host,
                     "measure(xs: T[*s][], weights: int[], text: str = \"abc\", "
                     "mode: \"up\" | \"down\" = \"down\") -> int64[len(xs) + 2] "
                     "where T: any, len(weights) == len(xs)",
                     "Sizes of arrays.");

/* The elements above a bound, found in parallel in a workspace; their number is not known before.
 */
typedef struct selection {
  const cuplug_call *call;
  uint8_t *is_above;
} selection;

static int find_above(void *context, int64_t begin, int64_t end) {
  const selection *s = context;
  const float *x = s->call->tensors[0].data;
  for (int64_t i = begin; i < end; i++) s->is_above[i] = x[i] > s->call->scalars[0].f;
  return CUPLUG_OK;
}

CUPLUG_ENTRY int above_host(const cuplug_call *call) {
  const cuplug_tensor *x = &call->tensors[0];
  const int64_t n = x->shape[0];
  int64_t n_above = 0, k = 0;
  selection s = {call, cuplug_workspace(call, (uint64_t)n)};
  if (!s.is_above) return CUPLUG_ERROR_MEMORY;
  int status = cuplug_parallel(call, n, 1000, find_above, &s);
  for (int64_t i = 0; !status && i < n; i++) n_above += s.is_above[i];
  if (!status) status = cuplug_interrupted(call);
  if (!status) status = cuplug_output(call, 1, &n_above);
  for (int64_t i = 0; !status && i < n; i++)
    if (s.is_above[i]) ((float *)call->outputs[0].data)[k++] = ((const float *)x->data)[i];
  return cuplug_n_threads(call) > 0 ? status : CUPLUG_ERROR_PLUGIN;
}
CUPLUG_HOST_OPERATOR(above_host, "above(x: float32[n], bound: float) -> float32[?]",
                     "Elements above a bound." CUPLUG_DETERMINISTIC);

/* Counters: a state, and handles that begin at what the state has counted. */
static int64_t counters[8], n_counters, n_closed;

CUPLUG_ENTRY int make_state(const cuplug_call *call, void **state) {
  if (call->n_tensors) return cuplug_fail(call, CUPLUG_ERROR_PLUGIN, "got arrays, expected none");
  *state = &n_closed;
  return CUPLUG_OK;
}

CUPLUG_ENTRY int close_counter(const cuplug_call *call, void *handle) {
  (void)call;
  *(int64_t *)handle = -1;
  n_closed++;
  return CUPLUG_OK;
}

CUPLUG_ENTRY int counter_host(const cuplug_call *call) {
  if (n_counters == 8) return cuplug_fail(call, CUPLUG_ERROR_MEMORY, "got 9 counters, expected 8");
  counters[n_counters] = call->scalars[0].i;
  return cuplug_set_handle(call, &counters[n_counters++]);
}
CUPLUG_HOST_OPERATOR(counter_host, "counter(first: int = 0) -> handle[counter]",
                     "Makes a counter." CUPLUG_CLOSE(close_counter));

CUPLUG_ENTRY int count_host(const cuplug_call *call) {
  int64_t *counts = call->tensors[0].data;
  if (call->supplied_mask || call->context)
    return cuplug_fail(call, CUPLUG_ERROR_PLUGIN, "got an output, expected none");
  counts[0] = ++*(int64_t *)call->scalars[0].handle;
  counts[1] = *(const int64_t *)call->state;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(count_host, "count(c: handle[counter], inout counts: int64[2])",
                     "Counts; how many counters were closed.");
CUPLUG_PLUGIN(kept_c, "1.0.0" CUPLUG_STATE(make_state));

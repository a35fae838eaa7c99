/* SPDX-License-Identifier: Apache-2.0 */
#include "expressions/reduction.h"

#include "base/core.h"
#include "entry/run.h"
#include "expressions/variant.h"

#include <inttypes.h>
#include <string.h>

#define HOST_BLOCK 1024
#define N_HOST_ITEMS 64
#define N_HOST_LEAST 32768  /* bytes of a part */
#define N_HOST_BESIDE 16384 /* of all outputs of a part, by columns */
#define N_HOST_ROWS 64      /* bytes of each of them, since a part stores a value for each */

/* ---- Axes ------------------------------------------------------------------------------------ */

static int refuse_axis(const char *name, int64_t seen, int32_t ndim, cuplug_error *error) {
  return core->fail(error, CUPLUG_ERROR_VALUE,
                    "%s: axis: got %" PRId64 ", expected %d <= axis < %d, each dimension once",
                    name, seen, -ndim, ndim);
}

/* Returns the reduced dimensions, a bit for each. Without a list, these are all. */
static int read_axes(const char *name, cuplug_items axis, int32_t ndim, uint64_t *axes,
                     cuplug_error *error) {
  *axes = axis.items ? 0 : ndim < 64 ? (1ull << ndim) - 1 : UINT64_MAX;
  for (int64_t k = 0; k < axis.n; k++) {
    const int64_t at = ((const int64_t *)axis.items)[k];
    if (at < -ndim || at >= ndim) return refuse_axis(name, at, ndim, error);
    const uint64_t bit = 1ull << (at < 0 ? at + ndim : at);
    if (*axes & bit) return refuse_axis(name, at, ndim, error);
    *axes |= bit;
  }
  return CUPLUG_OK;
}

static cuplug_items axis_of(const cuplug_scalar *scalars, uint32_t n) {
  return scalars[n - 2].list;
}
static int keeps_dims(const cuplug_scalar *scalars, uint32_t n) { return scalars[n - 1].i != 0; }

static void reshape(cuplug_tensor *out, uint64_t axes, int keep) {
  int32_t ndim = 0;
  for (int32_t d = 0; d < out->ndim; d++) {
    const int is_reduced = axes >> d & 1;
    if (is_reduced && !keep) continue;
    out->shape[ndim++] = is_reduced ? 1 : out->shape[d];
  }
  out->ndim = ndim;
}

int cuplug_reduction_reshape(cuplug_frame *f, cuplug_error *error) {
  uint64_t axes;
  int status = read_axes(f->signature->name, axis_of(f->scalars, f->n_scalars),
                         f->tensors[f->n_inputs].ndim, &axes, error);
  for (uint32_t k = f->n_inputs; !status && k < f->n_tensors; k++)
    reshape(&f->tensors[k], axes, keeps_dims(f->scalars, f->n_scalars));
  return status;
}

/* ---- Loops ----------------------------------------------------------------------------------- */

/* An output with the dimensions of the inputs, broadcast along reduced ones. */
static cuplug_tensor spread_output(const cuplug_call *call, uint32_t k, uint64_t axes,
                                   int64_t *strides) {
  cuplug_tensor out = call->tensors[k];
  const int keep = keeps_dims(call->scalars, call->n_scalars);
  int32_t from = 0;
  for (int32_t d = 0; d < call->tensors[0].ndim; d++) {
    const int is_reduced = axes >> d & 1;
    strides[d] = is_reduced ? 0 : out.strides[from];
    from += keep || !is_reduced;
  }
  out.ndim = call->tensors[0].ndim;
  out.shape = call->tensors[0].shape;
  out.strides = strides;
  return out;
}

/* The dimensions of both loops; the reduced one is in C order if its elements count. */
static void add_dims(cuplug__reduction *r, const cuplug_tensor *tensors, uint64_t axes) {
  const uint32_t n_inputs = cuplug__reduction_inputs(r);
  const uint64_t outputs = cuplug__bits_from_to(n_inputs, r->call->n_tensors);
  for (int32_t d = 0; d < tensors[0].ndim; d++) {
    if (axes >> d & 1)
      cuplug__loop_add(&r->reduced, tensors, d, outputs);
    else
      cuplug__loop_add(&r->kept, tensors, d, 0);
  }
  if (r->kept.n) cuplug__loop_collapse(&r->kept, 1);
  if (r->reduced.n)
    cuplug__loop_collapse(&r->reduced, !r->source->in_order);
  else
    r->reduced.ndim = 0;
}

int cuplug__reduction_loops(cuplug__reduction *r) {
  const cuplug_call *call = r->call;
  const uint32_t n = call->n_tensors, n_inputs = cuplug__reduction_inputs(r);
  const int32_t ndim = call->tensors[0].ndim;
  int64_t strides[r->source->n_outputs][ndim + 1];
  cuplug_tensor tensors[CUPLUG_MAX_LOOP_ARRAYS];
  uint64_t axes;
  int status =
      read_axes("", axis_of(call->scalars, call->n_scalars), ndim, &axes, cuplug__error_of(call));
  if (status) return status;
  memcpy(tensors, call->tensors, n * sizeof(*tensors));
  for (uint32_t k = n_inputs; k < n; k++)
    tensors[k] = spread_output(call, k, axes, strides[k - n_inputs]);
  add_dims(r, tensors, axes);
  for (uint32_t k = 0; k < n; k++) r->data[k] = tensors[k].data;
  return CUPLUG_OK;
}

void cuplug__reduction_cut(cuplug__reduction *r, long long wanted, long long least) {
  const long long n = r->reduced.n, most = n / least > 1 ? n / least : 1;
  if (wanted > most) wanted = most;
  if (wanted < 1) wanted = 1;
  r->part = (n + wanted - 1) / wanted;
  r->n_parts = r->part ? (n + r->part - 1) / r->part : 0;
}

int cuplug__reduction_partials(cuplug__reduction *r) {
  uint64_t bytes = (uint64_t)r->source->accumulator_bytes * (uint64_t)r->kept.n;
  r->partials = NULL;
  if (r->n_parts < 2) return CUPLUG_OK;
  r->partials = cuplug_workspace(r->call, bytes * (uint64_t)r->n_parts);
  return r->partials ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

/* The step of the first input that is not broadcast along the last dimension; 0 if all are. */
static long long last_step(const cuplug_loop *loop, uint32_t n_inputs) {
  for (uint32_t k = 0; loop->ndim && k < n_inputs; k++) {
    long long step = loop->strides[loop->ndim - 1][k];
    if (step) return step < 0 ? -step : step;
  }
  return 0;
}

int cuplug__reduction_by_columns(const cuplug__reduction *r) {
  const uint32_t n_inputs = cuplug__reduction_inputs(r);
  const long long kept = last_step(&r->kept, n_inputs);
  const long long reduced = last_step(&r->reduced, n_inputs);
  return kept && (!reduced || kept < reduced);
}

int cuplug__reduction_run(cuplug__read_loops *read, cuplug__reducer *reduce,
                          const cuplug_call *call) {
  CUPLUG__LOOP_STRIDES(kept, call->tensors[0].ndim);
  CUPLUG__LOOP_STRIDES(reduced, call->tensors[0].ndim);
  cuplug__reduction r;
  cuplug_variant variant;
  r.call = call;
  r.source = call->context;
  cuplug__loop_start(&r.kept, call->n_tensors, kept);
  cuplug__loop_start(&r.reduced, call->n_tensors, reduced);
  int status = read(&r);
  if (status || !r.kept.n) return status;
  if (!r.reduced.n && !r.source->has_identity)
    return cuplug_fail(
        call, CUPLUG_ERROR_VALUE,
        "got nothing along axis, expected at least one element: there is no identity");
  cuplug__variant_start(&variant, call);
  return reduce(&r, &variant);
}

/* ---- The host -------------------------------------------------------------------------------- */

/* Returns the number of parts of the reduced loop. Their number does not depend on the number of
 * threads. Rows are split only by their length: the bits of an output do not depend on the number
 * of rows. */
static void cut_for_threads(cuplug__reduction *r, int by_columns) {
  const long long n = r->kept.n, beside = n < HOST_BLOCK ? n : HOST_BLOCK;
  const long long items = by_columns ? (n + HOST_BLOCK - 1) / HOST_BLOCK : 1;
  const long long rows = (N_HOST_BESIDE + beside - 1) / beside;
  const long long alone = N_HOST_LEAST / cuplug_element_bytes(&r->call->tensors[0]);
  const long long least = by_columns ? (rows < N_HOST_ROWS ? N_HOST_ROWS : rows) : alone;
  cuplug__reduction_cut(r, (N_HOST_ITEMS + items - 1) / items, least);
}

/* Memory for the results of parts, and a flag for each stopped output. */
static int take_parts(cuplug__reduction *r, unsigned char **stopped) {
  int status = cuplug__reduction_partials(r);
  *stopped = NULL;
  if (status || r->n_parts < 2) return status;
  *stopped = cuplug_workspace(r->call, (uint64_t)r->kept.n);
  if (!*stopped) return CUPLUG_ERROR_MEMORY;
  memset(*stopped, 0, (size_t)r->kept.n);
  return CUPLUG_OK;
}

static int reduce_on_host(cuplug__reduction *r, cuplug_variant *v) {
  int status = cuplug__variant_find(r->source, v, &r->code, cuplug__error_of(r->call));
  if (status) return status;
  const int is_short = r->reduced.n < r->source->strided_below;
  const int by_columns = cuplug__reduction_by_columns(r) ? 1 : is_short ? 2 : 0;
  unsigned char *stopped;
  cut_for_threads(r, by_columns);
  if ((status = take_parts(r, &stopped))) return status;
  cuplug_loop_call arguments = {.data = r->data,
                                .scalars = r->call->scalars,
                                .loop = &r->kept,
                                .reduced = &r->reduced,
                                .partials = r->partials,
                                .n_parts = r->n_parts,
                                .part = r->part,
                                .by_columns = by_columns,
                                .stopped = stopped};
  return cuplug__variant_run(r->call, r->code, &arguments);
}

int cuplug_reduction_host(const cuplug_call *call) {
  return cuplug__reduction_run(cuplug__reduction_loops, reduce_on_host, call);
}

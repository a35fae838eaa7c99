/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of reductions that are compiled from expressions. Each output is that of a loop over
 * the reduced dimensions. By rows, threads share an output; by columns, each has outputs of its own
 * that lie side by side. Where outputs are few the reduced loop is cut into parts, whose values are
 * put together in their order: results do not depend on the number of threads. */
#include "base/status.h"
#include "entry/run.h"
#include "source/loop.h"
#include "source/packs.h"
#include "source/variant.h"

#include <internal/source.h>
#include <inttypes.h>
#include <string.h>

#define N_COLUMNS 32 /* threads of a block side by side, by columns */
#define N_BLOCKS_WANTED 8192
#define N_LEAST 16 /* packs for each thread, so that a part pays */
#define N_SHARED 4 /* packs of a row for each thread that shares it */
/* Fewer packs for each of many outputs are a thread's alone: waiting for others costs more. */
#define N_SHORT 64
#define N_MANY 65536
#define N_UNROLLED 4 /* packs that a thread waits for at once */
#define HOST_BLOCK 1024
#define N_HOST_ITEMS 64
#define N_HOST_LEAST 4096 /* elements of a part */
#define N_HOST_SHORT 32   /* reduced loops below this are walked by columns */

/* ---- Axes ------------------------------------------------------------------------------------ */

static int refuse_axis(const char *name, int64_t seen, int32_t ndim, cuplug_error *error) {
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "%s: axis: seen %" PRId64 ", wanted different numbers with %d <= axis < %d",
                      name, seen, -ndim, ndim);
}

/* The dimensions that are reduced, a bit for each; without a list, all. */
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

typedef struct reduction {
  const cuplug_call *call;
  cuplug_source *source;
  cuplug_loop kept, reduced;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  long long n_parts, part; /* elements of the reduced loop in each part but the last */
  void *partials;
  const cuplug_code *code;
} reduction;

static uint32_t n_inputs_of(const reduction *r) {
  return r->call->n_tensors - r->source->n_outputs;
}

/* An output with the dimensions of the inputs, standing still along reduced ones. */
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

/* The dimensions of both loops; the reduced one goes on in C order where its elements count. */
static void add_dims(reduction *r, const cuplug_tensor *tensors, uint64_t axes) {
  const uint32_t n_inputs = n_inputs_of(r);
  const uint32_t outputs = (uint32_t)((1ull << r->call->n_tensors) - (1ull << n_inputs));
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

static int read_loops(reduction *r) {
  const cuplug_call *call = r->call;
  const uint32_t n = call->n_tensors, n_inputs = n_inputs_of(r);
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
  if (r->kept.n && !r->reduced.n && !r->source->has_identity)
    return cuplug_fail(
        call, CUPLUG_ERROR_VALUE,
        "seen nothing along axis, wanted at least one element: there is no identity");
  return CUPLUG_OK;
}

/* The step of the first input that moves along the last dimension; 0 when none does. */
static long long last_step(const cuplug_loop *loop, uint32_t n_inputs) {
  for (uint32_t k = 0; loop->ndim && k < n_inputs; k++) {
    long long step = loop->strides[loop->ndim - 1][k];
    if (step) return step < 0 ? -step : step;
  }
  return 0;
}

/* Whether neighbours in memory belong to different outputs. */
static int is_by_columns(const reduction *r) {
  const uint32_t n_inputs = n_inputs_of(r);
  const long long kept = last_step(&r->kept, n_inputs);
  const long long reduced = last_step(&r->reduced, n_inputs);
  return kept && (!reduced || kept < reduced);
}

/* As many parts as are wanted, none of them empty, of at least `least` elements. */
static void cut(reduction *r, long long wanted, long long least) {
  const long long n = r->reduced.n, most = n / least > 1 ? n / least : 1;
  if (wanted > most) wanted = most;
  if (wanted < 1) wanted = 1;
  r->part = (n + wanted - 1) / wanted;
  r->n_parts = r->part ? (n + r->part - 1) / r->part : 0;
}

/* Memory for a value of each part and output, where there are parts. */
static int take_partials(reduction *r) {
  uint64_t bytes = (uint64_t)r->source->accumulator_bytes * (uint64_t)r->kept.n;
  r->partials = NULL;
  if (r->n_parts < 2) return CUPLUG_OK;
  r->partials = cuplug_workspace(r->call, bytes * (uint64_t)r->n_parts);
  return r->partials ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

/* What one side does about a call that has outputs. */
typedef int reducer(reduction *r, cuplug_variant *variant);

static int run(reducer *reduce, const cuplug_call *call) {
  CUPLUG__LOOP_STRIDES(kept, call->tensors[0].ndim);
  CUPLUG__LOOP_STRIDES(reduced, call->tensors[0].ndim);
  reduction r;
  cuplug_variant variant;
  r.call = call;
  r.source = cuplug_entry_context(call);
  cuplug__loop_start(&r.kept, call->n_tensors, kept);
  cuplug__loop_start(&r.reduced, call->n_tensors, reduced);
  int status = read_loops(&r);
  if (status || !r.kept.n) return status;
  cuplug__variant_start(&variant, call);
  return reduce(&r, &variant);
}

/* ---- The host -------------------------------------------------------------------------------- */

static int reduce_on_host(reduction *r, cuplug_variant *v) {
  int status = cuplug__variant_find(r->source, v, &r->code, cuplug__error_of(r->call));
  if (status) return status;
  const int by_columns =
      is_by_columns(r) || (r->reduced.n < N_HOST_SHORT && r->kept.n > r->reduced.n);
  const long long items = by_columns ? (r->kept.n + HOST_BLOCK - 1) / HOST_BLOCK : r->kept.n;
  cut(r, (N_HOST_ITEMS + items - 1) / items, N_HOST_LEAST);
  if ((status = take_partials(r))) return status;
  unsigned char stopped[N_HOST_ITEMS] = {0};
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

int cuplug_reduction_host(const cuplug_call *call) { return run(reduce_on_host, call); }

/* ---- CUDA ------------------------------------------------------------------------------------ */

static uint32_t power_of_two(long long n, uint32_t most) {
  uint32_t p = 1;
  while (p < most && p < n) p *= 2;
  return p;
}

/* Packs lie along the dimension that neighbouring threads walk. */
static void choose_packs(reduction *r, cuplug_variant *v) {
  cuplug_loop *along = v->columns ? &r->kept : &r->reduced;
  const cuplug_loop *across = v->columns ? &r->reduced : &r->kept;
  const uint32_t n_inputs = n_inputs_of(r);
  const uint32_t width = cuplug__pack_width(r->call, n_inputs);
  v->width = 1;
  if (width == 1 || !cuplug__loop_has_packs(along, across, r->call, n_inputs, width)) return;
  v->width = (uint8_t)width;
  v->still = cuplug__loop_take_packs(along, width);
}

/* How many threads of a block lie side by side. By columns as many as there are outputs, up to a
 * warp; by rows as share an output. Alone, all. */
static uint32_t side_of(const reduction *r, const cuplug_variant *v) {
  if (v->alone) return CUPLUG__N_THREADS;
  if (v->columns) return power_of_two(r->kept.n, N_COLUMNS);
  return power_of_two(r->reduced.n / N_SHARED, CUPLUG__N_THREADS);
}

/* The blocks for the outputs, and the parts of the reduced loop that make enough of them. */
static int choose_grid(reduction *r, const cuplug_variant *v, cuplug_grid *g) {
  const uint32_t side = side_of(r, v), across = CUPLUG__N_THREADS / side;
  const int is_across = v->columns || v->alone;
  const long long of_block = is_across ? side : across, shared_by = is_across ? across : side;
  const long long n_blocks = (r->kept.n + of_block - 1) / of_block;
  *g = (cuplug_grid){.blocks = {1, 1, 1}, .threads = {side, across, 1}};
  cut(r, v->alone ? 1 : (N_BLOCKS_WANTED + n_blocks - 1) / n_blocks, shared_by * N_LEAST);
  if (n_blocks > INT32_MAX)
    return cuplug__fail(cuplug__error_of(r->call), CUPLUG_ERROR_VALUE,
                        "seen %lld outputs, wanted at most %lld", r->kept.n, INT32_MAX * of_block);
  g->blocks[0] = (uint32_t)n_blocks;
  g->blocks[1] = (uint32_t)r->n_parts;
  return CUPLUG_OK;
}

static int launch(reduction *r, const cuplug_variant *v) {
  const cuplug_call *call = r->call;
  struct {
    void *data[CUPLUG_MAX_LOOP_ARRAYS];
  } arrays;
  const uint32_t n_arrays = r->kept.n_arrays;
  cuplug_divisor kept[r->kept.ndim + 1], reduced[r->reduced.ndim + 1];
  long long kept_steps[(uint32_t)(r->kept.ndim + 1) * n_arrays];
  long long reduced_steps[(uint32_t)(r->reduced.ndim + 1) * n_arrays];
  cuplug_grid g;
  int status = choose_grid(r, v, &g);
  if (status) return status;
  r->kept.n *= v->columns ? v->width : 1; /* outputs again, no packs */
  if ((status = take_partials(r))) return status;
  memcpy(arrays.data, r->data, sizeof(r->data));
  cuplug__loop_pack(&r->kept, kept, kept_steps);
  cuplug__loop_pack(&r->reduced, reduced, reduced_steps);
  long long n_elements = r->reduced.n * (v->columns ? 1 : v->width);
  void *arguments[] = {
      &arrays, (void *)call->scalars, &r->kept.n,   &r->reduced.n, &r->part,   kept, kept_steps,
      reduced, reduced_steps,         &r->partials, &n_elements,   &r->n_parts};
  if (r->n_parts) status = CUPLUG__SERVICE(call, launch)(call, r->code->function, &g, arguments);
  if (status || r->n_parts == 1) return status;
  g.threads[0] = power_of_two(r->kept.n, N_COLUMNS);
  g.threads[1] = CUPLUG__N_THREADS / g.threads[0];
  g.blocks[0] = (uint32_t)((r->kept.n + g.threads[0] - 1) / g.threads[0]);
  g.blocks[1] = 1;
  return CUPLUG__SERVICE(call, launch)(call, r->code->finish, &g, arguments);
}

static int reduce_on_cuda(reduction *r, cuplug_variant *v) {
  v->columns = (uint8_t)is_by_columns(r);
  choose_packs(r, v);
  v->alone = r->reduced.n < (v->columns ? N_SHORT : N_SHARED) && r->kept.n >= N_MANY;
  v->unroll = (uint8_t)power_of_two(r->reduced.n, N_UNROLLED);
  v->ndim = (uint8_t)r->kept.ndim;
  v->n_reduced = (uint8_t)r->reduced.ndim;
  v->wide = r->kept.n >= 1ll << 30 || r->reduced.n >= 1ll << 30;
  int status = cuplug__variant_find(r->source, v, &r->code, cuplug__error_of(r->call));
  return status ? status : launch(r, v);
}

int cuplug_reduction_cuda(const cuplug_call *call) { return run(reduce_on_cuda, call); }

/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of rows: reductions along the last dimension and the computations from them, in one
 * pass over memory. A row is computed separately, in an order that depends on its length and
 * dtypes: its bits are the same among any number of rows, on any number of threads.
 *
 * On a GPU the threads of a row hold it in registers:
 *
 *   1. Packs. A pack is 16 bytes of the widest array, or the most of its halves that a row is a
 *      multiple of, whatever the addresses; threads take packs in turn. Arrays whose rows all begin
 *      at such addresses are read and written a pack at a time.
 *   2. Threads. A row has one thread to a whole block of them, each of which has N_ELEMENTS to
 *      N_MOST_ELEMENTS, with more than a warp the latter if packs have 8; short rows share a block.
 *   3. Rows that are longer yet are read again in each step. */
#include "base/core.h"
#include "entry/run.h"
#include "expressions/packs.h"
#include "expressions/reduction.h"
#include "expressions/variant.h"

#define N_PACK_BYTES 16
#define N_ELEMENTS 16
#define N_MOST_ELEMENTS 32
#define N_MOST_THREADS 1024
#define N_LANES 32 /* threads of a warp */

/* Returns whether an array has elements along the rows, and not one for each row. */
static int is_along(const cuplug_tensor *x, int32_t last, int64_t n) {
  return x->ndim > last && x->shape[last] == n;
}

static int read_rows(cuplug__reduction *r) {
  const cuplug_call *call = r->call;
  int32_t last = 0;
  int64_t n = 1;
  for (uint32_t k = 0; k < call->n_tensors; k++)
    if (call->tensors[k].ndim > last + 1) last = call->tensors[k].ndim - 1;
  for (uint32_t k = 0; k < call->n_tensors; k++)
    if (call->tensors[k].ndim > last && call->tensors[k].shape[last] != 1)
      n = call->tensors[k].shape[last];
  for (int32_t d = 0; d < last; d++) cuplug__loop_add(&r->kept, call->tensors, d, 0);
  if (r->kept.n) cuplug__loop_collapse(&r->kept, 1);
  r->reduced.n = r->reduced.sizes[0] = n;
  r->reduced.ndim = 1;
  for (uint32_t k = 0; k < call->n_tensors; k++) {
    const cuplug_tensor *x = &call->tensors[k];
    const long long step = n == 1 ? 1 : is_along(x, last, n) ? cuplug__stride(x, last) : 0;
    r->reduced.strides[0][k] = step;
    r->data[k] = x->data;
  }
  return CUPLUG_OK;
}

/* The inputs that have one element for each row. */
static uint64_t fixed_arrays(const cuplug__reduction *r) {
  uint64_t fixed = 0;
  for (uint32_t k = 0; k < cuplug__reduction_inputs(r); k++)
    fixed |= (uint64_t)!r->reduced.strides[0][k] << k;
  return fixed;
}

/* ---- The host -------------------------------------------------------------------------------- */

static int compute_on_host(cuplug__reduction *r, cuplug_variant *v) {
  v->fixed = fixed_arrays(r);
  int status = cuplug__variant_find(r->source, v, &r->code, cuplug__error_of(r->call));
  if (status) return status;
  cuplug_loop_call arguments = {
      .data = r->data, .scalars = r->call->scalars, .loop = &r->kept, .reduced = &r->reduced};
  return cuplug__variant_run(r->call, r->code, &arguments);
}

int cuplug_rows_host(const cuplug_call *call) {
  return cuplug__reduction_run(read_rows, compute_on_host, call);
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* Elements of a pack. */
static uint32_t width_of(const cuplug__reduction *r) {
  int64_t widest = 1;
  for (uint32_t k = 0; k < r->call->n_tensors; k++) {
    const int64_t bytes = cuplug_element_bytes(&r->call->tensors[k]);
    if (r->reduced.strides[0][k] && bytes > widest) widest = bytes;
  }
  uint32_t width = widest < N_PACK_BYTES ? (uint32_t)(N_PACK_BYTES / widest) : 1;
  while (r->reduced.n % width) width /= 2;
  return width;
}

/* The arrays that are read and written a pack at a time. */
static uint64_t packed_arrays(const cuplug__reduction *r, uint32_t width) {
  uint64_t packed = 0;
  for (uint32_t k = 0; k < r->call->n_tensors; k++) {
    const cuplug_tensor *x = &r->call->tensors[k];
    const uint64_t bytes = width * (uint64_t)cuplug_element_bytes(x);
    int fits = r->reduced.strides[0][k] == 1 && (uintptr_t)x->data % bytes == 0;
    for (int d = 0; d < r->kept.ndim; d++) fits = fits && r->kept.strides[d][k] % width == 0;
    packed |= (uint64_t)fits << k;
  }
  return packed;
}

static uint32_t threads_of_row(long long n_elements, uint32_t width) {
  uint32_t n = 1;
  while (n < N_MOST_THREADS && 2 * n * N_ELEMENTS + (width > 4 && n >= N_LANES) <= n_elements)
    n *= 2;
  return n;
}

static int launch(cuplug__reduction *r, const cuplug_variant *v, uint32_t threads) {
  cuplug_divisor kept[r->kept.ndim + 1];
  long long steps[(uint32_t)(r->kept.ndim + 1) * r->kept.n_arrays];
  const uint32_t rows = threads < CUPLUG__N_THREADS ? CUPLUG__N_THREADS / threads : 1;
  const long long n_blocks = (r->kept.n + rows - 1) / rows;
  if (n_blocks > INT32_MAX)
    return core->fail(cuplug__error_of(r->call), CUPLUG_ERROR_VALUE,
                      "got %lld rows, expected fewer", r->kept.n);
  cuplug_grid g = {.blocks = {(uint32_t)n_blocks, 1, 1}, .threads = {threads, rows, 1}};
  cuplug__loop_pack(&r->kept, v->wide, kept, steps);
  void *arguments[] = {r->data, (void *)r->call->scalars, &r->kept.n, &r->reduced.n, kept,
                       steps,   r->reduced.strides[0]};
  return r->call->services->launch(r->call, r->code->function, &g, arguments);
}

static int compute_on_cuda(cuplug__reduction *r, cuplug_variant *v) {
  const uint32_t width = width_of(r);
  const long long n_packs = r->reduced.n / width;
  const uint32_t threads = threads_of_row(r->reduced.n, width);
  const long long packs = (n_packs + threads - 1) / threads;
  v->width = (uint8_t)width;
  v->unroll = packs * width <= N_MOST_ELEMENTS ? (uint8_t)packs : 0;
  for (uint32_t n = threads; n > 1; n /= 2) v->n_reduced++;
  v->near = packed_arrays(r, width);
  v->fixed = fixed_arrays(r);
  v->ndim = (uint8_t)r->kept.ndim;
  v->wide = r->kept.n >= 1ll << 30;
  int status = cuplug__variant_find(r->source, v, &r->code, cuplug__error_of(r->call));
  return status ? status : launch(r, v, threads);
}

int cuplug_rows_cuda(const cuplug_call *call) {
  return cuplug__reduction_run(read_rows, compute_on_cuda, call);
}

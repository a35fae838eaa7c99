/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of scans that are compiled from expressions. Lines are along one axis. On the host,
 * they are split into parts if there are few: the parts are reduced first, and then each continues
 * from the result before it. A GPU scans tiles in one pass: by columns, if the outputs of
 * neighboring lines are adjacent, of lines that fill a sector, or of all; else by rows, of all
 * lines consecutively. Many short columns are a thread's each. */
#include "base/core.h"
#include "entry/run.h"
#include "expressions/packs.h"
#include "expressions/reduction.h"
#include "expressions/variant.h"

#include <inttypes.h>
#include <runtime/expressions.h>
#include <string.h>

#define N_HOST_ITEMS 64
#define HOST_BLOCK 1024
#define N_HOST_FEW 16      /* fewer adjacent lines are scanned by rows */
#define N_HOST_SHORT 40    /* elements: shorter segments are processed consecutively */
#define N_HOST_LEAST 32768 /* elements of a part, which is read twice */
#define N_HOST_APART 4096
#define N_SECTOR_BYTES 32 /* bytes that memory transfers at once */
#define N_TILE_BYTES 128  /* elements per thread, if they are single numbers */
#define N_SHORT 128       /* elements of a column that one thread scans */
#define N_WARP 32         /* neighboring columns of a block, if there are many such strips */
#define N_BUSY 128        /* of these strips */
#define N_MOST_BYTES 64   /* of the values that are combined there */

static int read_loops(cuplug__reduction *s) {
  const cuplug_call *call = s->call;
  const int32_t ndim = call->tensors[0].ndim;
  const int64_t given = call->scalars[call->n_scalars - 1].i;
  const int64_t axis = given < 0 ? given + ndim : given;
  if (axis < 0 || axis >= ndim)
    return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                      "axis: got %" PRId64 ", expected %d <= axis < %d", given, -ndim, ndim);
  memset(s->reduced.strides, 0, sizeof *s->reduced.strides); /* also for a segment of one element */
  for (int32_t d = 0; d < ndim; d++)
    cuplug__loop_add(d == axis ? &s->reduced : &s->kept, call->tensors, d, 0);
  for (uint32_t k = 0; k < call->n_tensors; k++) s->data[k] = call->tensors[k].data;
  if (s->kept.n) cuplug__loop_collapse(&s->kept, 1);
  if (!s->reduced.n) s->kept.n = 0;
  return CUPLUG_OK;
}

/* Returns whether the outputs of neighboring lines are adjacent, and those of a line are not. */
static int is_by_columns(const cuplug__reduction *s) {
  const int last = s->kept.ndim - 1;
  for (uint32_t k = s->call->n_tensors - s->source->n_outputs; k < s->call->n_tensors; k++)
    if (last < 0 || s->kept.strides[last][k] != 1 || s->reduced.strides[0][k] == 1) return 0;
  return 1;
}

static int cut(cuplug__reduction *s, long long wanted, long long least) {
  cuplug__reduction_cut(s, wanted, least);
  if (s->part >= N_HOST_APART) s->part |= 272; /* so that parts begin in different cache sets */
  s->n_parts = (s->reduced.n + s->part - 1) / s->part;
  return cuplug__reduction_partials(s);
}

/* Returns how many blocks of segments are processed by columns, or consecutively if short; 0: by
 * rows. */
static long long n_blocks_of(const cuplug__reduction *s, int by_columns) {
  const long long last = s->kept.ndim ? s->kept.sizes[s->kept.ndim - 1] : 0;
  if (last < N_HOST_FEW || !(by_columns || s->reduced.n < N_HOST_SHORT)) return 0;
  return s->kept.n / last * ((last + HOST_BLOCK - 1) / HOST_BLOCK);
}

/* Elements of a part. */
static long long least_of(const cuplug__reduction *s, long long n_blocks, int by_columns) {
  if (!n_blocks) return N_HOST_LEAST;
  return by_columns ? (N_HOST_LEAST + s->kept.n - 1) / s->kept.n : s->reduced.n;
}

static int scan_on_host(cuplug__reduction *s, cuplug_variant *v) {
  const int by_columns = is_by_columns(s);
  const long long n_blocks = n_blocks_of(s, by_columns);
  int status = cuplug__variant_find(s->source, v, &s->code, cuplug__error_of(s->call));
  if (status) return status;
  const long long items = n_blocks ? n_blocks : s->kept.n;
  status = cut(s, (N_HOST_ITEMS + items - 1) / items, least_of(s, n_blocks, by_columns));
  if (status) return status;
  cuplug_loop_call arguments = {.data = s->data,
                                .scalars = s->call->scalars,
                                .loop = &s->kept,
                                .reduced = &s->reduced,
                                .partials = s->partials,
                                .n_parts = s->n_parts,
                                .part = s->part,
                                .by_columns = n_blocks > 0};
  return cuplug__variant_run(s->call, s->code, &arguments);
}

int cuplug_scan_host(const cuplug_call *call) {
  return cuplug__reduction_run(read_loops, scan_on_host, call);
}

/* ---- CUDA ------------------------------------------------------------------------------------ */

/* Columns of a tile, a power of two: they fill a sector, if there are enough. */
static long long side_of(const cuplug__reduction *s) {
  const long long bytes = cuplug_element_bytes(&s->call->outputs[0]);
  long long side = 1;
  while (side * bytes < N_SECTOR_BYTES && side < s->kept.n) side *= 2;
  return side;
}

/* Returns whether all arrays are read in memory order: line after line, or by columns whose number
 * is that of a tile. */
static int is_flat(const cuplug__reduction *s, int by_columns) {
  const long long beside = by_columns ? side_of(s) : 1;
  if (s->kept.ndim > 1 || (by_columns && s->kept.n != beside)) return 0;
  for (uint32_t k = 0; k < s->call->n_tensors; k++)
    if (s->reduced.strides[0][k] != beside ||
        (s->kept.ndim && s->kept.strides[0][k] != (by_columns ? 1 : s->reduced.n)))
      return 0;
  return 1;
}

/* Returns the elements per thread, a power of two. Integers are combined in 64 bits. */
static uint32_t items_of(const cuplug__reduction *s) {
  int64_t widest = 4;
  for (uint32_t k = s->call->n_tensors - s->source->n_outputs; k < s->call->n_tensors; k++) {
    const cuplug_tensor *x = &s->call->tensors[k];
    const int is_whole = x->dtype.code <= 1 || cuplug_type(x) == CUPLUG_BOOL;
    const int64_t bytes = is_whole ? 8 : cuplug_element_bytes(x);
    if (bytes > widest) widest = bytes;
  }
  if (s->source->accumulator_bytes > 16) widest = s->source->accumulator_bytes / 2;
  uint32_t items = 1;
  while (2 * items * widest <= N_TILE_BYTES) items *= 2;
  return items;
}

/* The layout of tiles. */
typedef struct tiles {
  long long side, n_strips, n_states, n_blocks;
} tiles;

static tiles tiles_of(const cuplug__reduction *s, const cuplug_variant *v) {
  const long long n_lines = s->kept.n, n = s->reduced.n;
  tiles t = {v->columns ? side_of(s) : 1, 1, 0, 0};
  const long long of_tile = CUPLUG__N_THREADS / t.side * v->unroll;
  if (v->columns) t.n_strips = (n_lines + t.side - 1) / t.side;
  const long long all = v->columns ? n : n * n_lines;
  t.n_blocks = t.n_strips * ((all + of_tile - 1) / of_tile);
  t.n_states = t.n_blocks * t.side;
  if (v->alone)
    t.n_blocks = (n_lines + CUPLUG__N_THREADS - 1) / CUPLUG__N_THREADS;
  else if (v->columns && !v->few)
    t.n_blocks = (n_lines + N_WARP - 1) / N_WARP;
  return t;
}

/* The state of tiles: a ticket and, for each state, a 64-bit word for each of its 32-bit words. */
static int take_words(cuplug__reduction *s, const tiles *t, void **words, cuplug_grid *g) {
  const long long n_words = 1 + t->n_states * ((s->source->accumulator_bytes + 3) / 4);
  *words = cuplug_workspace(s->call, (uint64_t)n_words * 8);
  g->blocks[0] = (uint32_t)((n_words + CUPLUG__N_THREADS - 1) / CUPLUG__N_THREADS);
  return *words ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

static int launch(cuplug__reduction *s, const cuplug_variant *v) {
  cuplug_divisor lines[s->kept.ndim + 1], length = cuplug__divisor(s->reduced.n, v->wide);
  long long steps[(uint32_t)(s->kept.ndim + 1) * s->kept.n_arrays];
  tiles t = tiles_of(s, v);
  void *words = NULL;
  int status = CUPLUG_OK;
  if (t.n_blocks > INT32_MAX)
    return core->fail(cuplug__error_of(s->call), CUPLUG_ERROR_VALUE,
                      "got %lld lines of %lld elements, expected fewer", s->kept.n, s->reduced.n);
  cuplug__loop_pack(&s->kept, v->wide, lines, steps);
  cuplug_grid g = {.blocks = {1, 1, 1}, .threads = {CUPLUG__N_THREADS, 1, 1}};
  void *arguments[] = {
      s->data, (void *)s->call->scalars, &s->kept.n, &s->reduced.n, &length,     lines,
      steps,   s->reduced.strides[0],    &words,     &t.n_states,   &t.n_strips, &t.side};
  if (v->few && !(status = take_words(s, &t, &words, &g)))
    status = s->call->services->launch(s->call, s->code->function, &g, arguments);
  g.blocks[0] = (uint32_t)t.n_blocks;
  return status ? status : s->call->services->launch(s->call, s->code->finish, &g, arguments);
}

static int scan_on_cuda(cuplug__reduction *s, cuplug_variant *v) {
  v->columns = (uint8_t)is_by_columns(s);
  v->alone = v->columns && s->reduced.n < N_SHORT;
  v->few = !v->alone && (!v->columns || s->kept.n <= (N_BUSY - 1) * N_WARP ||
                         s->source->accumulator_bytes > N_MOST_BYTES);
  v->flat = v->few && is_flat(s, v->columns);
  v->width = 1;
  v->unroll = (uint8_t)items_of(s);
  if (!v->few && v->unroll > 1) v->unroll /= 2; /* the same number is in flight */
  v->ndim = (uint8_t)s->kept.ndim;
  v->wide = s->kept.n >= (1ll << 30) / s->reduced.n;
  int status = cuplug__variant_find(s->source, v, &s->code, cuplug__error_of(s->call));
  return status ? status : launch(s, v);
}

int cuplug_scan_cuda(const cuplug_call *call) {
  return cuplug__reduction_run(read_loops, scan_on_cuda, call);
}

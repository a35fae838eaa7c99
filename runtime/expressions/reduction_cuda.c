/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions on a GPU. A reduction is planned from strides, shape and GPU in four steps:
 *
 *   1. The way. If neighbors in memory belong to different outputs, adjacent threads have different
 *      outputs (columns). Otherwise they share an output (rows). Up to N_FEW columns, without gaps
 *      between rows, are read in memory order (few).
 *   2. Packs. An instruction loads 16 bytes, along the outputs by columns, else along the reduced
 *      loop, if all arrays can be read in this way. Rows that are not aligned to packs, and few
 *      columns, are flat: elements before the first whole pack and after the last are loaded one
 *      by one.
 *   3. Sharing. A thread waits for N_AHEAD_BYTES at once, which is a turn. By rows, as many threads
 *      share an output as have work. If there are many rows, so few share one that each thread has
 *      N_ROW_TURNS. By columns, N_SIDE_BYTES are adjacent, and the other threads of a block share
 *      these columns. If many outputs have few elements each, one thread reduces them. It has at
 *      most N_STORE_BYTES of outputs, so that neighboring threads store to adjacent memory.
 *   4. Parts. The reduced loop is split into even parts, so that each thread has N_TURNS, by
 *      columns twice that number. The parts make at most N_MOST_WAVES times as many blocks as the
 *      GPU holds at once and, with shorter parts, at least as many as it holds. There are at most
 *      N_FINISH_PARTS for each thread of the second kernel, which combines them. */
#include "base/core.h"
#include "entry/run.h"
#include "expressions/packs.h"
#include "expressions/reduction.h"
#include "expressions/variant.h"

#define N_FEW 64          /* MOST_COLUMNS in reduction.cuh */
#define N_FLAT 16         /* packs of a row from which loading its ends separately saves time */
#define N_VALUE_BYTES 256 /* bytes of a thread's values, with 16 bytes for each field */
#define N_AHEAD_BYTES 128 /* bytes of all arrays */
#define N_MOST_AHEAD 8    /* packs */
#define N_SIDE_BYTES 512  /* bytes of the widest array; half without packs */
#define N_SHORT 64        /* a small number of elements of an output, if there are N_MANY */
#define N_MANY 65536
#define N_STORE_BYTES 32 /* bytes of a thread's outputs if few elements are reduced to each */
#define N_BLOCKS_HELD 4  /* threads that a multiprocessor holds: N_HELD in reduction.cuh */
#define N_WARP 32
#define N_ROW_TURNS 2
#define N_TURNS 4
#define N_MOST_TURNS 2048 /* sums of 32 bits hold this number of small integers */
#define N_MOST_WAVES 8
#define N_FINISH_SIDE 32  /* outputs of a block of the second kernel */
#define N_FINISH_LEAST 8  /* this number if they have too many parts */
#define N_FINISH_PARTS 16 /* parts per thread, which waits for them once or twice */

/* The launch of a call, in addition to its variant. */
typedef struct plan {
  long long n_columns; /* outputs of a segment of few; else 1 */
  long long n_packs;   /* elements of the reduced loop, or of a segment */
  uint32_t side;       /* adjacent threads of a block */
} plan;

/* The smallest power of two that is at least n, or `most`, which is also a power of two. */
static uint32_t power_of_two(long long n, uint32_t most) {
  uint32_t p = 1;
  while (p < most && p < n) p *= 2;
  return p;
}

static long long step_of(const cuplug_loop *loop, uint32_t k) {
  return loop->ndim ? loop->strides[loop->ndim - 1][k] : 0;
}

/* ---- 1 and 2: the way, and packs ------------------------------------------------------------- */

/* Returns whether array k is broadcast on a line of n_columns columns. */
static int is_still(const cuplug__reduction *r, uint32_t k, long long n_columns) {
  return !step_of(&r->reduced, k) && (n_columns == 1 || !step_of(&r->kept, k));
}

/* The position in a pack where the elements of array k begin, if its steps between segments equal
 * `like`. */
static int lead_of(const cuplug__reduction *r, uint32_t k, uint32_t like, uint32_t width,
                   long long n_columns) {
  const cuplug_tensor *x = &r->call->tensors[k];
  const uint64_t bytes = (uint64_t)cuplug_element_bytes(x), address = (uintptr_t)x->data;
  const int n_lines = n_columns > 1 ? r->kept.ndim - 1 : r->kept.ndim;
  for (int d = 0; d < n_lines; d++)
    if ((r->kept.strides[d][k] - r->kept.strides[d][like]) % width) return -1;
  return address % bytes ? -1 : (int)(address / bytes % width);
}

/* Returns whether the inputs are segments without gaps, with the same offset in a pack. */
static int is_flat(const cuplug__reduction *r, uint32_t width, long long n_columns) {
  const uint32_t n_inputs = cuplug__reduction_inputs(r);
  int found = -1, lead = -1;
  if (r->reduced.ndim != 1) return 0;
  for (uint32_t k = 0; k < n_inputs; k++) {
    if (is_still(r, k, n_columns)) continue;
    if (step_of(&r->reduced, k) != n_columns || (n_columns > 1 && step_of(&r->kept, k) != 1))
      return 0;
    if (found < 0) lead = lead_of(r, k, found = (int)k, width, n_columns);
    if (lead < 0 || lead_of(r, k, (uint32_t)found, width, n_columns) != lead) return 0;
  }
  return found >= 0 && r->reduced.n * n_columns >= (long long)width * N_FLAT;
}

/* Returns whether few columns are adjacent, in rows that fill a block. */
static int is_few(const cuplug__reduction *r, uint32_t width) {
  const long long n = r->kept.ndim ? r->kept.sizes[r->kept.ndim - 1] : 1;
  const long long least = (long long)width * CUPLUG__N_THREADS * 2;
  return n > 1 && n <= N_FEW && r->reduced.n * n >= least && is_flat(r, width, n);
}

/* Returns the inputs that are broadcast along the reduced loop. */
static uint64_t fixed_arrays(const cuplug__reduction *r) {
  uint64_t fixed = 0;
  for (uint32_t k = 0; k < cuplug__reduction_inputs(r); k++) {
    int d = 0;
    while (d < r->reduced.ndim && !r->reduced.strides[d][k]) d++;
    fixed |= (uint64_t)(d == r->reduced.ndim) << k;
  }
  return fixed;
}

static uint64_t still_arrays(const cuplug__reduction *r, long long n_columns) {
  uint64_t still = 0;
  for (uint32_t k = 0; k < r->call->n_tensors; k++)
    still |= (uint64_t)is_still(r, k, n_columns) << k;
  return still;
}

/* Returns whether the outputs of a pack of columns are contiguous, and can be stored at once. */
static int stores_packs(const cuplug__reduction *r, const cuplug_variant *v) {
  for (uint32_t k = cuplug__reduction_inputs(r); k < r->call->n_tensors; k++) {
    const cuplug_tensor *x = &r->call->tensors[k];
    if ((uintptr_t)x->data % (v->width * (uint64_t)cuplug_element_bytes(x))) return 0;
    for (int d = 0; d < r->kept.ndim; d++)
      if (d == r->kept.ndim - 1 ? r->kept.strides[d][k] != v->width
                                : r->kept.strides[d][k] % v->width)
        return 0;
  }
  return v->columns && v->width > 1;
}

/* Returns whether few elements are reduced to each of many outputs. */
static int is_short(long long n, long long n_outputs) { return n < N_SHORT && n_outputs >= N_MANY; }

/* Returns the elements of a pack: not so many that a thread cannot hold their values, or that
 * neighbors store far apart. */
static uint32_t choose_width(const cuplug__reduction *r, int by_columns) {
  const uint32_t n_inputs = cuplug__reduction_inputs(r);
  uint32_t width = cuplug__pack_width(r->call, n_inputs), widest = 1;
  for (uint32_t k = n_inputs; k < r->call->n_tensors; k++) {
    const uint32_t bytes = (uint32_t)cuplug_element_bytes(&r->call->tensors[k]);
    if (bytes > widest) widest = bytes;
  }
  const int is_storing = by_columns && is_short(r->reduced.n, r->kept.n);
  while (width > 1 && (width * r->source->accumulator_bytes > N_VALUE_BYTES ||
                       (is_storing && width * widest > N_STORE_BYTES)))
    width /= 2;
  return width;
}

static void choose_way(cuplug__reduction *r, cuplug_variant *v, plan *p) {
  const uint32_t n_inputs = cuplug__reduction_inputs(r);
  const int by_columns = cuplug__reduction_by_columns(r);
  const uint32_t width = choose_width(r, by_columns);
  v->few = by_columns && is_few(r, width);
  v->columns = by_columns && !v->few;
  cuplug_loop *along = v->columns ? &r->kept : &r->reduced;
  const cuplug_loop *across = v->columns ? &r->reduced : &r->kept;
  p->n_columns = v->few ? r->kept.sizes[r->kept.ndim - 1] : 1;
  v->width = (uint8_t)width;
  if (v->few) {
    v->flat = 1;
  } else if (width > 1 && cuplug__loop_has_packs(along, across, r->call, n_inputs, width)) {
    v->still = cuplug__loop_take_packs(along, width);
  } else if (width > 1 && !v->columns && is_flat(r, width, 1)) {
    v->flat = 1;
  } else {
    v->width = 1;
  }
  if (v->flat) v->still = still_arrays(r, p->n_columns);
  v->fixed = fixed_arrays(r);
  p->n_packs = v->flat ? (r->reduced.n * p->n_columns + width - 1) / width : r->reduced.n;
  v->stores = (uint8_t)stores_packs(r, v);
}

/* ---- 3: sharing ------------------------------------------------------------------------------ */

/* Packs that a thread waits for at once. Broadcast inputs are in a cache. */
static uint32_t packs_ahead(const cuplug__reduction *r, const cuplug_variant *v) {
  long long bytes = 0;
  uint32_t n = 1;
  for (uint32_t k = 0; k < cuplug__reduction_inputs(r); k++)
    if (step_of(&r->reduced, k)) bytes += v->width * cuplug_element_bytes(&r->call->tensors[k]);
  while (n < N_MOST_AHEAD && bytes && 2 * n * bytes <= N_AHEAD_BYTES) n *= 2;
  return n;
}

static uint32_t side_by_columns(const cuplug__reduction *r, const cuplug_variant *v) {
  long long pack_bytes = 1;
  for (uint32_t k = 0; k < cuplug__reduction_inputs(r); k++) {
    const long long bytes = v->width * cuplug_element_bytes(&r->call->tensors[k]);
    if (bytes > pack_bytes) pack_bytes = bytes;
  }
  const int bytes = v->width > 1 ? N_SIDE_BYTES : N_SIDE_BYTES / 2;
  const uint32_t most = power_of_two(bytes / pack_bytes, CUPLUG__N_THREADS);
  return power_of_two(r->kept.n, most);
}

/* Returns the blocks that the GPU holds at once. */
static long long wave_of(const cuplug__reduction *r) {
  const long long n = core->gpus[r->call->device.id].n_processors;
  return (n > 0 ? n : 1) * N_BLOCKS_HELD;
}

/* Flat rows have a thread for each element that is loaded separately. */
static uint32_t side_by_rows(const cuplug__reduction *r, const cuplug_variant *v,
                             long long n_turns) {
  const uint32_t least = v->flat ? 2u * v->width : 1;
  const long long enough = wave_of(r) * CUPLUG__N_THREADS / r->kept.n;
  uint32_t side = power_of_two(n_turns, CUPLUG__N_THREADS);
  while (side > N_WARP && side / 2 >= enough && side * N_ROW_TURNS > n_turns) side /= 2;
  return side < least ? least : side;
}

static void choose_sharing(const cuplug__reduction *r, cuplug_variant *v, plan *p) {
  const uint32_t ahead = packs_ahead(r, v);
  v->unroll = (uint8_t)power_of_two(p->n_packs, ahead);
  if (v->few) {
    p->side = CUPLUG__N_THREADS;
  } else if (v->columns) {
    v->alone = is_short(p->n_packs, r->kept.n);
    p->side = v->alone ? CUPLUG__N_THREADS : side_by_columns(r, v);
  } else {
    p->side = side_by_rows(r, v, p->n_packs / ahead);
    v->alone = p->side == 1 && r->kept.n >= N_MANY;
    if (v->alone) p->side = CUPLUG__N_THREADS;
  }
}

/* ---- 4: parts -------------------------------------------------------------------------------- */

/* Returns the parts of the reduced loop, with `n_turns` for each thread, for a number of blocks for
 * the outputs. By columns, many blocks exist, and the second kernel takes time for each part. */
static long long count_parts(const cuplug__reduction *r, const cuplug_variant *v, long long n_turns,
                             long long n_blocks) {
  const int by_columns = v->columns || v->few;
  const long long wave = by_columns ? wave_of(r) * 3 / 4 : wave_of(r);
  const long long least = wave / n_blocks, most = N_MOST_WAVES * wave / n_blocks;
  const long long to_finish =
      N_FINISH_PARTS * CUPLUG__N_THREADS / power_of_two(r->kept.n, N_FINISH_LEAST);
  long long n_parts = n_turns / (by_columns ? 2 * N_TURNS : N_TURNS);
  if (n_parts > most) n_parts = most;
  if (n_parts < least) n_parts = least < n_turns ? least : n_turns;
  if (n_parts > to_finish) n_parts = to_finish;
  if (n_parts < n_turns / N_MOST_TURNS) n_parts = n_turns / N_MOST_TURNS;
  return n_parts > 1 ? n_parts : 1;
}

/* Sets the blocks for the outputs, and the number of parts that creates enough blocks. */
static int choose_grid(cuplug__reduction *r, const cuplug_variant *v, const plan *p,
                       cuplug_grid *g) {
  const uint32_t side = p->side, across = CUPLUG__N_THREADS / side;
  const int is_across = v->columns || v->alone;
  const long long of_block = v->few ? p->n_columns : is_across ? side : across;
  const long long shared_by = v->alone ? 1 : v->columns ? across : side;
  const long long n_blocks = (r->kept.n + of_block - 1) / of_block;
  const long long n_turns = p->n_packs / (shared_by * v->unroll);
  const long long n_parts = v->alone ? 1 : count_parts(r, v, n_turns, n_blocks);
  r->n_parts = r->reduced.n ? n_parts : 0;
  r->part = p->n_packs / n_parts;
  *g = (cuplug_grid){.threads = {side, across, 1}};
  if (n_blocks > INT32_MAX)
    return core->fail(cuplug__error_of(r->call), CUPLUG_ERROR_VALUE,
                      "got %lld outputs, expected at most %lld", r->kept.n, INT32_MAX * of_block);
  g->blocks[0] = (uint32_t)n_blocks;
  g->blocks[1] = (uint32_t)r->n_parts;
  g->blocks[2] = 1;
  return CUPLUG_OK;
}

/* ---- The launches ---------------------------------------------------------------------------- */

static cuplug_grid finish_grid(const cuplug__reduction *r) {
  uint32_t side = power_of_two(r->kept.n, N_FINISH_SIDE);
  while (side > N_FINISH_LEAST && r->n_parts * side > N_FINISH_PARTS * CUPLUG__N_THREADS) side /= 2;
  return (cuplug_grid){.blocks = {(uint32_t)((r->kept.n + side - 1) / side), 1, 1},
                       .threads = {side, CUPLUG__N_THREADS / side, 1}};
}

/* Launches overlap if they can, and may be captured into graphs: kernels wait for the previous one
 * themselves. */
static int start(const cuplug__reduction *r, void *kernel, cuplug_grid g, void **arguments) {
  if (core->gpus[r->call->device.id].capability >= 90 &&
      *core->driver_version >= CUPLUG__PROGRAMMATIC_GRAPHS)
    g.flags = CUPLUG_PROGRAMMATIC;
  return r->call->services->launch(r->call, kernel, &g, arguments);
}

static int launch(cuplug__reduction *r, const cuplug_variant *v, plan *p) {
  const cuplug_call *call = r->call;
  const uint32_t n_arrays = r->kept.n_arrays;
  cuplug_divisor kept[r->kept.ndim + 1], reduced[r->reduced.ndim + 1];
  long long kept_steps[(uint32_t)(r->kept.ndim + 1) * n_arrays];
  long long reduced_steps[(uint32_t)(r->reduced.ndim + 1) * n_arrays];
  cuplug_grid g;
  int status = choose_grid(r, v, p, &g);
  if (status) return status;
  r->kept.n *= v->columns ? v->width : 1; /* outputs without packs */
  if ((status = cuplug__reduction_partials(r))) return status;
  cuplug__loop_pack(&r->kept, v->wide, kept, kept_steps);
  cuplug__loop_pack(&r->reduced, v->wide, reduced, reduced_steps);
  long long n_elements = r->reduced.n * (v->columns || v->flat ? 1 : v->width);
  long long n_reduced = r->reduced.n * p->n_columns;
  long long period = p->n_columns; /* threads whose packs begin with the same column */
  for (long long w = v->width; w > 1 && period % 2 == 0; w /= 2) period /= 2;
  void *arguments[] = {r->data,       (void *)call->scalars,
                       &r->kept.n,    &n_reduced,
                       &r->part,      kept,
                       kept_steps,    reduced,
                       reduced_steps, &r->partials,
                       &n_elements,   &r->n_parts,
                       &p->n_columns, &period};
  if (r->n_parts) status = start(r, r->code->function, g, arguments);
  if (status || r->n_parts == 1) return status;
  return start(r, r->code->finish, finish_grid(r), arguments);
}

static int reduce_on_cuda(cuplug__reduction *r, cuplug_variant *v) {
  plan p;
  choose_way(r, v, &p);
  choose_sharing(r, v, &p);
  v->ndim = (uint8_t)r->kept.ndim;
  v->n_reduced = (uint8_t)r->reduced.ndim;
  v->wide = r->kept.n >= 1ll << 30 || r->reduced.n >= 1ll << 30;
  int status = cuplug__variant_find(r->source, v, &r->code, cuplug__error_of(r->call));
  return status ? status : launch(r, v, &p);
}

int cuplug_reduction_cuda(const cuplug_call *call) {
  return cuplug__reduction_run(cuplug__reduction_loops, reduce_on_cuda, call);
}

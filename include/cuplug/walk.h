/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel iterates over the elements of arrays of any strides, planned on the host: the
 * strides as a loop of few dimensions, and its division into blocks. The kernels are built from
 * <cuplug/walk.cuh>. One rule, the first that fits:
 * - packs: all arrays are contiguous and aligned, and threads take 16 bytes at once;
 * - tiles: an input is contiguous along another dimension than the outputs, and goes through shared
 *   memory;
 * - lines: threads take packs that begin at the packs of an output. Contiguous elements are loaded
 *   16 bytes at once at any address, the rest element by element.
 *
 * Not part of the ABI. */
#ifndef CUPLUG_WALK_H
#define CUPLUG_WALK_H

#include <cuplug/loop.h>
#include <cuplug/plugin.h>
#include <string.h>

CUPLUG__BEGIN_C

/* ---- Loops ------------------------------------------------------------------------------------
 */

static inline void cuplug__loop_start(cuplug_loop *loop, uint32_t n_arrays,
                                      long long (*strides)[CUPLUG_MAX_LOOP_ARRAYS]) {
  loop->strides = strides;
  loop->ndim = 0;
  loop->n_arrays = n_arrays;
  loop->n = 1;
}

static inline long long cuplug__stride(const cuplug_tensor *x, int32_t dim) {
  long long stride = 1;
  if (x->strides) return x->strides[dim];
  for (int32_t d = x->ndim - 1; d > dim; d--) stride *= x->shape[d];
  return stride;
}

/* Adds dimension `dim` of the tensors, inside of those added before. The arrays in `still` (a bit
 * for each) do not move along it. */
static inline void cuplug__loop_add(cuplug_loop *loop, const cuplug_tensor *tensors, int32_t dim,
                                    uint64_t still) {
  long long size = 1;
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    if (!(still >> k & 1)) size = tensors[k].shape[dim];
  loop->n *= size;
  if (size == 1) return;
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    loop->strides[loop->ndim][k] = still >> k & 1 ? 0 : cuplug__stride(&tensors[k], dim);
  loop->sizes[loop->ndim++] = size;
}

static inline long long cuplug__magnitude(long long x) { return x < 0 ? -x : x; }

/* Returns whether dimension b is to be outside of a: array `first` decides, else the last one that
 * has a stride along both. */
static inline int cuplug__loop_is_slower(const cuplug_loop *loop, uint32_t first, int a, int b) {
  for (uint32_t i = 0; i <= loop->n_arrays; i++) {
    const uint32_t k = i ? loop->n_arrays - i : first;
    long long x = cuplug__magnitude(loop->strides[a][k]);
    long long y = cuplug__magnitude(loop->strides[b][k]);
    if (x && y && x != y) return y > x;
  }
  return 0;
}

static inline void cuplug__loop_swap(cuplug_loop *loop, int a, int b) {
  long long strides[CUPLUG_MAX_LOOP_ARRAYS], size = loop->sizes[a];
  const size_t bytes = loop->n_arrays * sizeof(*strides);
  memcpy(strides, loop->strides[a], bytes);
  memcpy(loop->strides[a], loop->strides[b], bytes);
  memcpy(loop->strides[b], strides, bytes);
  loop->sizes[a] = loop->sizes[b];
  loop->sizes[b] = size;
}

/* Insertion sort: the dimensions are nearly always sorted. */
static inline void cuplug__loop_sort(cuplug_loop *loop, uint32_t first) {
  for (int d = 1; d < loop->ndim; d++)
    for (int at = d; at > 0 && cuplug__loop_is_slower(loop, first, at - 1, at); at--)
      cuplug__loop_swap(loop, at - 1, at);
}

/* Returns whether in all arrays dimension `outer` continues at the end of `inner`, the next. */
static inline int cuplug__loop_can_merge(const cuplug_loop *loop, int outer, int inner) {
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    if (loop->strides[outer][k] != loop->strides[inner][k] * loop->sizes[inner]) return 0;
  return 1;
}

/* Merges dimensions that all arrays walk through like one. */
static inline void cuplug__loop_merge(cuplug_loop *loop) {
  int last = 0; /* of the dimensions kept */
  for (int d = 1; d < loop->ndim; d++) {
    int merges = cuplug__loop_can_merge(loop, last, d);
    if (!merges) last++;
    loop->sizes[last] = merges ? loop->sizes[last] * loop->sizes[d] : loop->sizes[d];
    if (last != d)
      memcpy(loop->strides[last], loop->strides[d], loop->n_arrays * sizeof(**loop->strides));
  }
  if (loop->ndim) loop->ndim = last + 1;
}

/* The same. With `any_order` the fastest of the last array becomes the last, then of the others:
 * elements are then not met in C order. */
static inline void cuplug__loop_collapse(cuplug_loop *loop, int any_order) {
  if (any_order) cuplug__loop_sort(loop, loop->n_arrays - 1);
  cuplug__loop_merge(loop);
}

/* 1 when array k is met element after element in memory. */
static inline int cuplug__loop_is_flat(const cuplug_loop *loop, uint32_t k) {
  return !loop->ndim || (loop->ndim == 1 && loop->strides[0][k] == 1);
}

/* 1 if array k is contiguous, in the order of the loop. */
static inline int cuplug__loop_is_together(const cuplug_loop *loop, uint32_t k) {
  long long expected = 1;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    if (loop->strides[d][k] != expected) return 0;
    expected *= loop->sizes[d];
  }
  return 1;
}

/* T. Granlund, P. L. Montgomery: Division by invariant integers using multiplication, PLDI 1994. */
static inline cuplug_divisor cuplug__divisor(long long size, int is_wide) {
  __extension__ typedef unsigned __int128 uint128;
  cuplug_divisor d = {size, 0, 0, 0};
  if (!size) return d;
  while (d.shift < 62 && 1ll << d.shift < size) d.shift++;
  const uint64_t left = (1ull << d.shift) - (uint64_t)size;
  if (size < 1ll << 31) d.magic = (unsigned)((left << 32) / (uint64_t)size + 1);
  if (is_wide) d.wide_magic = (uint64_t)(((uint128)left << 64) / (uint64_t)size) + 1;
  return d;
}

/* ---- Plans ------------------------------------------------------------------------------------
 */

#define CUPLUG__N_THREADS 256         /* of a block */
#define CUPLUG__WIDE_FROM (1ll << 30) /* elements that are numbered with 64 bits */
#define CUPLUG__TILE_FROM 16          /* sizes of dimensions that tiles pay for */
#define CUPLUG__TILE_BYTES 40         /* of one element of each array in tiles of 32 */

/* Elements of a tile along each of its dimensions, by the bytes of one of each input. */
#define CUPLUG__TILE_SIDE(bytes) ((bytes) <= 1 ? 128 : (bytes) <= 8 ? 64 : 32)

/* Packs of a thread, in lines: narrow elements take many registers. */
#define CUPLUG__LINES_UNROLL(width) ((width) < 8 ? 2 : 1)

typedef enum cuplug_walk_kind {
  CUPLUG_WALK_PACKS,
  CUPLUG_WALK_LINES,
  CUPLUG_WALK_TILES
} cuplug_walk_kind;

/* The largest power of two of elements that take no more than 16 bytes in each of the arrays. */
static inline uint32_t cuplug__pack_width(const cuplug_call *call, uint32_t n_arrays) {
  int64_t greatest = 1;
  for (uint32_t k = 0; k < n_arrays; k++) {
    int64_t bytes = cuplug_element_bytes(&call->tensors[k]);
    if (bytes > greatest) greatest = bytes;
  }
  return greatest < 16 ? (uint32_t)(16 / greatest) : 1;
}

/* 1 when all arrays are contiguous, and begin where packs of `width` may, if there is one. */
static inline int cuplug__walk_is_flat(const cuplug_loop *loop, const cuplug_tensor *tensors,
                                       uint32_t width) {
  uint64_t rests = 0;
  for (uint32_t k = 0; k < loop->n_arrays; k++) {
    const cuplug_tensor *x = &tensors[k];
    if (!cuplug__loop_is_flat(loop, k)) return 0;
    rests |= (uintptr_t)x->data % (width * (uint64_t)cuplug_element_bytes(x));
  }
  return !rests || loop->n < width;
}

/* The dimension along which input k is contiguous, if that is not the last, else -1. */
static inline int cuplug__walk_own_dim(const cuplug_loop *loop, uint32_t k) {
  const int last = loop->ndim - 1;
  if (cuplug__magnitude(loop->strides[last][k]) < 2) return -1;
  for (int d = 0; d < last; d++)
    if (cuplug__magnitude(loop->strides[d][k]) == 1 && loop->sizes[d] >= CUPLUG__TILE_FROM)
      return d;
  return -1;
}

/* The inputs, not in `written`, that are read through tiles, all along one dimension, which becomes
 * the last but one; 0 if tiles do not pay. */
static inline uint64_t cuplug__walk_across(cuplug_loop *loop, const cuplug_tensor *tensors,
                                           uint64_t written) {
  int64_t bytes = 0;
  uint64_t across = 0;
  int dim = -1;
  if (loop->ndim < 2 || loop->sizes[loop->ndim - 1] < CUPLUG__TILE_FROM) return 0;
  for (uint32_t k = 0; k < loop->n_arrays; k++) {
    const int own = written >> k & 1 ? -1 : cuplug__walk_own_dim(loop, k);
    const int64_t with = bytes + cuplug_element_bytes(&tensors[k]);
    if (own < 0 || (dim >= 0 && own != dim) || with > CUPLUG__TILE_BYTES) continue;
    dim = own;
    bytes = with;
    across |= 1ull << k;
  }
  for (int d = dim; across && d < loop->ndim - 2; d++) cuplug__loop_swap(loop, d, d + 1);
  return across;
}

static inline void cuplug__cut_tiles(const cuplug_loop *loop, long long side,
                                     cuplug_loop_split *cut) {
  const long long along = (loop->sizes[loop->ndim - 1] + side - 1) / side;
  const long long rows = (loop->sizes[loop->ndim - 2] + side - 1) / side;
  cut->items = cuplug__divisor(along, 0);
  cut->rows = cuplug__divisor(rows, 0);
  cut->n_items = along * rows;
  for (int d = 0; d < loop->ndim - 2; d++) cut->n_items *= loop->sizes[d];
}

/* One line if all written arrays are contiguous; else the last dimension is one. */
static inline void cuplug__cut_lines(const cuplug_loop *loop, const cuplug_tensor *tensors,
                                     uint64_t written, uint32_t width, cuplug_loop_split *cut) {
  const int last = loop->ndim - 1;
  int is_one = 1;
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    if (written >> k & 1) is_one &= cuplug__loop_is_together(loop, k);
  const cuplug_tensor *x = &tensors[cut->anchor];
  const uint64_t bytes = (uint64_t)cuplug_element_bytes(x);
  cut->lead = is_one ? (int)((uintptr_t)x->data % (width * bytes) / bytes) : 0;
  cut->line = is_one ? loop->n : loop->sizes[last];
  const long long room = cut->line + (is_one ? cut->lead : (long long)width - 1);
  const long long n_packs = (room + width - 1) / width;
  cut->items = cuplug__divisor(is_one ? 0 : n_packs, 1);
  cut->n_items = n_packs * (loop->n / cut->line);
}

/* Plans a walk over a loop that was collapsed and has elements, for kernels that load `width`
 * elements at once and have tiles of `side`, none if that is 0. `written` has a bit for each array
 * that is written, at least one. May reorder the loop's dimensions. */
static inline cuplug_walk_kind cuplug__walk(cuplug_loop *loop, const cuplug_tensor *tensors,
                                            uint64_t written, uint32_t width, uint32_t side,
                                            cuplug_loop_split *cut) {
  memset(cut, 0, sizeof *cut);
  if (cuplug__walk_is_flat(loop, tensors, width)) {
    loop->ndim = 0;
    cut->n_items = loop->n / width;
    return CUPLUG_WALK_PACKS;
  }
  cut->across = side ? cuplug__walk_across(loop, tensors, written) : 0;
  cut->ndim = loop->ndim;
  cut->anchor = __builtin_ctzll(written);
  for (uint32_t k = 0; k < loop->n_arrays; k++) {
    cut->near |= (uint64_t)(loop->strides[loop->ndim - 1][k] == 1) << k;
    cut->still |= (uint64_t)(loop->strides[loop->ndim - 1][k] == 0) << k;
  }
  if (cut->across)
    cuplug__cut_tiles(loop, side, cut);
  else
    cuplug__cut_lines(loop, tensors, written, width, cut);
  return cut->across ? CUPLUG_WALK_TILES : CUPLUG_WALK_LINES;
}

CUPLUG__END_C
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of gather.c. Rows are moved in words of 1 to 16 bytes, the widest
 * that divide the row's size and the addresses. For narrow rows, adjacent threads move adjacent
 * words of the output, whatever their rows. If rows are taken from each of many parts of the
 * source, threads move the same words of several parts, so that an index is resolved once for all
 * of them. */
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

#include "gather/indices.cuh"

namespace {

constexpr int UNROLL = 4; /* independent loads per thread */

/* Adjacent values, loaded and stored at once if they are aligned. */
template <typename T, int N = UNROLL> struct alignas(sizeof(T) * N) pack { T at[N]; };

/* Rows of one word, UNROLL for each thread: adjacent if `packed`, else a block apart. */
template <typename Word, typename Index>
__global__ void __launch_bounds__(THREADS)
    gather_words_kernel(const Word *__restrict__ source, const Index *__restrict__ index,
                        Word *__restrict__ out, shape s, bool packed, cuplug_fault *fault) {
  const int step = packed ? 1 : THREADS;
  const int64_t first =
      (int64_t)blockIdx.x * (THREADS * UNROLL) + threadIdx.x * (packed ? UNROLL : 1);
  bool whole = packed && first + UNROLL <= s.n;
  pack<Index> indices;
  pack<Word> words;
  int64_t row[UNROLL];
  if (whole) {
    indices = *(const pack<Index> *)(index + first);
  } else {
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      indices.at[u] = first + u * step < s.n ? index[first + u * step] : 0;
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const int64_t at = first + u * step;
    row[u] = at < s.n ? resolve(indices.at[u], s, at, fault) : -1;
    whole &= row[u] >= 0;
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (row[u] >= 0) words.at[u] = source[row[u]];
  if (whole) {
    *(pack<Word> *)(out + first) = words;
    return;
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (row[u] >= 0) out[first + u * step] = words.at[u];
}

/* Rows of a few words: a word of the output for each thread, UNROLL of them a block apart. `by` is
 * n_words. */
template <typename Word, typename Index>
__global__ void __launch_bounds__(THREADS)
    gather_narrow_kernel(const Word *__restrict__ source, const __grid_constant__ Index index,
                         Word *__restrict__ out, const __grid_constant__ shape s, cuplug_divisor by,
                         cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
  const int64_t n = s.n * s.n_words;
  int64_t i[UNROLL], row[UNROLL];
  Word word[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    i[u] = first + u * THREADS < n ? cuplug::divide(first + u * THREADS, by) : -1;
  index.find(i, s, fault, row);
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (row[u] >= 0) word[u] = source[(row[u] - i[u]) * s.n_words + first + u * THREADS];
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    if (row[u] >= 0) out[first + u * THREADS] = word[u];
}

/* Wider rows: blockDim.x threads share a row, blockDim.y rows are adjacent, with UNROLL rows each.
 * gridDim.y blocks share a row. */
template <typename Word, typename Index>
__global__ void __launch_bounds__(THREADS)
    gather_rows_kernel(const Word *__restrict__ source, const __grid_constant__ Index index,
                       Word *__restrict__ out, const __grid_constant__ shape s,
                       cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (blockDim.y * UNROLL) + threadIdx.y;
  int64_t at[UNROLL], row[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
    at[u] = first + u * blockDim.y < s.n ? first + u * blockDim.y : -1;
  index.find(at, s, fault, row);
  const int64_t begin = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
  for (int64_t w = begin; w < s.n_words; w += (int64_t)gridDim.y * blockDim.x) {
    Word word[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (row[u] >= 0) word[u] = source[row[u] * s.n_words + w];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (row[u] >= 0) out[at[u] * s.n_words + w] = word[u];
  }
}

/* Rows from each of n_parts parts: a part of the output has n words, and a part of the source
 * n_from. */
struct columns {
  any_index index;
  shape s;
  int64_t n_parts, n, n_from;
  cuplug_divisor by; /* n_words */
  unsigned n_tiles;  /* blocks that share the words of a part */
  unsigned n_groups; /* such blocks, which process parts in turn */
};

/* Adjacent words that a thread stores at once, if possible, and the number of parts whose words it
 * loads before it stores the first. */
template <typename Word> constexpr int ABREAST = sizeof(Word) < 4 ? 4 : 16 / sizeof(Word);
template <typename Word, int SIDE>
constexpr int PARTS = SIDE > 1           ? 8 / SIDE
                      : sizeof(Word) < 4 ? 8
                                         : 4;

/* The positions of a block's words in each part of the source, -1 for bad indices. */
__device__ inline void find_words(const columns &c, int64_t begin, int n, int64_t *places,
                                  cuplug_fault *fault) {
  const int own = threadIdx.y * blockDim.x + threadIdx.x;
  const int64_t word = begin + own;
  if (own < n && word < c.n) {
    const int64_t number = cuplug::divide(word, c.by);
    const int64_t row = c.index.row_of_part(number, c.s, fault);
    places[own] = row < 0 ? -1 : (row - number) * c.s.n_words + word;
  }
  __syncthreads();
}

/* `bad` has a bit for each word that is not stored. */
template <typename Word, int SIDE>
__device__ inline void store(Word *to, const pack<Word, SIDE> &words, unsigned bad) {
  if (!bad) {
    *(pack<Word, SIDE> *)to = words;
    return;
  }
#pragma unroll
  for (int k = 0; k < SIDE; k++)
    if (!(bad >> k & 1)) to[k] = words.at[k];
}

/* SIDE words for each of blockDim.x threads, the same in all parts. blockDim.y parts are adjacent,
 * PARTS of each thread at once. */
template <typename Word, int SIDE>
__global__ void __launch_bounds__(THREADS)
    gather_columns_kernel(const Word *__restrict__ source, Word *__restrict__ out,
                          const __grid_constant__ columns c, cuplug_fault *fault) {
  constexpr int N = PARTS<Word, SIDE>;
  __shared__ int64_t places[THREADS];
  const unsigned group = blockIdx.x / c.n_tiles, tile = blockIdx.x - group * c.n_tiles;
  const int64_t begin = (int64_t)tile * (blockDim.x * SIDE), own = begin + threadIdx.x * SIDE;
  find_words(c, begin, blockDim.x * SIDE, places, fault);
  if (own >= c.n) return;
  const int64_t at_once = blockDim.y * N, step = c.n_groups * at_once;
  int64_t part = group * at_once + threadIdx.y;
  const Word *from[SIDE];
  Word *to = out + part * c.n + own;
  unsigned bad = 0;
#pragma unroll
  for (int k = 0; k < SIDE; k++) {
    const int64_t place = places[threadIdx.x * SIDE + k];
    bad |= (unsigned)(place < 0) << k;
    from[k] = source + part * c.n_from + (place < 0 ? 0 : place); /* an unused load if < 0 */
  }
  for (; part < c.n_parts; part += step, to += step * c.n) {
    pack<Word, SIDE> words[N];
#pragma unroll
    for (int u = 0; u < N; u++)
      if (part + u * blockDim.y < c.n_parts)
#pragma unroll
        for (int k = 0; k < SIDE; k++) words[u].at[k] = from[k][u * blockDim.y * c.n_from];
#pragma unroll
    for (int u = 0; u < N; u++)
      if (part + u * blockDim.y < c.n_parts)
        store<Word, SIDE>(to + u * blockDim.y * c.n, words[u], bad);
#pragma unroll
    for (int k = 0; k < SIDE; k++) from[k] += step * c.n_from;
  }
}

constexpr int NARROW = 32; /* words: for wider rows, no warp has more than two rows */

template <typename Word, typename Index>
int launch_rows(const cuplug_call *call, Index index, const shape &s) {
  const int64_t n = s.n * s.n_words;
  if (s.n_words && s.n_words < NARROW)
    return cuplug_launch<gather_narrow_kernel<Word, Index>>(
        call, n_blocks(n, THREADS * UNROLL), THREADS, 0, (const Word *)call->tensors[0].data, index,
        (Word *)call->outputs[0].data, s, cuplug__divisor(s.n_words, 1), call->fault);
  const dim3 threads = row_threads(s);
  return cuplug_launch<gather_rows_kernel<Word, Index>>(
      call, row_blocks(s, threads, threads.y * UNROLL), threads, 0,
      (const Word *)call->tensors[0].data, index, (Word *)call->outputs[0].data, s, call->fault);
}

template <typename Word, typename I>
int launch(const cuplug_call *call, plain_index<I> index, const shape &s) {
  if (s.n_words != 1) return launch_rows<Word>(call, index, s);
  Word *out = (Word *)call->outputs[0].data;
  /* wider packs would leave gaps between the stores of adjacent threads */
  const bool packed = sizeof(Word) * UNROLL <= 16 &&
                      (uintptr_t)index.index % alignof(pack<I>) == 0 &&
                      (uintptr_t)out % alignof(pack<Word>) == 0;
  return cuplug_launch<gather_words_kernel<Word, I>>(call, n_blocks(s.n, THREADS * UNROLL), THREADS,
                                                     0, (const Word *)call->tensors[0].data,
                                                     index.index, out, s, packed, call->fault);
}

/* More blocks than fill a GPU, if each has BATCHES times the work that its threads load at once. */
template <typename Word, int SIDE> int launch_columns(const cuplug_call *call, columns c) {
  constexpr int64_t BATCHES = 8;
  const int64_t n_packs = (c.n + SIDE - 1) / SIDE, tiles = n_blocks(n_packs, THREADS / SIDE);
  const unsigned along = n_blocks(n_packs, tiles);
  const dim3 threads(along, THREADS / along);
  const int64_t batches = n_blocks(c.n_parts, threads.y * PARTS<Word, SIDE>);
  int64_t groups = n_blocks(batches, BATCHES);
  if (groups * tiles < FILLED) groups = n_blocks(FILLED, tiles);
  if (groups > batches) groups = batches > 1 ? batches : 1;
  c.n_tiles = (unsigned)tiles, c.n_groups = (unsigned)groups;
  return cuplug_launch<gather_columns_kernel<Word, SIDE>>(
      call, c.n_tiles * c.n_groups, threads, 0, (const Word *)call->tensors[0].data,
      (Word *)call->outputs[0].data, c, call->fault);
}

/* For rows of no bytes, the indices are checked as words of no part. Packs of few parts would leave
 * threads without work. */
template <typename Word> int launch(const cuplug_call *call, any_index index, shape s) {
  constexpr int SIDE = ABREAST<Word>;
  const int64_t n_parts = s.n_words ? s.n / index.n : 0;
  s.n_words += !s.n_words;
  const columns c = {
      index, s, n_parts, index.n * s.n_words, s.m * s.n_words, cuplug__divisor(s.n_words, 1), 0, 0};
  const bool packed = c.n % SIDE == 0 && n_parts >= 8 &&
                      (uintptr_t)call->outputs[0].data % alignof(pack<Word, SIDE>) == 0;
  return packed ? launch_columns<Word, SIDE>(call, c) : launch_columns<Word, 1>(call, c);
}

template <typename Index>
int launch_words(const cuplug_call *call, Index index, shape s, int64_t row_bytes) {
  const uint64_t multiples =
      (uint64_t)row_bytes | (uint64_t)call->tensors[0].data | (uint64_t)call->outputs[0].data;
  const int64_t word_bytes = multiples % 16 == 0  ? 16
                             : multiples % 8 == 0 ? 8
                             : multiples % 4 == 0 ? 4
                             : multiples % 2 == 0 ? 2
                                                  : 1;
  s.n_words = row_bytes / word_bytes;
  switch (word_bytes) {
  case 16:
    return launch<uint4>(call, index, s);
  case 8:
    return launch<uint2>(call, index, s);
  case 4:
    return launch<uint32_t>(call, index, s);
  case 2:
    return launch<uint16_t>(call, index, s);
  default:
    return launch<uint8_t>(call, index, s);
  }
}

int gather(const cuplug_call *call, const cuplug_tensor *array, int64_t axis) {
  const cuplug_tensor *source = &call->tensors[0];
  const gather_sizes sizes = gather_sizes_of(source, axis);
  const int64_t row_bytes = sizes.width * cuplug_element_bytes(source);
  any_index index;
  shape s;
  const int status = any_index_of(call, array, sizes, &index, &s);
  if (status || s.n == 0) return status;
  return with_index(index, s, [&](auto own) { return launch_words(call, own, s, row_bytes); });
}

} // namespace

CUPLUG_ENTRY int gather_cuda(const cuplug_call *call) {
  return gather(call, &call->tensors[1], call->n_scalars > 1 ? call->scalars[1].i : 0);
}

CUPLUG_ENTRY int gather_one_cuda(const cuplug_call *call) {
  return gather(call, nullptr, call->scalars[2].i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of gather.c. Rows are moved in words of 1 to 16 bytes, the widest
 * that the row's size and the addresses are multiples of. Of narrow rows, threads side by side take
 * words side by side in the output, whichever rows these are of. */
#include <cuplug/walk.cuh>
#include <cuplug/walk.h>

#include "gather/indices.cuh"

namespace {

constexpr int UNROLL = 4; /* independent loads of each thread */

/* UNROLL values side by side, loaded and stored at once where they are aligned. */
template <typename T> struct alignas(sizeof(T) * UNROLL) pack { T at[UNROLL]; };

/* Rows of one word, UNROLL for each thread: side by side where `packed`, else a block apart. */
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

/* Wider rows: blockDim.x threads go along a row, blockDim.y rows side by side, UNROLL rows each.
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

constexpr int NARROW = 32; /* words: of wider rows, no warp has more than two */

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
  /* wider packs would leave gaps between what threads side by side store at once */
  const bool packed = sizeof(Word) * UNROLL <= 16 &&
                      (uintptr_t)index.index % alignof(pack<I>) == 0 &&
                      (uintptr_t)out % alignof(pack<Word>) == 0;
  return cuplug_launch<gather_words_kernel<Word, I>>(call, n_blocks(s.n, THREADS * UNROLL), THREADS,
                                                     0, (const Word *)call->tensors[0].data,
                                                     index.index, out, s, packed, call->fault);
}

template <typename Word> int launch(const cuplug_call *call, any_index index, const shape &s) {
  return launch_rows<Word>(call, index, s);
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

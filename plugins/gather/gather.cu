/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of gather.c. Rows are moved in words of 1 to 16 bytes, the widest
 * that the row's size and the addresses are multiples of. */
#include <cuplug/plugin.h>

namespace {

constexpr int THREADS = 256;
constexpr int UNROLL = 4; /* independent loads of each thread */
enum { RAISE, WRAP, CLIP };

/* n indices; rows of n_words words; m rows in the source. */
struct shape {
  int64_t n, m, n_words;
  int mode;
};

/* The row that index number `at` means. -1 for none, which is recorded. */
__device__ inline int64_t resolve(int64_t index, const shape &s, int64_t at, cuplug_fault *fault) {
  int64_t row = index;
  if (s.mode == RAISE) {
    row += row < 0 ? s.m : 0;
    if ((uint64_t)row < (uint64_t)s.m) return row;
    cuplug_fault_index(fault, 1, at, index, -s.m, s.m);
    return -1;
  }
  if (s.mode == CLIP) return row < 0 ? 0 : row < s.m ? row : s.m - 1;
  row %= s.m;
  return row < 0 ? row + s.m : row;
}

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

/* Wider rows: blockDim.x threads go along a row, blockDim.y rows side by side, UNROLL rows each. */
template <typename Word, typename Index>
__global__ void __launch_bounds__(THREADS)
    gather_rows_kernel(const Word *__restrict__ source, const Index *__restrict__ index,
                       Word *__restrict__ out, shape s, cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (blockDim.y * UNROLL) + threadIdx.y;
  int64_t row[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const int64_t at = first + u * blockDim.y;
    row[u] = at < s.n ? resolve(index[at], s, at, fault) : -1;
  }
  for (int64_t w = threadIdx.x; w < s.n_words; w += blockDim.x) {
    Word word[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (row[u] >= 0) word[u] = source[row[u] * s.n_words + w];
#pragma unroll
    for (int u = 0; u < UNROLL; u++)
      if (row[u] >= 0) out[(first + u * blockDim.y) * s.n_words + w] = word[u];
  }
}

unsigned n_blocks(int64_t n, int64_t per_block) {
  return (unsigned)((n + per_block - 1) / per_block);
}

template <typename Word, typename Index> int launch(const cuplug_call *call, const shape &s) {
  const Word *source = (const Word *)call->tensors[0].data;
  const Index *index = (const Index *)call->tensors[1].data;
  Word *out = (Word *)call->tensors[2].data;
  const bool packed =
      (uintptr_t)index % alignof(pack<Index>) == 0 && (uintptr_t)out % alignof(pack<Word>) == 0;
  if (s.n_words == 1)
    return cuplug_launch<gather_words_kernel<Word, Index>>(call, n_blocks(s.n, THREADS * UNROLL),
                                                           THREADS, 0, source, index, out, s,
                                                           packed, call->fault);
  unsigned along = 1;
  while (along < s.n_words && along < THREADS) along *= 2;
  const dim3 threads(along, THREADS / along);
  return cuplug_launch<gather_rows_kernel<Word, Index>>(
      call, n_blocks(s.n, threads.y * UNROLL), threads, 0, source, index, out, s, call->fault);
}

template <typename Index> int launch_words(const cuplug_call *call, shape s, int64_t row_bytes) {
  const uint64_t multiples =
      (uint64_t)row_bytes | (uint64_t)call->tensors[0].data | (uint64_t)call->tensors[2].data;
  const int64_t word_bytes = multiples % 16 == 0  ? 16
                             : multiples % 8 == 0 ? 8
                             : multiples % 4 == 0 ? 4
                             : multiples % 2 == 0 ? 2
                                                  : 1;
  s.n_words = row_bytes / word_bytes;
  switch (word_bytes) {
  case 16:
    return launch<uint4, Index>(call, s);
  case 8:
    return launch<uint2, Index>(call, s);
  case 4:
    return launch<uint32_t, Index>(call, s);
  case 2:
    return launch<uint16_t, Index>(call, s);
  default:
    return launch<uint8_t, Index>(call, s);
  }
}

} // namespace

CUPLUG_ENTRY int gather_cuda(const cuplug_call *call) {
  const cuplug_tensor *source = &call->tensors[0], *index = &call->tensors[1];
  const shape s = {cuplug_n_elements(index), source->shape[0], 0, (int)call->scalars[0].i};
  int64_t row_bytes = cuplug_element_bytes(source);
  for (int32_t k = 1; k < source->ndim; k++) row_bytes *= source->shape[k];
  if (s.n == 0) return CUPLUG_OK;
  if (s.m == 0)
    return cuplug_fail(call, CUPLUG_ERROR_INDEX,
                       "source: seen an empty axis 0, wanted at least one row to take from");
  return cuplug_type(index) == CUPLUG_INT64 ? launch_words<int64_t>(call, s, row_bytes)
                                            : launch_words<int32_t>(call, s, row_bytes);
}

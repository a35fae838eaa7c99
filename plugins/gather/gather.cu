/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of gather.c. Rows are moved in words of 1 to 16 bytes, the widest
 * that the row's size and the addresses are multiples of. */
#include <cuplug/plugin.h>

namespace {

constexpr int THREADS = 256;
constexpr int UNROLL = 4;         /* independent loads of each thread */
constexpr unsigned FILLED = 2048; /* blocks that keep any GPU busy */
enum { RAISE, WRAP, CLIP };

/* n rows of n_words words are taken, from m in the source (in each of its parts). */
struct shape {
  int64_t n, m, n_words;
  int mode;
};

/* The row that an index means, or -1 for none. */
__host__ __device__ inline int64_t resolve(int64_t index, const shape &s) {
  int64_t row = index;
  if (s.mode == RAISE) {
    row += row < 0 ? s.m : 0;
    return (uint64_t)row < (uint64_t)s.m ? row : -1;
  }
  if (s.mode == CLIP) return row < 0 ? 0 : row < s.m ? row : s.m - 1;
  row %= s.m;
  return row < 0 ? row + s.m : row;
}

/* Of index number `at`; that there is none is recorded. */
__device__ inline int64_t resolve(int64_t index, const shape &s, int64_t at, cuplug_fault *fault) {
  const int64_t row = resolve(index, s);
  if (row < 0) cuplug_fault_index(fault, 1, at, index, -s.m, s.m);
  return row;
}

/* Along the first axis: row i is index number i. */
template <typename I> struct plain_index {
  const I *index;
  __device__ int64_t row(int64_t i, const shape &s, cuplug_fault *fault) const {
    return resolve(index[i], s, i, fault);
  }
};

/* Along any axis, with an index of any dtype: of n rows in each part of the source. */
struct any_index {
  const void *index; /* NULL: `only`, already resolved, is taken of each part */
  int64_t n, only;
  uint32_t type;

  /* What no int64 holds becomes one that means the same. */
  __device__ int64_t at(int64_t i, const shape &s) const {
    switch (type) {
    case CUPLUG_INT8:
      return ((const int8_t *)index)[i];
    case CUPLUG_INT16:
      return ((const int16_t *)index)[i];
    case CUPLUG_INT32:
      return ((const int32_t *)index)[i];
    case CUPLUG_UINT8:
      return ((const uint8_t *)index)[i];
    case CUPLUG_UINT16:
      return ((const uint16_t *)index)[i];
    case CUPLUG_UINT32:
      return ((const uint32_t *)index)[i];
    case CUPLUG_UINT64: {
      const uint64_t u = ((const uint64_t *)index)[i];
      return u <= INT64_MAX ? u : s.mode == WRAP ? u % (uint64_t)s.m : INT64_MAX;
    }
    default:
      return ((const int64_t *)index)[i];
    }
  }

  __device__ int64_t row(int64_t i, const shape &s, cuplug_fault *fault) const {
    const bool is_small = s.n <= UINT32_MAX; /* whose division takes a fraction of the time */
    const int64_t part = is_small ? (uint32_t)i / (uint32_t)n : i / n, place = i - part * n;
    const int64_t found = index ? resolve(at(place, s), s, place, fault) : only;
    return found < 0 ? -1 : part * s.m + found;
  }
};

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

/* Wider rows: blockDim.x threads go along a row, blockDim.y rows side by side, UNROLL rows each.
 * gridDim.y blocks share a row. */
template <typename Word, typename Index>
__global__ void __launch_bounds__(THREADS)
    gather_rows_kernel(const Word *__restrict__ source, Index index, Word *__restrict__ out,
                       shape s, cuplug_fault *fault) {
  const int64_t first = (int64_t)blockIdx.x * (blockDim.y * UNROLL) + threadIdx.y;
  int64_t row[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const int64_t at = first + u * blockDim.y;
    row[u] = at < s.n ? index.row(at, s, fault) : -1;
  }
  const int64_t begin = (int64_t)blockIdx.y * blockDim.x + threadIdx.x;
  for (int64_t w = begin; w < s.n_words; w += (int64_t)gridDim.y * blockDim.x) {
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

template <typename Word, typename Index>
int launch_rows(const cuplug_call *call, Index index, const shape &s) {
  unsigned along = 1;
  while (along < s.n_words && along < THREADS) along *= 2;
  const dim3 threads(along, THREADS / along);
  const unsigned blocks = n_blocks(s.n, threads.y * UNROLL);
  /* few rows: several blocks for each, as many as fill a GPU */
  const unsigned wanted = blocks < FILLED ? FILLED / blocks : 1;
  const int64_t useful =
      s.n_words ? (s.n_words + along - 1) / along : 1; /* of no bytes: the indices are checked */
  const dim3 grid(blocks, wanted < useful ? wanted : (unsigned)useful);
  return cuplug_launch<gather_rows_kernel<Word, Index>>(
      call, grid, threads, 0, (const Word *)call->tensors[0].data, index,
      (Word *)call->outputs[0].data, s, call->fault);
}

template <typename Word, typename I>
int launch(const cuplug_call *call, plain_index<I> index, const shape &s) {
  if (s.n_words != 1) return launch_rows<Word>(call, index, s);
  Word *out = (Word *)call->outputs[0].data;
  const bool packed =
      (uintptr_t)index.index % alignof(pack<I>) == 0 && (uintptr_t)out % alignof(pack<Word>) == 0;
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

int64_t product(const int64_t *sizes, int64_t n) {
  int64_t result = 1;
  for (int64_t k = 0; k < n; k++) result *= sizes[k];
  return result;
}

/* The source around its axis: parts of m rows of bytes. */
struct layout {
  int64_t axis, n_parts, m, row_bytes;
  layout(const cuplug_tensor *source, int64_t at)
      : axis(at < 0 ? at + source->ndim : at), n_parts(product(source->shape, axis)),
        m(source->shape[axis]),
        row_bytes(product(source->shape + axis + 1, source->ndim - axis - 1) *
                  cuplug_element_bytes(source)) {}
};

int refuse_empty(const cuplug_call *call, int64_t axis) {
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                      "source: seen an empty axis %lld, wanted at least one row to take from",
                      (long long)axis);
}

} // namespace

CUPLUG_ENTRY int gather_cuda(const cuplug_call *call) {
  const cuplug_tensor *index = &call->tensors[1];
  const layout source(&call->tensors[0], call->n_scalars > 1 ? call->scalars[1].i : 0);
  const int64_t n = cuplug_n_elements(index);
  const shape s = {source.n_parts * n, source.m, 0, (int)call->scalars[0].i};
  if (s.n == 0) return CUPLUG_OK;
  if (s.m == 0) return refuse_empty(call, source.axis);
  const uint32_t type = cuplug_type(index);
  if (source.n_parts == 1 && type == CUPLUG_INT64)
    return launch_words(call, plain_index<int64_t>{(const int64_t *)index->data}, s,
                        source.row_bytes);
  if (source.n_parts == 1 && type == CUPLUG_INT32)
    return launch_words(call, plain_index<int32_t>{(const int32_t *)index->data}, s,
                        source.row_bytes);
  return launch_words(call, any_index{index->data, n, 0, type}, s, source.row_bytes);
}

CUPLUG_ENTRY int gather_one_cuda(const cuplug_call *call) {
  const layout source(&call->tensors[0], call->scalars[2].i);
  const shape s = {source.n_parts, source.m, 0, (int)call->scalars[1].i};
  if (s.n == 0) return CUPLUG_OK;
  if (s.m == 0) return refuse_empty(call, source.axis);
  const int64_t row = resolve(call->scalars[0].i, s);
  if (row < 0)
    return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                        "index: index %lld is out of bounds for size %lld",
                        (long long)call->scalars[0].i, (long long)s.m);
  return launch_words(call, any_index{nullptr, 1, row, 0}, s, source.row_bytes);
}

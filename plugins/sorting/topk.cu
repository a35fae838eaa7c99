/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of topk.c. Long lines of which few elements are wanted are not
 * sorted: several blocks count the digits of a line, from the first one on, until it is known which
 * key is number k; then they collect the keys up to that, in order. All else is sorted. */
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/device/device_scan.cuh>

#include "sorting/radix.cuh"

namespace {

constexpr int THREADS = SORTING_THREADS;
constexpr int DIGIT = 11, BINS = 1 << DIGIT;
constexpr int ROUNDS = 16, CHUNK = THREADS * ROUNDS; /* elements that a block collects */
constexpr int64_t FILLED = 2048;                     /* blocks that keep any GPU busy */
constexpr int64_t MOST_LINES = 4096;                 /* whose counts take 64 MiB */

/* Key number k of a line, as far as it is known, and its number among those that begin alike. */
struct search {
  uint64_t prefix;
  int64_t left;
};

struct lines {
  const void *x;
  elements_axis axis;
  order o;
  int64_t k;
};

template <typename T> __device__ T key_at(const lines &l, int64_t first, int64_t j) {
  return (T)order_key(&l.o, ((const T *)l.x)[first + j * l.axis.width]);
}

__global__ void __launch_bounds__(THREADS)
    begin_kernel(search *searches, unsigned long long *counts, int64_t n_lines, int64_t k) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i < n_lines) searches[i] = {0, k};
  if (i < n_lines * BINS) counts[i] = 0;
}

/* Counts the digits of keys that begin as key number k does. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    count_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                 unsigned long long *counts, int shift, int n_bits) {
  __shared__ unsigned bins[BINS];
  for (int b = threadIdx.x; b < BINS; b += THREADS) bins[b] = 0;
  __syncthreads();
  const int64_t line = blockIdx.y, first = elements_line(&l.axis, line);
  const uint64_t prefix = searches[line].prefix;
#pragma unroll 4
  for (int64_t j = (int64_t)blockIdx.x * THREADS + threadIdx.x; j < l.axis.m;
       j += (int64_t)gridDim.x * THREADS) {
    const uint64_t key = (uint64_t)key_at<T>(l, first, j) >> shift;
    if (key >> n_bits == prefix) atomicAdd(&bins[key & ((1 << n_bits) - 1)], 1u);
  }
  __syncthreads();
  for (int b = threadIdx.x; b < BINS; b += THREADS)
    if (bins[b]) atomicAdd(&counts[line * BINS + b], (unsigned long long)bins[b]);
}

/* Finds the digit of key number k; one block for each line. The counts are 0 again afterwards. */
__global__ void __launch_bounds__(THREADS)
    find_kernel(search *searches, unsigned long long *counts, int n_bits) {
  using scan = cub::BlockScan<unsigned long long, THREADS>;
  __shared__ typename scan::TempStorage memory;
  constexpr int EACH = BINS / THREADS;
  unsigned long long *of_line = counts + (int64_t)blockIdx.x * BINS, own[EACH], sum = 0, before;
  for (int b = 0; b < EACH; b++) {
    own[b] = of_line[threadIdx.x * EACH + b];
    of_line[threadIdx.x * EACH + b] = 0;
    sum += own[b];
  }
  const search s = searches[blockIdx.x];
  scan(memory).ExclusiveSum(sum, before);
  __syncthreads(); /* all have read the search */
  unsigned long long left = (unsigned long long)s.left;
  if (before >= left || before + sum < left) return;
  left -= before;
  int b = 0;
  for (; own[b] < left; b++) left -= own[b];
  searches[blockIdx.x] = {s.prefix << n_bits | (uint64_t)(threadIdx.x * EACH + b), (int64_t)left};
}

/* How many keys of each chunk are below key number k, and how many equal. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    tally_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                 int64_t *below, int64_t *equal) {
  using reduce = cub::BlockReduce<unsigned, THREADS>;
  __shared__ typename reduce::TempStorage memory;
  const int64_t line = blockIdx.y, first = elements_line(&l.axis, line);
  const T last = (T)searches[line].prefix;
  unsigned n = 0; /* those below, and from bit 16 on those equal */
#pragma unroll
  for (int r = 0; r < ROUNDS; r++) {
    const int64_t j = (int64_t)blockIdx.x * CHUNK + r * THREADS + threadIdx.x;
    if (j >= l.axis.m) break;
    const T key = key_at<T>(l, first, j);
    n += key < last ? 1u : key == last ? 1u << 16 : 0u;
  }
  const unsigned total = reduce(memory).Sum(n);
  if (threadIdx.x) return;
  below[line * gridDim.x + blockIdx.x] = total & 0xffff;
  equal[line * gridDim.x + blockIdx.x] = total >> 16;
}

/* Writes the keys below key number k, then as many equal ones as are left, each in their order.
 * `below` and `equal` count those in chunks before, of all lines. */
template <typename T, typename K>
__global__ void __launch_bounds__(THREADS)
    collect_kernel(const __grid_constant__ lines l, const search *__restrict__ searches,
                   const int64_t *__restrict__ below, const int64_t *__restrict__ equal, K *keys,
                   const sorted_index index) {
  using scan = cub::BlockScan<unsigned, THREADS>;
  __shared__ typename scan::TempStorage memory;
  const int64_t line = blockIdx.y, first = elements_line(&l.axis, line);
  const int64_t of_line = line * gridDim.x, chunk = of_line + blockIdx.x;
  const search s = searches[line];
  const T last = (T)s.prefix;
  int64_t n_below = below[chunk] - below[of_line], n_equal = equal[chunk] - equal[of_line];
  for (int r = 0; r < ROUNDS; r++) {
    const int64_t j = (int64_t)blockIdx.x * CHUNK + r * THREADS + threadIdx.x;
    const bool is_there = j < l.axis.m;
    const T key = is_there ? key_at<T>(l, first, j) : T(0);
    const unsigned own = !is_there ? 0u : key < last ? 1u : key == last ? 1u << 16 : 0u;
    if (!__syncthreads_or(own != 0)) continue;
    unsigned before, total;
    scan(memory).ExclusiveSum(own, before, total);
    const int64_t rank = own == 1 ? n_below + (before & 0xffff) : n_equal + (before >> 16);
    if (own == 1 || (own && rank < s.left)) {
      const int64_t to = line * l.k + (own == 1 ? rank : l.k - s.left + rank);
      keys[to] = key;
      index.set(to, j);
    }
    n_below += total & 0xffff;
    n_equal += total >> 16;
  }
}

/* Sums of all before. */
int accumulate(cuplug::call call, int64_t *counts, int64_t n) {
  return call.with_scratch([=](void *scratch, size_t &bytes) {
    return cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, counts, n, call.stream());
  });
}

template <typename T, typename K>
int choose(cuplug::call call, const lines &l, int64_t n_lines, const sorting &top) {
  const int64_t m = l.axis.m, n_chunks = cuplug::blocks(m, CHUNK);
  auto *searches = call.workspace<search>(n_lines);
  auto *counts = call.workspace<unsigned long long>(n_lines * BINS);
  auto *below = call.workspace<int64_t>(n_lines * n_chunks);
  auto *equal = call.workspace<int64_t>(n_lines * n_chunks);
  if (!searches || !counts || !below || !equal) return CUPLUG_ERROR_MEMORY;
  int status = call.launch<begin_kernel>({cuplug::blocks(n_lines * BINS, THREADS), THREADS},
                                         searches, counts, n_lines, l.k);
  const int64_t wanted = FILLED / n_lines + 1;
  const cuplug::extent grid(wanted < n_chunks ? wanted : n_chunks, n_lines);
  for (int shift = 8 * sizeof(T), n_bits; shift > 0 && !status;) {
    n_bits = shift < DIGIT ? shift : DIGIT;
    shift -= n_bits;
    status = call.launch<count_kernel<T>>({grid, THREADS}, l, searches, counts, shift, n_bits);
    if (!status) status = call.launch<find_kernel>({n_lines, THREADS}, searches, counts, n_bits);
  }
  const cuplug::extent chunks(n_chunks, n_lines);
  if (!status) status = call.launch<tally_kernel<T>>({chunks, THREADS}, l, searches, below, equal);
  if (!status) status = accumulate(call, below, n_lines * n_chunks);
  if (!status) status = accumulate(call, equal, n_lines * n_chunks);
  return status ? status
                : call.launch<collect_kernel<T, K>>({chunks, THREADS}, l, searches, below, equal,
                                                    (K *)top.keys, top.indices());
}

int choose(cuplug::call call, const lines &l, int64_t n_lines, const sorting &top) {
  switch (top.n_bytes) {
  case 1:
    return choose<uint8_t, uint32_t>(call, l, n_lines, top);
  case 2:
    return choose<uint16_t, uint32_t>(call, l, n_lines, top);
  case 4:
    return choose<uint32_t, uint32_t>(call, l, n_lines, top);
  default:
    return choose<uint64_t, uint64_t>(call, l, n_lines, top);
  }
}

/* The first k of each line whose index is sorted, `m` to a line. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    write_kernel(const T *__restrict__ x, const sorted_index index, T *values, int64_t *indices,
                 const elements_axis axis, const elements_axis of_top, int64_t m, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t line = i / of_top.m, j = i - line * of_top.m, from = index[line * m + j];
  const int64_t to = elements_line(&of_top, line) + j * axis.width;
  values[to] = x[elements_line(&axis, line) + from * axis.width];
  indices[to] = from;
}

int topk(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0];
  const int64_t k = c->scalars[0].i;
  const elements_axis axis = elements_around(&x, c->scalars[1].i);
  const order o = order_of(&x, c->scalars[2].i != 0);
  const int64_t n_lines = axis.n_outer * axis.width, n = n_lines * k;
  if (n == 0) return CUPLUG_OK;
  const bool is_chosen = axis.m >= CHUNK && k <= axis.m / 4 && n_lines <= MOST_LINES;
  sorting s;
  int status = sorting_begin(call, &s, o.n_bytes, n_lines, is_chosen ? k : axis.m, axis.m);
  if (!status)
    status = is_chosen ? choose(call, {x.data, axis, o, k}, n_lines, s)
                       : sorting_load(call, s, x, axis, o);
  if (!status) status = sorting_run(call, &s);
  if (status) return status;
#define CASE(T)                                                                                 \
  return call.launch<write_kernel<T>>({cuplug::blocks(n, THREADS), THREADS}, (const T *)x.data, \
                                      s.indices(), (T *)c->outputs[0].data,                     \
                                      (int64_t *)c->outputs[1].data, axis,                      \
                                      elements_axis{axis.n_outer, k, axis.width}, s.m, n);
  ELEMENTS_BY_WIDTH(o.n_bytes, CASE)
#undef CASE
  return CUPLUG_OK;
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    back_kernel(const T *__restrict__ x, const int64_t *__restrict__ indices, T *out,
                const elements_axis axis, const elements_axis of_top, int64_t n, bool is_back,
                cuplug_fault *fault) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t j = indices[i], outer = i / (of_top.m * axis.width);
  const int64_t place = (outer * axis.m + j) * axis.width + i % axis.width;
  if (j < 0 || j >= axis.m)
    cuplug_fault_index(fault, 1, i, j, 0, axis.m);
  else if (is_back)
    out[place] = x[i];
  else
    out[i] = x[place];
}

/* Elements to where indices say, or from there. */
int move_back(cuplug::call call, elements_axis axis, elements_axis of_top, bool is_back) {
  const cuplug_call *c = call;
  const void *x = c->tensors[0].data;
  const auto *indices = (const int64_t *)c->tensors[1].data;
  void *out = c->outputs[0].data;
  const int64_t n = cuplug_n_elements(&c->tensors[1]);
  if (n == 0) return CUPLUG_OK;
#define CASE(T)                                                                                    \
  return call.launch<back_kernel<T>>({cuplug::blocks(n, THREADS), THREADS}, (const T *)x, indices, \
                                     (T *)out, axis, of_top, n, is_back, call.fault());
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&c->outputs[0]), CASE)
#undef CASE
  return CUPLUG_OK;
}

int topk_backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &grad = c->tensors[0], &x = c->tensors[2], &out = c->outputs[0];
  const int64_t n_out = cuplug_n_elements(&out), axis = c->scalars[0].i;
  int status = elements_check_beside(c, "grad_values", &grad, &x, axis);
  if (status || n_out == 0) return status;
  status =
      call.check(cudaMemsetAsync(out.data, 0, n_out * cuplug_element_bytes(&out), call.stream()));
  if (status) return status;
  return move_back(call, elements_around(&x, axis), elements_around(&grad, axis), true);
}

int topk_backward_backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0], &indices = c->tensors[1];
  const int64_t axis = c->scalars[0].i;
  const int status = elements_check_beside(c, "indices", &indices, &x, axis);
  if (status) return status;
  return move_back(call, elements_around(&x, axis), elements_around(&indices, axis), false);
}

} // namespace

CUPLUG_ENTRY int topk_cuda(const cuplug_call *call) { return topk(call); }
CUPLUG_ENTRY int topk_backward_cuda(const cuplug_call *call) { return topk_backward(call); }
CUPLUG_ENTRY int topk_backward_backward_cuda(const cuplug_call *call) {
  return topk_backward_backward(call);
}

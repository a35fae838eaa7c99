/* SPDX-License-Identifier: Apache-2.0 */
/* unique of few elements, which one block sorts, and of any number of elements with few values.
 * Blocks insert their elements into a hash table each, then into a common one, which the last block
 * sorts. One kernel does all of this, with one wait for the number of values. */
#include <stddef.h>

#include "sorting/gpu/short.cuh"

namespace {

using namespace network;

constexpr int SLOTS = MOST;        /* of a table */
constexpr int PROBES = 16;         /* slots in which a key may be; more than half of all are used */
constexpr int AT_ONCE = 8;         /* elements per thread, whose loads do not wait for each other */
constexpr int64_t LARGE = 1 << 22; /* elements from which an attempt is worthwhile */
constexpr int BLOCKS = 384;        /* blocks that keep a large GPU busy; each has a table to fill */
constexpr int BYTES = 256, PACK = 16; /* values of a byte, and bytes that are read at once */

/* The GPU memory of a call. The first fields are set to ~0 before. */
template <typename K> struct memory {
  K table[SLOTS]; /* ~0: empty, or the key ~0, which has_no_top distinguishes */
  unsigned n_done, has_all, has_no_top;
  int64_t n_found; /* or -1: more than a table holds, or NaNs */
  uint64_t values[MOST];
  int64_t indices[MOST], counts[MOST];
};

/* Writes the values among m sorted keys. `inverse` has a number for each element. With x, zeros and
 * NaNs are copied from it. */
template <bool has_index, typename K>
__device__ void write_values(const order &o, const K *keys, const uint32_t *index, const void *x,
                             int m, memory<K> *out, int64_t *inverse) {
  __shared__ unsigned words[MOST / WARP];
  __shared__ int firsts[has_index ? MOST : 1], n_found;
  const int lane = threadIdx.x % WARP;
#pragma unroll 1
  for (int i = threadIdx.x; i < MOST; i += THREADS) {
    const bool is_first = i < m && (i == 0 || keys[i] != keys[i - 1] || order_is_nan(&o, keys[i]));
    const unsigned word = __ballot_sync(~0u, is_first);
    if (lane == 0) words[i / WARP] = word;
  }
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < m; i += THREADS) {
    const unsigned word = words[i / WARP];
    int place = __popc(word & ((2u << lane) - 1)) - 1;
    for (int k = 0; k < i / WARP; k++) place += __popc(words[k]);
    if (i == m - 1) out->n_found = n_found = place + 1;
    if (has_index) inverse[index[i]] = place;
    if (!(word >> lane & 1)) continue;
    if (x && (sorting_is_zero(o, keys[i]) || sorting_is_nan(o, keys[i])))
      sorting_copy(o, x, index[i], out->values, place);
    else
      put(o, out->values, place, keys[i]);
    if (has_index) out->indices[place] = index[i], firsts[place] = i;
  }
  if (!has_index) return;
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < n_found; i += THREADS)
    out->counts[i] = (i + 1 < n_found ? firsts[i + 1] : m) - firsts[i];
}

template <typename K, bool has_index>
__global__ void __launch_bounds__(THREADS)
    short_kernel(const void *__restrict__ x, const __grid_constant__ order o, int m, memory<K> *out,
                 int64_t *inverse) {
  __shared__ K keys[MOST];
  __shared__ uint32_t index[MOST];
  const int n = padded(m);
#pragma unroll 1
  for (int i = threadIdx.x; i < n; i += THREADS) {
    keys[i] = i < m ? key_at<K>(o, x, i) : ~K(0);
    index[i] = i;
  }
  if (has_index || o.infinity) {
    sort<true>(keys, index, n);
    write_values<has_index>(o, keys, index, x, m, out, inverse);
  } else {
    sort<false>(keys, index, n);
    write_values<has_index>(o, keys, index, nullptr, m, out, inverse);
  }
}

__device__ inline unsigned first_slot(uint32_t key) { return key * 0x9e3779b1u >> 22; }
__device__ inline unsigned first_slot(uint64_t key) { return key * 0x9e3779b97f4a7c15ull >> 54; }
static_assert(SLOTS == 1 << 10, "a hash has 10 bits");

__device__ inline uint32_t exchange_empty(uint32_t *slot, uint32_t key) {
  return atomicCAS(slot, ~0u, key);
}
__device__ inline uint64_t exchange_empty(uint64_t *slot, uint64_t key) {
  return atomicCAS((unsigned long long *)slot, ~0ull, (unsigned long long)key);
}

/* Inserts a key other than ~0 into a table if it is missing. Returns false if the table is full. */
template <typename K> __device__ inline bool insert(K *table, K key) {
  unsigned at = first_slot(key);
#pragma unroll 1
  for (int k = 0; k < PROBES; k++, at = (at + 1) % SLOTS) {
    K seen = ((volatile K *)table)[at];
    if (seen == ~K(0)) seen = exchange_empty(&table[at], key);
    if (seen == ~K(0) || seen == key) return true;
  }
  return false;
}

template <typename T, typename K>
__device__ inline void read(const void *x, int64_t first, int64_t n, K (&bits)[AT_ONCE]) {
#pragma unroll
  for (int u = 0; u < AT_ONCE; u++)
    if (first + u * THREADS < n) bits[u] = ((const T *)x)[first + u * THREADS];
}

/* The values of a block's elements. */
struct knowledge {
  bool has_all, has_top; /* in the table; the key ~0, which is in no table */
};

/* Inserts elements `first`, first + THREADS and so on into a table. */
template <typename K>
__device__ inline void insert_some(K *table, const order &o, const void *x, int64_t first,
                                   int64_t n, volatile knowledge *known) {
  K bits[AT_ONCE];
  if constexpr (sizeof(K) == 8)
    read<uint64_t>(x, first, n, bits);
  else if (o.n_bytes == 2)
    read<uint16_t>(x, first, n, bits);
  else
    read<uint32_t>(x, first, n, bits);
#pragma unroll
  for (int u = 0; u < AT_ONCE && first + u * THREADS < n && known->has_all; u++) {
    const K key = key_of(o, bits[u]);
    if (key == ~K(0))
      known->has_top = true;
    else if (order_is_nan(&o, key) || !insert(table, key))
      known->has_all = false;
  }
}

/* Inserts the values of a block's bytes into a table. */
template <typename K>
__device__ inline void insert_bytes(K *table, const order &o, const uint8_t *x, int64_t n,
                                    volatile knowledge *known) {
  __shared__ unsigned is_seen[BYTES];
  is_seen[threadIdx.x % BYTES] = 0;
  __syncthreads();
  const int64_t step = (int64_t)gridDim.x * THREADS;
  const int64_t first = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  const int64_t to_packs = -(intptr_t)x & (PACK - 1), head = to_packs < n ? to_packs : n;
  const int64_t n_packs = (n - head) / PACK;
  for (int64_t i = first; i < n_packs; i += step) {
    const uint4 pack = ((const uint4 *)(x + head))[i];
    const uint32_t words[] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
    for (int k = 0; k < PACK; k++) is_seen[words[k / 4] >> 8 * (k % 4) & 0xff] = 1;
  }
  for (int64_t i = first; i < n - n_packs * PACK; i += step)
    is_seen[x[i < head ? i : i + n_packs * PACK]] = 1;
  __syncthreads();
  for (int byte = threadIdx.x; byte < BYTES; byte += THREADS)
    if (is_seen[byte] && !insert(table, key_of<K>(o, byte))) known->has_all = false;
}

/* Sorts the keys of all elements, in `keys`, and writes them. */
template <typename K> __device__ void sort_table(const order &o, K *keys, memory<K> *out) {
  __shared__ unsigned n_keys;
  const volatile memory<K> *all = out;
  if (threadIdx.x == 0) n_keys = 0;
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < SLOTS; i += THREADS) {
    const K key = all->table[i];
    if (key != ~K(0)) keys[atomicAdd(&n_keys, 1u)] = key;
  }
  __syncthreads();
  const int n_below = (int)n_keys, m = n_below + !all->has_no_top;
  if (!all->has_all || m > MOST) {
    if (threadIdx.x == 0) out->n_found = -1;
    return;
  }
#pragma unroll 1
  for (int i = n_below + threadIdx.x; i < padded(m); i += THREADS) keys[i] = ~K(0);
  sort<false>(keys, nullptr, padded(m));
  write_values<false, K>(o, keys, nullptr, nullptr, m, out, nullptr);
}

template <typename K>
__global__ void __launch_bounds__(THREADS)
    few_kernel(const void *__restrict__ x, const __grid_constant__ order o, int64_t n,
               memory<K> *out) {
  __shared__ K keys[SLOTS];
  __shared__ volatile knowledge known;
  __shared__ bool is_last;
  constexpr int EACH = THREADS * AT_ONCE;
#pragma unroll 1
  for (int i = threadIdx.x; i < SLOTS; i += THREADS) keys[i] = ~K(0);
  if (threadIdx.x == 0) known.has_all = true, known.has_top = false;
  __syncthreads();
  if (o.n_bytes == 1)
    insert_bytes(keys, o, (const uint8_t *)x, n, &known);
  else
    for (int64_t first = (int64_t)blockIdx.x * EACH + threadIdx.x; first < n && known.has_all;
         first += (int64_t)gridDim.x * EACH)
      insert_some(keys, o, x, first, n, &known);
  __syncthreads();
#pragma unroll 1
  for (int i = threadIdx.x; i < SLOTS && known.has_all; i += THREADS)
    if (keys[i] != ~K(0) && !insert(out->table, keys[i])) known.has_all = false;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (!known.has_all) out->has_all = 0;
    if (known.has_top) out->has_no_top = 0;
    __threadfence();
    is_last = atomicAdd(&out->n_done, 1u) + 1 == gridDim.x - 1; /* set to ~0 from here on */
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  sort_table(o, keys, out);
}

/* Copies the results to the outputs, in their number. */
template <typename K>
int copy_out(cuplug::call call, const order &o, bool has_index, const memory<K> *m, int64_t n) {
  const cuplug_call *c = call;
  const void *from[] = {m->values, m->indices, nullptr, m->counts};
  for (uint32_t k = 0; k < (has_index ? 4u : 1u); k++) {
    if (!from[k]) continue;
    int status = cuplug_output(c, k + 1, &n);
    if (!status)
      status = call.check(cudaMemcpyAsync(c->outputs[k].data, from[k], n * (k ? 8 : o.n_bytes),
                                          cudaMemcpyDefault, call.stream()));
    if (status) return status;
  }
  return CUPLUG_OK;
}

template <typename K>
int unique_few(cuplug::call call, const order &o, int64_t n, bool has_index, bool *is_done) {
  const cuplug_call *c = call;
  const void *x = c->tensors[0].data;
  auto *inverse = has_index ? (int64_t *)c->outputs[2].data : nullptr;
  auto *m = call.workspace<memory<K>>(1);
  if (!m) return CUPLUG_ERROR_MEMORY;
  int status;
  if (n > MOST) {
    const int64_t wanted = cuplug::blocks(n, THREADS * AT_ONCE);
    status = call.check(cudaMemsetAsync(m, 0xff, offsetof(memory<K>, n_found), call.stream()));
    if (!status)
      status = call.launch<few_kernel<K>>({wanted < BLOCKS ? wanted : BLOCKS, THREADS}, x, o, n, m);
  } else if (has_index) {
    status = call.launch<short_kernel<K, true>>({1, THREADS}, x, o, (int)n, m, inverse);
  } else {
    status = call.launch<short_kernel<K, false>>({1, THREADS}, x, o, (int)n, m, inverse);
  }
  int64_t n_found = -1;
  if (!status) status = call.copy_to_host(&n_found, &m->n_found);
  *is_done = n_found >= 0;
  return status || !*is_done ? status : copy_out(call, o, has_index, m, n_found);
}

} // namespace

int sorting_unique_few(cuplug::call call, const order &o, int64_t n, bool has_index,
                       bool *is_done) {
  *is_done = false;
  const bool may_be_few = o.n_bytes == 1 || (n >= LARGE && !o.infinity);
  const bool is_sorted_sooner = n > MOST && (has_index || !may_be_few);
  if (n == 0 || is_sorted_sooner) return CUPLUG_OK;
  return o.n_bytes == 8 ? unique_few<uint64_t>(call, o, n, has_index, is_done)
                        : unique_few<uint32_t>(call, o, n, has_index, is_done);
}

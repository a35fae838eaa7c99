/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that a block sorts in its shared memory, one digit after the other. Equal keys stay in their
 * order. The number of each key is moved with it. */
#ifndef CUPLUG_PLUGINS_SORTING_DIGITS_CUH
#define CUPLUG_PLUGINS_SORTING_DIGITS_CUH

#include <cub/block/block_radix_rank.cuh>

#include "sorting/gpu/short.cuh"

namespace digits {

constexpr int BITS = 8, MOST = (1 << BITS) - 1;

/* For ranks of digits, which are already known. */
struct as_it_is {
  __device__ uint32_t Digit(uint32_t digit) const { return digit; }
};

template <typename K, int N_THREADS, int N_ITEMS> struct block {
  static constexpr int WARP = 32, SIZE = N_THREADS * N_ITEMS;
  using ranking = cub::BlockRadixRankMatch<N_THREADS, BITS, false>;
  union memory {
    typename ranking::TempStorage ranks;
    struct {
      K keys[SIZE];
      uint16_t index[SIZE];
    } sorted;
  };

  memory &shared;
  K keys[N_ITEMS];
  int index[N_ITEMS];

  __device__ explicit block(memory &m) : shared(m) {}

  /* Item u of a thread, initially. */
  static __device__ int item(int u) {
    return threadIdx.x / WARP * WARP * N_ITEMS + u * WARP + threadIdx.x % WARP;
  }

  /* Reads n keys: item i is at place(i). Keys after the last are ~0, and stay there. */
  template <typename P> __device__ void read_keys(const void *x, const P &place, int n) {
    read<K>(x, place, n);
    begin(n);
  }

  /* The same for elements of `o`, which become keys. */
  template <typename P>
  __device__ void read_elements(const order &o, const void *x, const P &place, int n) {
    if (sizeof(K) == 8)
      read<K>(x, place, n);
    else if (o.n_bytes == 1)
      read<uint8_t>(x, place, n);
    else if (o.n_bytes == 2)
      read<uint16_t>(x, place, n);
    else
      read<uint32_t>(x, place, n);
    if (o.infinity) /* two equal loops, so that the flag is tested once and not for each key */
      become_keys(o);
    else
      become_keys(o);
    begin(n);
  }

  /* Sorts by the lower bits of keys. `shared` receives the result. */
  __device__ void sort(int n_bits) {
    for (int bit = 0; bit < n_bits; bit += BITS) {
      if (bit) take();
      sort_by_bits(bit);
    }
  }

  /* Sorts by BITS of them. Returns how many have a lower digit than the thread's number, or than
   * its first number if it has several. */
  __device__ int sort_by_bits(int bit) {
    return sort_by([&](int u) { return (uint32_t)(keys[u] >> bit) & MOST; });
  }

  /* Sorts `shared` by a digit of each element: digit(i) of the former item i. */
  template <typename D> __device__ void sort_again(const D &digit) {
    take();
    sort_by([&](int u) { return (uint32_t)digit(index[u]); });
  }

private:
  /* Iterations do not wait for each other. */
  template <typename T, typename P> __device__ void read(const void *x, const P &place, int n) {
#pragma unroll
    for (int u = 0; u < N_ITEMS; u++)
      keys[u] = ((const T *)x)[place(item(u) < n ? item(u) : n - 1)];
  }
  __device__ void become_keys(const order &o) {
#pragma unroll
    for (int u = 0; u < N_ITEMS; u++) keys[u] = network::key_of(o, keys[u]);
  }
  __device__ void begin(int n) {
#pragma unroll
    for (int u = 0; u < N_ITEMS; u++) {
      index[u] = item(u);
      if (item(u) >= n) keys[u] = ~K(0);
    }
  }
  __device__ void take() {
#pragma unroll
    for (int u = 0; u < N_ITEMS; u++) {
      keys[u] = shared.sorted.keys[item(u)];
      index[u] = shared.sorted.index[item(u)];
    }
    __syncthreads();
  }
  template <typename D> __device__ int sort_by(const D &digit) {
    uint32_t digits[N_ITEMS];
    int ranks[N_ITEMS], n_below[ranking::BINS_TRACKED_PER_THREAD];
#pragma unroll
    for (int u = 0; u < N_ITEMS; u++) digits[u] = digit(u);
    ranking(shared.ranks).RankKeys(digits, ranks, as_it_is(), n_below);
    __syncthreads();
#pragma unroll
    for (int u = 0; u < N_ITEMS; u++) {
      shared.sorted.keys[ranks[u]] = keys[u];
      shared.sorted.index[ranks[u]] = (uint16_t)index[u];
    }
    __syncthreads();
    return n_below[0];
  }
};

} // namespace digits

#endif

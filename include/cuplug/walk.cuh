/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel meets the elements of arrays of any strides, on the device: in packs, in lines or in
 * tiles, as <cuplug/walk.h> has planned it on the host. No part of the ABI.
 *
 * What is done with an element is a class CODE, made of `walked`: a function object that is given
 * a pack of each array, the place in it, the element's number and how many there are. */
#ifndef CUPLUG_WALK_CUH
#define CUPLUG_WALK_CUH

#ifndef CUPLUG_PACKS_CUH /* NVRTC is given all of it as text */
#include <cuplug/loop.h>
#include <stdint.h>

#include <cuplug/packs.cuh>
#endif

namespace cuplug {
namespace walk {

/* ---- In packs: all arrays aligned and whole -------------------------------------------------- */

template <class CODE>
__device__ inline void one_element(const CODE &code, const int64_t (&at)[CODE::N], int64_t number,
                                   int64_t n) {
  typename CODE::template packs<1> p;
  each_of<CODE::READ>([&](auto k) {
    constexpr int K = decltype(k)::value;
    get<K>(p).value[0] = code.template data<K>()[at[K]];
  });
  code(p, 0, number, n);
  each_of<CODE::WRITTEN>([&](auto k) {
    constexpr int K = decltype(k)::value;
    code.template data<K>()[at[K]] = get<K>(p).value[0];
  });
}

/* UNROLL packs for each thread. They are the elements of the loop; without dimensions all arrays
 * are contiguous, and the last block takes what fills no pack. STILL: arrays whose packs have one
 * element WIDTH times. */
template <int WIDTH, int UNROLL, int NDIM, unsigned STILL, typename INDEX, class CODE>
__device__ inline void in_packs(const CODE &code, int64_t n, const divisors<NDIM> &sizes,
                                const strides<CODE::N, NDIM> &steps) {
  const INDEX n_packs = NDIM ? n : n / WIDTH;
  const INDEX first = (INDEX)blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
  typename CODE::template packs<WIDTH> loaded[UNROLL];
  int64_t places[UNROLL][CODE::N] = {};
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const INDEX at = first + u * THREADS;
    if (at >= n_packs) continue;
    if constexpr (NDIM > 0)
      locate(at, sizes, steps, places[u]);
    else
      each<CODE::N>([&](auto k) { places[u][decltype(k)::value] = (int64_t)at * WIDTH; });
    each_of<CODE::READ>([&](auto k) {
      constexpr int K = decltype(k)::value;
      get<K>(loaded[u]) = load<WIDTH, (STILL >> K & 1) != 0>(code.template data<K>(), places[u][K]);
    });
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const INDEX at = first + u * THREADS;
    if (at >= n_packs) continue;
#pragma unroll
    for (int j = 0; j < WIDTH; j++)
      code(loaded[u], j, (int64_t)at * WIDTH + j, NDIM ? n * WIDTH : n);
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      using pack_type = pack<typename CODE::template type<K>, WIDTH>;
      *reinterpret_cast<pack_type *>(code.template data<K>() + places[u][K]) = get<K>(loaded[u]);
    });
  }
  if constexpr (NDIM == 0 && WIDTH > 1) {
    const int64_t rest = (int64_t)n_packs * WIDTH + threadIdx.x;
    if (blockIdx.x != gridDim.x - 1 || rest >= n) return;
    int64_t at[CODE::N];
    each<CODE::N>([&](auto k) { at[decltype(k)::value] = rest; });
    one_element(code, at, rest, n);
  }
}

/* ---- In lines: packs begin where those of an output do --------------------------------------- */

/* The elements `from` to `to` - 1 of a pack that begins with element `first` of the loop. */
template <int WIDTH> struct piece {
  int64_t first;
  int from, to;
  __device__ bool is_whole() const { return to - from == WIDTH; }
  __device__ bool has(int j) const { return j >= from && j < to; }
};

/* The pack with this number, one for each thread, and what is in it of its line. */
template <int WIDTH, int N, typename INDEX, class CODE>
__device__ inline piece<WIDTH> piece_of(const CODE &code, INDEX item, const cuplug_cut &cut,
                                        int ndim, const divisors<N> &sizes,
                                        const strides<CODE::N, N> &steps) {
  int64_t begin = 0, number = item, lead = cut.lead;
  if (cut.items.size) {
    const INDEX line = divide(item, cut.items);
    int64_t at[CODE::N] = {};
    begin = (int64_t)line * cut.line;
    number -= (int64_t)line * cut.items.size;
    locate((INDEX)begin, sizes, steps, at, ndim);
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const uint64_t address = reinterpret_cast<uint64_t>(code.template data<K>() + at[K]);
      using element = typename CODE::template type<K>;
      if (K == cut.anchor) lead = address % (WIDTH * sizeof(element)) / sizeof(element);
    });
  }
  const int64_t low = number * WIDTH - lead, left = cut.line - low;
  return {begin + low, low < 0 ? (int)-low : 0, left < WIDTH ? (int)left : WIDTH};
}

/* One pack for each thread. NDIM: of the loop, where it is known, else 0. `near`, `still`: arrays
 * that go on by 1 or by 0 in the last dimension. */
template <int WIDTH, int NDIM, typename INDEX, int N, class CODE>
__device__ inline void in_lines(const CODE &code, int64_t n, const cuplug_cut &cut,
                                const divisors<N> &sizes, const strides<CODE::N, N> &steps,
                                unsigned near, unsigned still) {
  const int ndim = NDIM ? NDIM : cut.ndim, last = ndim - 1;
  const INDEX item = (INDEX)blockIdx.x * THREADS + threadIdx.x;
  if (item >= cut.n_items) return;
  const piece<WIDTH> own = piece_of<WIDTH>(code, item, cut, ndim, sizes, steps);
  if (own.from >= own.to) return;
  int64_t at[CODE::N] = {};
  const int64_t column = locate((INDEX)(own.first + own.from), sizes, steps, at, ndim);
  const int64_t left = sizes.of[last].size - column; /* of the last dimension */
  const bool is_together = own.is_whole() && left >= WIDTH;
  typename CODE::template packs<WIDTH> p;
  if (is_together) {
    each_of<CODE::READ>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const auto *from = code.template data<K>() + at[K];
      if (near >> K & 1)
        get<K>(p) = load_anywhere<WIDTH>(from, column, left);
      else if (still >> K & 1)
        get<K>(p) = load<WIDTH, true>(from, 0);
      else
        get<K>(p) = load_each<WIDTH>(from, steps.of[K][last]);
    });
  } else {
#pragma unroll
    for (int j = 0; j < WIDTH; j++) {
      int64_t place[CODE::N] = {};
      if (!own.has(j)) continue;
      locate((INDEX)(own.first + j), sizes, steps, place, ndim);
      each_of<CODE::READ>([&](auto k) {
        constexpr int K = decltype(k)::value;
        get<K>(p).value[j] = code.template data<K>()[place[K]];
      });
    }
  }
#pragma unroll
  for (int j = 0; j < WIDTH; j++)
    if (own.has(j)) code(p, j, own.first + j, n);
  const bool is_flat = !cut.items.size; /* all that is written lies together */
  each_of<CODE::WRITTEN>([&](auto k) {
    constexpr int K = decltype(k)::value;
    using pack_type = pack<typename CODE::template type<K>, WIDTH>;
    auto *to = code.template data<K>() + at[K];
    const int64_t step = steps.of[K][last];
    const bool is_aligned = reinterpret_cast<uint64_t>(to) % sizeof(pack_type) == 0;
    if (own.is_whole() && is_aligned && (is_flat || (is_together && step == 1))) {
      *reinterpret_cast<pack_type *>(to) = get<K>(p);
      return;
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++) /* lines lie within rows */
      if (own.has(j)) to[(j - own.from) * step] = get<K>(p).value[j];
  });
}

/* ---- In tiles: inputs that lie across the outputs go through shared memory ------------------- */

template <int K, class TILES> __device__ inline auto &tile_of(TILES &all) {
  if constexpr (K == 0)
    return all.first;
  else
    return tile_of<K - 1>(all.rest);
}

/* An element of each array, from the tiles or from memory. */
template <unsigned MAY, class CODE, class TILES>
__device__ inline void load_tiled(const CODE &code, TILES &shared, unsigned across,
                                  const int64_t (&at)[CODE::N], int t, int l,
                                  typename CODE::template packs<1> &p) {
  each_of<CODE::READ>([&](auto k) {
    constexpr int K = decltype(k)::value;
    if constexpr (MAY >> K & 1) {
      if (across >> K & 1) {
        get<K>(p).value[0] = tile_of<K>(shared).at[l][t];
        return;
      }
    }
    get<K>(p).value[0] = code.template data<K>()[at[K]];
  });
}

/* A tile for each block, of SIDE elements along the last two dimensions. `across`, of MAY:
 * arrays that lie side by side along the last but one, where others do along the last. */
template <int SIDE, unsigned MAY, int NDIM, int N, class CODE>
__device__ inline void in_tiles(const CODE &code, int64_t n, const cuplug_cut &cut,
                                const divisors<N> &sizes, const strides<CODE::N, N> &steps,
                                unsigned across) {
  constexpr int ROWS = THREADS / SIDE, PASSES = SIDE / ROWS, AT_ONCE = 4;
  __shared__ typename CODE::template tiles<SIDE, MAY> shared;
  const int lane = threadIdx.x % SIDE, row = threadIdx.x / SIDE;
  const int l_dim = (NDIM ? NDIM : cut.ndim) - 1, t_dim = l_dim - 1;
  const unsigned lines = divide(blockIdx.x, cut.items), outer = divide(lines, cut.rows);
  const int64_t t_first = (int64_t)(lines - outer * (unsigned)cut.rows.size) * SIDE;
  const int64_t l_first = (int64_t)(blockIdx.x - lines * (unsigned)cut.items.size) * SIDE;
  const int64_t t_left = sizes.of[t_dim].size - t_first, l_left = sizes.of[l_dim].size - l_first;
  int64_t base[CODE::N] = {};
  locate(outer, sizes, steps, base, t_dim);
#pragma unroll
  for (int k = 0; k < CODE::N; k++)
    base[k] += t_first * steps.of[k][t_dim] + l_first * steps.of[k][l_dim];
  each_of<MAY>([&](auto k) {
    constexpr int K = decltype(k)::value;
    if (!(across >> K & 1)) return;
    typename CODE::template type<K> values[PASSES];
    const int64_t t_step = steps.of[K][t_dim], l_step = steps.of[K][l_dim];
    const auto *from = code.template data<K>() + base[K] + lane * t_step + row * l_step;
#pragma unroll
    for (int p = 0; p < PASSES; p++)
      if (lane < t_left && row + p * ROWS < l_left) values[p] = from[p * ROWS * l_step];
#pragma unroll
    for (int p = 0; p < PASSES; p++)
      if (lane < t_left && row + p * ROWS < l_left)
        tile_of<K>(shared).at[row + p * ROWS][lane] = values[p];
  });
  __syncthreads();
#pragma unroll
  for (int first = 0; first < PASSES; first += AT_ONCE) {
    typename CODE::template packs<1> p[AT_ONCE];
    int64_t at[AT_ONCE][CODE::N];
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      const int t = row + (first + u) * ROWS;
#pragma unroll
      for (int k = 0; k < CODE::N; k++)
        at[u][k] = base[k] + t * steps.of[k][t_dim] + lane * steps.of[k][l_dim];
      if (t < t_left && lane < l_left) load_tiled<MAY>(code, shared, across, at[u], t, lane, p[u]);
    }
#pragma unroll
    for (int u = 0; u < AT_ONCE; u++) {
      const int t = row + (first + u) * ROWS;
      if (t >= t_left || lane >= l_left) continue;
      code(p[u], 0, 0, n); /* code that counts elements meets them in C order, not in tiles */
      each_of<CODE::WRITTEN>([&](auto k) {
        constexpr int K = decltype(k)::value;
        code.template data<K>()[at[u][K]] = get<K>(p[u]).value[0];
      });
    }
  }
}

} // namespace walk
} // namespace cuplug

#endif

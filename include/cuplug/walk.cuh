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
namespace walks {

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

/* The elements `from` to `to` - 1 of a pack that begins with element `first` of the loop; in the
 * line's last dimension that is `column`, and in each array `at`. */
template <int WIDTH, int N_ARRAYS> struct piece {
  int64_t first = 0, column = 0;
  int from = 0, to = 0;
  int64_t at[N_ARRAYS] = {};
  __device__ bool is_whole() const { return to - from == WIDTH; }
  __device__ bool has(int j) const { return j >= from && j < to; }
};

/* The pack with this number, one for each thread, and what is in it of its line. */
template <int WIDTH, int N, typename INDEX, class CODE>
__device__ inline piece<WIDTH, CODE::N>
piece_of(const CODE &code, INDEX item, const cuplug_cut &cut, int ndim, const divisors<N> &sizes,
         const strides<CODE::N, N> &steps) {
  piece<WIDTH, CODE::N> own;
  const INDEX line = cut.items.size ? divide(item, cut.items) : 0;
  const int64_t begin = (int64_t)line * cut.line;
  int64_t low = ((int64_t)item - (int64_t)line * cut.items.size) * WIDTH - cut.lead;
  own.column = locate((INDEX)(cut.items.size || low < 0 ? begin : low), sizes, steps, own.at, ndim);
  if (cut.items.size) {
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const uint64_t address = reinterpret_cast<uint64_t>(code.template data<K>() + own.at[K]);
      using element = typename CODE::template type<K>;
      if (K == cut.anchor) low -= address % (WIDTH * sizeof(element)) / sizeof(element);
    });
    own.column = low;
#pragma unroll
    for (int k = 0; k < CODE::N; k++) own.at[k] += low * steps.of[k][ndim - 1];
  }
  const int64_t left = cut.line - low;
  own.first = begin + low;
  own.from = low < 0 ? (int)-low : 0;
  own.to = left < WIDTH ? (int)left : WIDTH;
  return own;
}

/* Where a block's tile lies along a dimension: its first element, how many there are from there on,
 * and how many of them are in the tile. */
struct side {
  int64_t first, left;
  int n;
};

template <int WIDTH, typename T>
__device__ inline void store_along(T *to, int64_t step, const side &s, int k,
                                   const pack<T, WIDTH> &value) {
  if (k + WIDTH <= s.n && step == 1 && reinterpret_cast<uint64_t>(to) % sizeof(value) == 0) {
    *reinterpret_cast<pack<T, WIDTH> *>(to) = value;
    return;
  }
#pragma unroll
  for (int j = 0; j < WIDTH; j++)
    if (k + j < s.n) to[j * step] = value.value[j];
}

/* Elements of a pack that do not lie together in all arrays, each found by itself; a few at once.
 */
template <int WIDTH, int N, typename INDEX, class CODE>
__device__ inline void one_by_one(const CODE &code, const piece<WIDTH, CODE::N> &own, int64_t n,
                                  int ndim, const divisors<N> &sizes,
                                  const strides<CODE::N, N> &steps, INDEX) {
  constexpr int FEW = WIDTH < 4 ? WIDTH : 4;
#pragma unroll 1
  for (int first = 0; first < WIDTH; first += FEW) {
    typename CODE::template packs<FEW> p;
    int64_t at[FEW][CODE::N] = {};
#pragma unroll AT_ONCE < N>
    for (int j = 0; j < FEW; j++)
      if (own.has(first + j)) locate((INDEX)(own.first + first + j), sizes, steps, at[j], ndim);
#pragma unroll
    for (int j = 0; j < FEW; j++) {
      if (!own.has(first + j)) continue;
      each_of<CODE::READ>([&](auto k) {
        constexpr int K = decltype(k)::value;
        get<K>(p).value[j] = code.template data<K>()[at[j][K]];
      });
    }
#pragma unroll
    for (int j = 0; j < FEW; j++) {
      if (!own.has(first + j)) continue;
      code(p, j, own.first + first + j, n);
      each_of<CODE::WRITTEN>([&](auto k) {
        constexpr int K = decltype(k)::value;
        code.template data<K>()[at[j][K]] = get<K>(p).value[j];
      });
    }
  }
}

/* UNROLL packs for each thread. NDIM: of the loop, where it is known, else 0. `near`, `still`:
 * arrays that go on by 1 or by 0 in the last dimension. */
template <int WIDTH, int UNROLL, int NDIM, typename INDEX, int N, class CODE>
__device__ inline void in_lines(const CODE &code, int64_t n, const cuplug_cut &cut,
                                const divisors<N> &sizes, const strides<CODE::N, N> &steps,
                                unsigned near, unsigned still) {
  const int ndim = NDIM ? NDIM : cut.ndim, last = ndim - 1;
  const bool is_flat = !cut.items.size; /* all that is written lies together */
  typename CODE::template packs<WIDTH> loaded[UNROLL];
  piece<WIDTH, CODE::N> own[UNROLL];
  bool is_together[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const INDEX item = (INDEX)blockIdx.x * (THREADS * UNROLL) + u * THREADS + threadIdx.x;
    is_together[u] = false;
    if (item >= cut.n_items) continue;
    own[u] = piece_of<WIDTH>(code, item, cut, ndim, sizes, steps);
    const int64_t left = sizes.of[last].size - own[u].column; /* of the last dimension */
    is_together[u] = own[u].is_whole() && (WIDTH == 1 || left >= WIDTH);
    if (!is_together[u]) continue;
    each_of<CODE::READ>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const auto *from = code.template data<K>() + own[u].at[K];
      if (near >> K & 1)
        get<K>(loaded[u]) = load_anywhere<WIDTH>(from, own[u].column, left);
      else if (still >> K & 1)
        get<K>(loaded[u]) = load<WIDTH, true>(from, 0);
      else
        get<K>(loaded[u]) = load_each<WIDTH>(from, steps.of[K][last]);
    });
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    if (!is_together[u]) {
      if (WIDTH > 1 && own[u].from < own[u].to)
        one_by_one(code, own[u], n, ndim, sizes, steps, INDEX());
      continue;
    }
#pragma unroll
    for (int j = 0; j < WIDTH; j++) code(loaded[u], j, own[u].first + j, n);
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const side whole = {0, WIDTH, WIDTH};
      store_along<WIDTH>(code.template data<K>() + own[u].at[K], is_flat ? 1 : steps.of[K][last],
                         whole, 0, get<K>(loaded[u]));
    });
  }
}

/* ---- In tiles: inputs that lie across the outputs go through shared memory ------------------- */

template <int K, class TILES> __device__ inline auto &tile_of(TILES &all) {
  if constexpr (K == 0)
    return all.first;
  else
    return tile_of<K - 1>(all.rest);
}

template <int SIDE> __device__ inline side side_of(unsigned number, int64_t size) {
  const int64_t first = (int64_t)number * SIDE, left = size - first;
  return {first, left, left < SIDE ? (int)left : SIDE};
}

/* WIDTH elements that begin with number k of a side and go on by `step`; those past the end are
 * not there. */
template <int WIDTH, typename T>
__device__ inline pack<T, WIDTH> load_along(const T *from, int64_t step, const side &s, int k) {
  pack<T, WIDTH> result;
  if (k + WIDTH <= s.n)
    return step == 1 ? load_anywhere<WIDTH>(from, s.first + k, s.left - k)
                     : load_each<WIDTH>(from, step);
#pragma unroll
  for (int j = 0; j < WIDTH; j++)
    if (k + j < s.n) result.value[j] = from[j * step];
  return result;
}

/* How the threads of a block share a tile: LANES side by side take a pack each, which leaves their
 * elements in different banks. */
template <int SIDE, int WIDTH> struct shares {
  static constexpr int MOST = WIDTH == 1 ? 32 : 8;
  static constexpr int LANES = SIDE / WIDTH < MOST ? SIDE / WIDTH : MOST, ROWS = THREADS / LANES;
  static constexpr int ALONG = SIDE / WIDTH / LANES, DOWN = (SIDE + ROWS - 1) / ROWS;
  static constexpr int N = ALONG * DOWN; /* packs of a thread */
  __device__ static int along(int p) { return (threadIdx.x % LANES + p % ALONG * LANES) * WIDTH; }
  __device__ static int down(int p) { return threadIdx.x / LANES + p / ALONG * ROWS; }
};

/* Loads a tile of one array in packs along t, all of a thread's before the first is stored. */
template <int SIDE, int WIDTH, typename T, class TILE>
__device__ inline void fill_tile(TILE &shared, const T *from, int64_t t_step, int64_t l_step,
                                 const side &t, const side &l) {
  using own = shares<SIDE, WIDTH>;
  pack<T, WIDTH> packs[own::N];
#pragma unroll
  for (int p = 0; p < own::N; p++) {
    const int k = own::along(p), row = own::down(p);
    if (k < t.n && row < l.n)
      packs[p] = load_along<WIDTH>(from + k * t_step + row * l_step, t_step, t, k);
  }
#pragma unroll
  for (int p = 0; p < own::N; p++) {
    const int k = own::along(p), row = own::down(p);
    if (k >= t.n || row >= l.n) continue;
#pragma unroll
    for (int j = 0; j < WIDTH; j++) shared.at[row][k + j] = packs[p].value[j];
  }
}

/* A tile for each block, of SIDE elements along the last two dimensions, in packs of WIDTH, which
 * divides SIDE. `across`, of MAY: arrays that go on by 1 or -1 in the last but one. */
template <int SIDE, int WIDTH, unsigned MAY, int NDIM, int N, class CODE>
__device__ inline void in_tiles(const CODE &code, int64_t n, const cuplug_cut &cut,
                                const divisors<N> &sizes, const strides<CODE::N, N> &steps,
                                unsigned across) {
  using own = shares<SIDE, WIDTH>;
  __shared__ typename CODE::template tiles<SIDE, MAY> shared;
  const int l_dim = (NDIM ? NDIM : cut.ndim) - 1, t_dim = l_dim - 1;
  const unsigned lines = divide(blockIdx.x, cut.items), outer = divide(lines, cut.rows);
  const side t = side_of<SIDE>(lines - outer * (unsigned)cut.rows.size, sizes.of[t_dim].size);
  const side l = side_of<SIDE>(blockIdx.x - lines * (unsigned)cut.items.size, sizes.of[l_dim].size);
  int64_t base[CODE::N] = {};
  locate(outer, sizes, steps, base, t_dim);
#pragma unroll
  for (int k = 0; k < CODE::N; k++)
    base[k] += t.first * steps.of[k][t_dim] + l.first * steps.of[k][l_dim];
  each_of<MAY>([&](auto k) {
    constexpr int K = decltype(k)::value;
    if (across >> K & 1)
      fill_tile<SIDE, WIDTH>(tile_of<K>(shared), code.template data<K>() + base[K],
                             steps.of[K][t_dim], steps.of[K][l_dim], t, l);
  });
  __syncthreads();
#pragma unroll(WIDTH < 8 ? own::N : 1) /* of narrow elements, one pack takes many registers */
  for (int p = 0; p < own::N; p++) {
    const int k = own::along(p), row = own::down(p);
    typename CODE::template packs<WIDTH> packs;
    if (k >= l.n || row >= t.n) continue;
    each_of<CODE::READ>([&](auto array) {
      constexpr int K = decltype(array)::value;
      if constexpr (MAY >> K & 1) {
        if (across >> K & 1) {
#pragma unroll
          for (int j = 0; j < WIDTH; j++)
            if (k + j < l.n) get<K>(packs).value[j] = tile_of<K>(shared).at[k + j][row];
          return;
        }
      }
      const int64_t step = steps.of[K][l_dim];
      const auto *from = code.template data<K>() + base[K] + row * steps.of[K][t_dim] + k * step;
      get<K>(packs) = load_along<WIDTH>(from, step, l, k);
    });
#pragma unroll
    for (int j = 0; j < WIDTH; j++) /* code that counts elements is not in tiles */
      if (k + j < l.n) code(packs, j, 0, n);
    each_of<CODE::WRITTEN>([&](auto array) {
      constexpr int K = decltype(array)::value;
      const int64_t step = steps.of[K][l_dim];
      auto *to = code.template data<K>() + base[K] + row * steps.of[K][t_dim] + k * step;
      store_along<WIDTH>(to, step, l, k, get<K>(packs));
    });
  }
}

} // namespace walks
} // namespace cuplug

#endif

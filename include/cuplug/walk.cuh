/* SPDX-License-Identifier: Apache-2.0 */
/* How a kernel meets the elements of arrays of any strides, on the device: in packs, in lines or in
 * tiles, as <cuplug/walk.h> has planned it on the host. No part of the ABI.
 *
 * The code for an element is a class CODE, made from `walked`: a function object that receives a
 * pack of each array, the position in it, the element's number and the number of elements. */
#ifndef CUPLUG_WALK_CUH
#define CUPLUG_WALK_CUH

#ifndef CUPLUG_PACKS_CUH /* NVRTC is given all of it as text */
#include <cuplug/loop.h>
#include <stdint.h>

#include <cuplug/packs.cuh>
#endif

namespace cuplug {
namespace walks {

/* Applies the code to all elements of a pack of each array. */
template <int WIDTH, class CODE, class P>
__device__ inline void all_elements(const CODE &code, P &p, int64_t first, int64_t n) {
  if constexpr (CODE::TAKES_PACKS) {
    code(p);
  } else {
#pragma unroll
    for (int j = 0; j < WIDTH; j++) code(p, j, first + j, n);
  }
}

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
template <int WIDTH, int UNROLL, int NDIM, uint64_t STILL, typename INDEX, class CODE>
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
    all_elements<WIDTH>(code, loaded[u], (int64_t)at * WIDTH, NDIM ? n * WIDTH : n);
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

/* ---- In lines: packs are aligned to an output --------------------------------------- */

/* Elements of a pack that are not contiguous in all arrays, each found separately; a few at
 * once. */
template <int WIDTH, int N, typename INDEX, class CODE>
__device__ inline void one_by_one(const CODE &code, const piece<WIDTH, CODE::N, INDEX> &own,
                                  int64_t n, int ndim, const divisors<N> &sizes,
                                  const strides<CODE::N, N> &steps) {
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

/* UNROLL packs for each thread. NDIM: of the loop, if it is known, else 0. `near`, `still`: arrays
 * that are unit-stride or broadcast in the last dimension. */
template <int WIDTH, int UNROLL, int NDIM, typename INDEX, int N, class CODE>
__device__ inline void in_lines(const CODE &code, int64_t n, const cuplug_loop_split &cut,
                                const divisors<N> &sizes, const strides<CODE::N, N> &steps,
                                uint64_t near, uint64_t still) {
  const int ndim = NDIM ? NDIM : cut.ndim, last = ndim - 1;
  typename CODE::template loose_packs<WIDTH> loaded[UNROLL];
  piece<WIDTH, CODE::N, INDEX> own[UNROLL];
  using offset = typename signed_index<INDEX>::type;
  bool is_together[UNROLL];
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    const INDEX item = (INDEX)blockIdx.x * (THREADS * UNROLL) + u * THREADS + threadIdx.x;
    is_together[u] = false;
    if (item >= (INDEX)cut.n_items) continue;
    own[u] = piece_of<WIDTH>(code, item, cut, ndim, sizes, steps, near);
    const offset left = (offset)sizes.of[last].size - own[u].column; /* of the last dimension */
    is_together[u] = own[u].is_whole() && (WIDTH == 1 || left >= WIDTH);
    if (!is_together[u]) continue;
    each_of<CODE::READ>([&](auto k) {
      constexpr int K = decltype(k)::value;
      const auto *from = code.template data<K>() + own[u].at[K];
      auto &to = get<K>(loaded[u]);
      if (!(near >> K & 1))
        to.hold(load_each<WIDTH>(from, still >> K & 1 ? 0 : steps.of[K][last]));
      else if (misaligned<WIDTH>(from))
        load_misaligned<WIDTH>(to, from, own[u].column, left);
      else
        to.hold(load_aligned<WIDTH>(from));
    });
  }
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    if (!is_together[u]) {
      if (WIDTH > 1 && own[u].from < own[u].to) one_by_one(code, own[u], n, ndim, sizes, steps);
      continue;
    }
    typename CODE::template packs<WIDTH> packs;
    each_of<CODE::READ>([&](auto k) {
      constexpr int K = decltype(k)::value;
      put(get<K>(packs), get<K>(loaded[u]).whole());
    });
    all_elements<WIDTH>(code, packs, own[u].first, n);
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      store_along<WIDTH>(code.template data<K>() + own[u].at[K],
                         near >> K & 1 ? 1 : steps.of[K][last], get<K>(packs));
    });
  }
}

/* ---- In tiles: inputs transposed to the outputs go through shared memory --------------------- */

template <int K, class TILES> __device__ inline auto &tile_of(TILES &all) {
  if constexpr (K == 0)
    return all.first;
  else
    return tile_of<K - 1>(all.rest);
}

/* The position of a block's tile along a dimension: its first element, and, for packs, the number
 * of elements ahead of it and from it on; and the number of these in the tile. */
struct side {
  int64_t first;
  int before, after, n;
};

template <int SIDE, int WIDTH> __device__ inline side side_of(unsigned number, int64_t size) {
  const int64_t first = (int64_t)number * SIDE, left = size - first;
  const int most = SIDE + WIDTH;
  const int after = left < most ? (int)left : most;
  return {first, number ? WIDTH : 0, after, after < SIDE ? after : SIDE};
}

/* WIDTH elements from number k of a side on, in steps of `step`; elements past the end are
 * skipped. */
template <int WIDTH, typename T>
__device__ inline held<T, WIDTH> load_along(const T *from, int64_t step, const side &s, int k) {
  if (k + WIDTH <= s.n && step == 1) {
    if (!misaligned<WIDTH>(from)) return load_aligned<WIDTH>(from);
    loose_pack<T, WIDTH> found;
    load_misaligned<WIDTH>(found, from, s.before + k, s.after - k);
    return found.whole();
  }
  if (k + WIDTH <= s.n) return load_each<WIDTH>(from, step);
  pack<T, WIDTH> result;
#pragma unroll
  for (int j = 0; j < WIDTH; j++)
    if (k + j < s.n) result.value[j] = from[j * step];
  return same_bytes<held<T, WIDTH>>(result);
}

/* How the threads of a block share a tile: LANES side by side take a pack each, of DEEP rows, which
 * leaves their elements in different banks. */
template <int SIDE, int WIDTH, int DEEP> struct shares {
  static constexpr int MOST = WIDTH == 1 ? 32 : 8;
  static constexpr int LANES = SIDE / WIDTH < MOST ? SIDE / WIDTH : MOST, ROWS = THREADS / LANES;
  static constexpr int ALONG = SIDE / WIDTH / LANES, DOWN = (SIDE / DEEP + ROWS - 1) / ROWS;
  static constexpr int N = ALONG * DOWN; /* of a thread */
  __device__ static int along(int p) { return (threadIdx.x % LANES + p % ALONG * LANES) * WIDTH; }
  __device__ static int down(int p) { return (threadIdx.x / LANES + p / ALONG * ROWS) * DEEP; }
};

/* Loads a tile of one array in packs along t, all of a thread's before the first is stored. */
template <int SIDE, int WIDTH, typename T, class TILE>
__device__ inline void fill_tile(TILE &shared, const T *from, int64_t t_step, int64_t l_step,
                                 const side &t, const side &l) {
  using own = shares<SIDE, WIDTH, 1>;
  held<T, WIDTH> packs[own::N];
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
    auto *to = reinterpret_cast<decltype(&packs[p].value[0])>(&shared.at[row][k]);
#pragma unroll
    for (unsigned j = 0; j < sizeof packs[p] / sizeof *to; j++) to[j] = packs[p].value[j];
  }
}

/* The packs of DEEP rows from `row` on, from a tile in which they are transposed: elements that are
 * adjacent there are loaded at once. */
template <int WIDTH, int K, int DEEP, class PACKS, class TILE>
__device__ inline void read_tile(PACKS (&packs)[DEEP], const TILE &shared, int k, int row) {
#pragma unroll
  for (int j = 0; j < WIDTH; j++) {
    const auto together =
        *reinterpret_cast<const pack<typename TILE::element, DEEP> *>(&shared.at[k + j][row]);
#pragma unroll
    for (int q = 0; q < DEEP; q++) get<K>(packs[q]).value[j] = together.value[q];
  }
}

/* Blocks that a GPU's multiprocessors are to hold of light code in tiles: of other widths,
 * registers would not suffice. */
template <int WIDTH> constexpr int TILE_BLOCKS = WIDTH == 4 || WIDTH == 8 ? 6 : 1;

/* The position of a block in a tile: in each array the first element, and the distance of its
 * elements along t and l. */
template <int N> struct spot {
  int64_t base[N], t_step[N], l_step[N];
  __device__ int64_t at(int k, int row, int column) const {
    return base[k] + row * t_step[k] + column * l_step[k];
  }
};

/* The elements of a row from `column` on, one by one. */
template <uint64_t ACROSS, class CODE, class TILES>
__device__ inline void rest_of_row(const CODE &code, int64_t n, const spot<CODE::N> &own,
                                   TILES &shared, int row, int column, int end) {
#pragma unroll 1
  for (; column < end; column++) {
    typename CODE::template packs<1> p;
    each_of<CODE::READ>([&](auto k) {
      constexpr int K = decltype(k)::value;
      if constexpr (ACROSS >> K & 1)
        get<K>(p).value[0] = tile_of<K>(shared).at[column][row];
      else
        get<K>(p).value[0] = code.template data<K>()[own.at(K, row, column)];
    });
    code(p, 0, 0, n);
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      code.template data<K>()[own.at(K, row, column)] = get<K>(p).value[0];
    });
  }
}

/* The pack at `column` of each of DEEP rows. */
template <int WIDTH, int DEEP, uint64_t ACROSS, class CODE, class TILES>
__device__ inline void whole_packs(const CODE &code, int64_t n, const spot<CODE::N> &own,
                                   TILES &shared, const side &t, const side &l, int row,
                                   int column) {
  typename CODE::template packs<WIDTH> packs[DEEP];
  each_of<CODE::READ>([&](auto k) {
    constexpr int K = decltype(k)::value;
    if constexpr (ACROSS >> K & 1) {
      read_tile<WIDTH, K>(packs, tile_of<K>(shared), column, row);
    } else {
#pragma unroll
      for (int q = 0; q < DEEP; q++)
        if (row + q < t.n)
          put(get<K>(packs[q]),
              load_along<WIDTH>(code.template data<K>() + own.at(K, row + q, column), own.l_step[K],
                                l, column));
    }
  });
#pragma unroll
  for (int q = 0; q < DEEP; q++) {
    if (row + q >= t.n) continue;
    all_elements<WIDTH>(code, packs[q], 0, n); /* what counts is not in tiles */
    each_of<CODE::WRITTEN>([&](auto k) {
      constexpr int K = decltype(k)::value;
      store_along<WIDTH>(code.template data<K>() + own.at(K, row + q, column), own.l_step[K],
                         get<K>(packs[q]));
    });
  }
}

/* A tile for each block, of SIDE elements along the last two dimensions, in packs of WIDTH, which
 * divides SIDE. ACROSS: inputs with stride 1 or -1 in the last dimension but one. */
template <int SIDE, int WIDTH, uint64_t ACROSS, int NDIM, int N, class CODE>
__device__ inline void in_tiles(const CODE &code, int64_t n, const cuplug_loop_split &cut,
                                const divisors<N> &sizes, const strides<CODE::N, N> &steps) {
  constexpr int MOST = SIDE * SIDE / WIDTH / THREADS, OF_WORD = 4 / CODE::widest(ACROSS);
  constexpr int DEEP = MOST < 1 || OF_WORD < 1 ? 1 : OF_WORD < MOST ? OF_WORD : MOST;
  using mine = shares<SIDE, WIDTH, DEEP>;
  __shared__ typename CODE::template tiles<SIDE, ACROSS> shared;
  const int l_dim = (NDIM ? NDIM : cut.ndim) - 1, t_dim = l_dim - 1;
  const unsigned lines = divide(blockIdx.x, cut.items), outer = divide(lines, cut.rows);
  const unsigned t_number = lines - outer * (unsigned)cut.rows.size;
  const unsigned l_number = blockIdx.x - lines * (unsigned)cut.items.size;
  const side t = side_of<SIDE, WIDTH>(t_number, sizes.of[t_dim].size);
  const side l = side_of<SIDE, WIDTH>(l_number, sizes.of[l_dim].size);
  int64_t base[CODE::N] = {};
  spot<CODE::N> own;
  locate(outer, sizes, steps, base, t_dim);
#pragma unroll
  for (int k = 0; k < CODE::N; k++) {
    own.t_step[k] = steps.of[k][t_dim];
    own.l_step[k] = steps.of[k][l_dim];
    own.base[k] = base[k] + t.first * own.t_step[k] + l.first * own.l_step[k];
  }
  each_of<ACROSS>([&](auto k) {
    constexpr int K = decltype(k)::value;
    fill_tile<SIDE, WIDTH>(tile_of<K>(shared), code.template data<K>() + own.base[K], own.t_step[K],
                           own.l_step[K], t, l);
  });
  __syncthreads();
#pragma unroll(WIDTH < 8 ? mine::N : 1) /* of narrow elements, one pack takes many registers */
  for (int p = 0; p < mine::N; p++) {
    const int column = mine::along(p), row = mine::down(p);
    if (column + WIDTH <= l.n && row < t.n)
      whole_packs<WIDTH, DEEP, ACROSS>(code, n, own, shared, t, l, row, column);
  }
  if ((int)threadIdx.x < t.n) /* what fills no pack: a row for each */
    rest_of_row<ACROSS>(code, n, own, shared, threadIdx.x, l.n - l.n % WIDTH, l.n);
}

} // namespace walks
} // namespace cuplug

#endif

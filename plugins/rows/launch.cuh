/* SPDX-License-Identifier: Apache-2.0 */
/* The division of rows among threads, by their length and dtype, and launches of their kernels. */
#ifndef CUPLUG_PLUGINS_ROWS_LAUNCH_CUH
#define CUPLUG_PLUGINS_ROWS_LAUNCH_CUH

#include "rows/rows.cuh"

namespace rows {

template <int n> using number = std::integral_constant<int, n>;
template <typename T> struct type { using of = T; };

/* The threads of a row, each with at most `most` elements at once: complete warps or a power of
 * two, at least `least`. */
inline int64_t threads_of(int64_t n, int64_t most, int64_t least = 1) {
  int64_t threads = least;
  while (threads < 32 && threads * most < n) threads *= 2;
  if (n > 32 * most) threads = (n + 32 * most - 1) / (32 * most) * 32;
  return threads < MOST_THREADS ? threads : MOST_THREADS;
}

/* The elements that a thread holds, and those that it holds if that avoids a second read. */
template <int W> constexpr int many = W > 1 ? 4 * W : 16;
template <int W> constexpr int more = W > 1 ? 8 * W : 16;

/* The division of a row among the threads of each of its blocks. */
struct division {
  int64_t threads, blocks;
};

/* Calls f(part's type) for rows of n elements whose thread has PACKS packs, of 16 bytes if these
 * divide a row. If arrays are not aligned, packs are not held; the bits are the same. Aligned is
 * bool, or std::true_type if all calls have aligned arrays. */
template <int W, int PACKS, bool IS_SPREAD = false, typename Aligned, typename F>
int with_part(Aligned is_aligned, F f) {
  if constexpr (W > 1 && !std::is_same_v<Aligned, std::true_type>)
    if (!is_aligned) return f(type<part<W, 0, false, IS_SPREAD>>());
  return f(type<part<W, PACKS, true, IS_SPREAD>>());
}

template <int> static __global__ void empty_kernel() {}

/* Returns whether the blocks of a cluster can share rows: if the code that this GPU runs was
 * compiled for 9.0 or later. GPUs also run PTX of earlier architectures. */
inline bool has_clusters() {
  cudaFuncAttributes found;
  return cudaFuncGetAttributes(&found, (const void *)empty_kernel<0>) == cudaSuccess &&
         found.ptxVersion >= 90;
}

/* The blocks of the cluster that shares a row, if its threads hold at most `most` elements each. */
inline int64_t blocks_of(int64_t n, int64_t most) {
  int64_t blocks = 2;
  while (blocks * MOST_THREADS * most < n) blocks *= 2;
  return blocks;
}

/* The division of rows of n elements, which depends only on n, the dtype, the op's number of kept
 * arrays and the kind of GPU: calls f(part's type, division). Registers hold a row of each kept
 * array: those of a block or, as blocks that wait for others are slower, of a cluster if one does
 * not suffice. The caller has kernels for rows of up to HELD elements; without clusters, a part
 * that reads them again is enough. */
template <int W, int KEPT, int64_t HELD = 0, typename Aligned, typename F>
int divide_by(int64_t n, Aligned is_aligned, F f) {
  const auto with = [&](auto packs, int64_t most, int64_t least) {
    return with_part<W, packs>(is_aligned, [&](auto part) {
      return f(part, division{threads_of(n, most, least), 1});
    });
  };
  const auto spread = [&](auto packs, int64_t most) {
    const int64_t blocks = blocks_of(n, most);
    return with_part<W, packs, true>(is_aligned, [&](auto part) {
      return f(part, division{threads_of((n + blocks - 1) / blocks, most, 32), blocks});
    });
  };
  constexpr int64_t MANY = many<W>, MORE = more<W>, CLUSTER = MOST_THREADS * MOST_BLOCKS;
  if constexpr (HELD < 32 * W)
    if (n <= 32 * W) return with(number<1>(), W, 1);
  if constexpr (HELD < MANY * MOST_THREADS)
    if (n <= MANY * MOST_THREADS) return with(number<MANY / W>(), MANY, 32);
  if constexpr (KEPT < 2 && HELD < MORE * MOST_THREADS)
    if (n <= MORE * MOST_THREADS) return with(number<MORE / W>(), MORE, 32);
  if constexpr (KEPT > 0 && HELD < MORE * CLUSTER)
    if (n <= MORE * CLUSTER && has_clusters()) {
      if constexpr (KEPT > 1 && HELD < MANY * CLUSTER)
        if (n <= MANY * CLUSTER) return spread(number<MANY / W>(), MANY);
      return spread(number<MORE / W>(), MORE);
    }
  return with(number<0>(), 1, 32);
}

/* Calls f(number of elements of a pack). */
template <typename T, typename F> int by_width(int64_t n, F f) {
  constexpr int WIDEST = 16 / sizeof(T);
  return n % WIDEST == 0 ? f(number<WIDEST>()) : f(number<1>());
}

/* Blocks that share n_rows rows, `threads` for each. */
inline cuplug::grid grid_of(int64_t n_rows, int64_t threads) {
  const int64_t together = threads < LEAST_THREADS ? LEAST_THREADS / threads : 1;
  return {{cuplug::blocks(n_rows, together)}, {threads, together}};
}

template <typename... P> bool are_aligned(const P *...arrays) {
  return ((uint64_t)arrays | ... | 0) % 16 == 0;
}

template <typename Part, typename Op>
int launch_rows(const cuplug::call &call, const extents &e, const division &d, const Op &op) {
  cuplug::grid grid = grid_of(e.n_rows, d.threads);
  if constexpr (Part::IS_SPREAD) {
    const int64_t most = INT32_MAX / d.blocks, n = e.n_rows < most ? e.n_rows : most;
    grid = cuplug::grid(n * d.blocks, d.threads).in_clusters(d.blocks);
  }
  return call.launch<rows_kernel<Part, Op>>(grid, e, op);
}

/* Runs op for each row of n elements. The arrays are those that it moves in packs. */
template <typename T, typename Op, typename... P>
int launch(const cuplug::call &call, int64_t n_rows, int64_t n, const Op &op, const P *...arrays) {
  if (n_rows == 0 || n == 0) return CUPLUG_OK;
  return by_width<T>(n, [&](auto width) {
    const auto run = [&](auto part, const division &d) {
      return launch_rows<typename decltype(part)::of>(call, {n_rows, n}, d, op);
    };
    return divide_by<width, Op::KEPT>(n, are_aligned(arrays...), run);
  });
}

/* The same for an op that uses each element once. */
template <typename T, typename Op, typename... P>
int launch_map(const cuplug::call &call, int64_t n_rows, int64_t n, const Op &op,
               const P *...arrays) {
  if (n_rows == 0 || n == 0) return CUPLUG_OK;
  return by_width<T>(n, [&](auto width) {
    return with_part<width, 0>(are_aligned(arrays...), [&](auto part) {
      return launch_rows<typename decltype(part)::of>(call, {n_rows, n}, {threads_of(n, width), 1},
                                                      op);
    });
  });
}

/* Calls run(T()) for the dtype of an array. */
template <typename Run> int by_dtype(const cuplug_tensor *x, Run run) {
  switch (cuplug_type(x)) {
  case CUPLUG_FLOAT16:
    return run(__half());
  case CUPLUG_BFLOAT16:
    return run(__nv_bfloat16());
  }
  return run(float());
}

inline int64_t length(const cuplug_tensor *x) { return x->shape[x->ndim - 1]; }
inline int64_t count(const cuplug_tensor *x) {
  const int64_t n = length(x);
  return n ? cuplug_n_elements(x) / n : 0;
}

} // namespace rows

#endif

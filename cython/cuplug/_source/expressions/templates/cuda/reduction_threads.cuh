/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a block that share outputs, and the combination of their values. Included before
 * reduction.cuh. */
constexpr int MOST_COLUMNS = 64; /* N_FEW in runtime/expressions/reduction_cuda.c */

/* A value that may be absent. */
struct state {
  cuplug_value value;
  bool is_there;
};

__device__ inline void add(const cuplug_numbers &given, state &s, const cuplug_value &next) {
  s.value = s.is_there ? cuplug_reduce(given, s.value, next) : next;
  s.is_there = true;
}

/* The threads that process one line or column: `lane` is this thread's number among them. Values to
 * be combined are in shared memory at own + sharer * step. */
struct team {
  int64_t owner;
  int lane, n_lanes;
  int sharer, n_sharers, own, step;
};

__device__ inline team team_of(int period) {
  const int x = threadIdx.x, y = threadIdx.y, width = blockDim.x, height = blockDim.y;
  const int64_t block = blockIdx.x;
  if (ALONE) return {block * width + x, 0, 1, 0, 1, x, 1};
  if (COLUMNS) return {block * width + x, y, height, y, height, x, width};
  if (!FEW) return {block * height + y, x, width, x, width, y * width, 1};
  const int n_sharers = width / period;
  return {block, x, n_sharers * period, x / period, n_sharers, x % period, period};
}

/* Memory for the states of all threads, TOGETHER of each at once. */
constexpr int STATES = FEW ? WIDTH : 1;
template <typename T> __device__ constexpr int most_together(int n_states) {
  int n = 1;
  while (2 * n <= n_states && 2 * n * THREADS * (int)sizeof(T) <= 16384) n *= 2;
  return n;
}
constexpr int TOGETHER = most_together<cuplug_value>(STATES);
constexpr int FOLDED = 8; /* values that a thread loads before it combines them */
struct slots {
  cuplug_value value[TOGETHER][THREADS];
  bool is_there[TOGETHER][THREADS];
};

/* Combines the states from `first` on of all sharers, FOLDED into one, and stores them as the first
 * sharer's. All threads must call this. The first n sharers are in one warp if their states are
 * adjacent. */
template <int N>
__device__ inline void share_some(const cuplug_numbers &given, slots &shared, const team &t,
                                  int first, int end, state (&states)[N]) {
  const int mine = t.own + t.sharer * t.step;
  const auto wait_for = [&](int n) {
    const bool in_warp = t.step * n <= 32;
    in_warp ? __syncwarp() : __syncthreads();
  };
  wait_for(t.n_sharers);
#pragma unroll
  for (int k = 0; k < TOGETHER; k++) {
    if (t.sharer >= t.n_sharers || first + k >= end) continue;
    if (states[first + k].is_there) shared.value[k][mine] = states[first + k].value;
    shared.is_there[k][mine] = states[first + k].is_there;
  }
  for (int n = t.n_sharers, left; n > 1; n = left) {
    left = (n + FOLDED - 1) / FOLDED;
    wait_for(n);
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
      if (t.sharer >= left || first + k >= end) continue;
      state others[FOLDED];
#pragma unroll
      for (int j = 1; j < FOLDED; j++) {
        const int other = t.sharer + j * left, at = other < n ? mine + j * left * t.step : mine;
        others[j] = {shared.value[k][at], other < n && shared.is_there[k][at]};
      }
#pragma unroll
      for (int j = 1; j < FOLDED; j++)
        if (others[j].is_there) add(given, states[first + k], others[j].value);
      shared.value[k][mine] = states[first + k].value;
      shared.is_there[k][mine] = states[first + k].is_there;
    }
  }
}

template <int N>
__device__ inline void share(const cuplug_numbers &given, slots &shared, const team &t,
                             int n_states, state (&states)[N]) {
#pragma unroll
  for (int k = 0; k < N; k += TOGETHER)
    if (k < n_states) share_some(given, shared, t, k, n_states, states);
}

/* Combines the states of a block's threads for each column. Thread c returns column c's value.
 * Threads whose numbers differ by a multiple of the period have the same columns. Element 0 of
 * thread 0 belongs to column `first`. */
__device__ inline cuplug_value share_columns(const cuplug_numbers &given, slots &shared,
                                             const team &t, int n_columns, int first,
                                             state (&states)[WIDTH]) {
  __shared__ cuplug_value found[MOST_COLUMNS];
  __shared__ bool is_found[MOST_COLUMNS];
  const int own = threadIdx.x;
  if (own < MOST_COLUMNS) is_found[own] = false;
  share(given, shared, t, WIDTH, states);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) { /* no two threads have the same column at once */
    __syncthreads();
    if (t.sharer || !states[k].is_there) continue;
    const int column = (first + t.own * WIDTH + k) % n_columns;
    state all = {found[column], is_found[column]};
    add(given, all, states[k].value);
    found[column] = all.value;
    is_found[column] = true;
  }
  __syncthreads();
  return found[own < n_columns ? own : 0];
}

/* Combines a block's columns of the first n_sharers threads with the same threadIdx.x, and passes
 * each column's result, by its number in the block, to `put`. Adjacent columns belong to adjacent
 * threads. */
template <typename T, typename F, typename P>
__device__ inline void share_block(const T (&values)[WIDTH], int n_sharers, const F &together,
                                   const P &put) {
  constexpr int N = most_together<T>(WIDTH);
  alignas(16) __shared__ T shared[THREADS * N];
  const int width = blockDim.x, mine = threadIdx.y * width + threadIdx.x, n_columns = width * N;
#pragma unroll
  for (int first = 0; first < WIDTH; first += N) {
    if (first) __syncthreads();
#pragma unroll
    for (int k = 0; k < N; k++) shared[mine * N + k] = values[first + k];
    __syncthreads();
    int n = n_sharers;
    for (int left; n > FOLDED; n = left) {
      left = (n + FOLDED - 1) / FOLDED;
      for (int at = mine; at < left * n_columns; at += THREADS) {
        T all = shared[at];
        for (int j = left; at + j * n_columns < n * n_columns; j += left)
          all = together(all, shared[at + j * n_columns]);
        shared[at] = all;
      }
      __syncthreads();
    }
    for (int at = mine; at < n_columns; at += THREADS) {
      T loaded[FOLDED];
#pragma unroll
      for (int j = 0; j < FOLDED; j++) loaded[j] = shared[at + (j < n ? j : 0) * n_columns];
#pragma unroll
      for (int j = 1; j < FOLDED; j++)
        if (j < n) loaded[0] = together(loaded[0], loaded[j]);
      put(at / N * WIDTH + first + at % N, loaded[0]);
    }
  }
}

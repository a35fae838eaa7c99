/* SPDX-License-Identifier: Apache-2.0 */
/* The threads of a block that share outputs, before reduction.cuh: which these are, and how what
 * they have is put together. */
constexpr int MOST_COLUMNS = 64; /* N_FEW in core/source/reduction_cuda.c */

/* A value that may be there. */
struct state {
  cuplug_value value;
  bool is_there;
};

__device__ inline void add(const cuplug_numbers &given, state &s, const cuplug_value &next) {
  s.value = s.is_there ? cuplug_reduce(given, s.value, next) : next;
  s.is_there = true;
}

/* Which threads walk one line, or one column: `lane` is this one's number among them. Those whose
 * values are put together stand in shared memory at own + sharer * step. */
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

/* Room for the states of all threads, TOGETHER of each at once. */
constexpr int STATES = COLUMNS || FEW ? WIDTH : 1;
constexpr int TOGETHER_BYTES = 16384 / THREADS / sizeof(cuplug_value);
constexpr int TOGETHER = TOGETHER_BYTES < 1 ? 1 : TOGETHER_BYTES < STATES ? TOGETHER_BYTES : STATES;
struct slots {
  cuplug_value value[TOGETHER][THREADS];
  bool is_there[TOGETHER][THREADS];
};

/* Puts together states number `first` and so on of all sharers, in halves, as those of the first
 * one. All threads come here; the first n sharers are of one warp where their states lie so. */
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
  for (int n = t.n_sharers, half; n > 1; n = half) {
    half = (n + 1) / 2;
    wait_for(n);
    const int other = mine + half * t.step;
#pragma unroll
    for (int k = 0; k < TOGETHER; k++) {
      if (t.sharer >= n - half || first + k >= end || !shared.is_there[k][other]) continue;
      add(given, states[first + k], shared.value[k][other]);
      shared.value[k][mine] = states[first + k].value;
      shared.is_there[k][mine] = true;
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

/* What the states of a block's threads come to in each column: thread c has column c's in the end.
 * Threads whose numbers differ by a multiple of the period have the same columns; element 0 of
 * thread 0 is of column `first`. */
__device__ inline cuplug_value share_columns(const cuplug_numbers &given, slots &shared,
                                             const team &t, int n_columns, int first,
                                             state (&states)[WIDTH]) {
  __shared__ cuplug_value found[MOST_COLUMNS];
  __shared__ bool is_found[MOST_COLUMNS];
  const int own = threadIdx.x;
  if (own < MOST_COLUMNS) is_found[own] = false;
  share(given, shared, t, WIDTH, states);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) { /* no two threads have one column at once */
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

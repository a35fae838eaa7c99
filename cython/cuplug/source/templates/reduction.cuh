/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of reductions. What stands before is as for reduction.h, but that `cuplug_places` are
 * packs: elements that one instruction loads. A block has outputs and a part of what goes into
 * them. By rows packs lie along the reduced loop, and threads side by side share an output; by
 * columns they lie along the outputs, each thread has WIDTH of its own, and threads above each
 * other share them. Alone, a thread shares with none. */
constexpr int OUTPUTS = COLUMNS ? WIDTH : 1; /* of a thread */
struct arrays {
  void *data[N_ARRAYS];
};
struct scalars {
  cuplug_scalar of[N_SCALARS];
};

/* Puts the outputs with this number where they belong; n elements went into each. */
__device__ inline void store_output(const arrays &a, const cuplug_numbers &given, int64_t number,
                                    const cuplug_value &value, const divisors<KEPT> &kept,
                                    const strides<N_ARRAYS, KEPT> &steps, int64_t n) {
  int64_t at[N_ARRAYS] = {};
  locate<KEPT>((index)(number / OUTPUTS), kept, steps, at);
  if constexpr (COLUMNS && WIDTH > 1)
    for (int k = N_INPUTS; k < N_ARRAYS; k++)
      at[k] += number % WIDTH * (steps.of[k][KEPT - 1] / WIDTH);
  const cuplug_results results = cuplug_results_of(given, value, n);
#define CUPLUG_STORE(k, name, type) static_cast<type *>(a.data[k])[at[k]] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
}

__device__ inline cuplug_places load_places(const arrays &a, const int64_t (&base)[N_ARRAYS],
                                            const int64_t (&at)[N_ARRAYS]) {
  cuplug_places p;
#define CUPLUG_LOAD(k, name, type) \
  p.name =                         \
      load<WIDTH, (STILL >> k & 1) != 0>(static_cast<const type *>(a.data[k]), base[k] + at[k]);
  CUPLUG_EACH_INPUT(CUPLUG_LOAD)
  return p;
}

/* The values of UNROLL packs, of which those from n_packs on are not there. */
__device__ inline void take_packs(const cuplug_numbers &given,
                                  const cuplug_places (&loaded)[UNROLL], int n_packs, int64_t r,
                                  int step, bool &is_first, cuplug_value (&values)[WIDTH]) {
#if CUPLUG_IS_SUM /* of small integers: 32 bits hold those of some packs */
  int sums[WIDTH] = {};
#pragma unroll
  for (int u = 0; u < UNROLL; u++)
#pragma unroll
    for (int k = 0; k < WIDTH; k++)
      if (u < n_packs) sums[COLUMNS ? k : 0] += cuplug_small(loaded[u], k);
#pragma unroll
  for (int k = 0; k < WIDTH; k++) values[k] = is_first ? sums[k] : values[k] + sums[k];
  is_first = false;
#else
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {
    if (u >= n_packs) continue;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
      const int64_t number = r + (int64_t)u * step;
      const int64_t i = COLUMNS ? number : number * WIDTH + k;
      const cuplug_value made = cuplug_element(given, loaded[u], k, i);
      values[k] = is_first ? made : cuplug_reduce(given, values[k], made);
    }
    is_first = false;
  }
#endif
}

/* The value of each sharer, of which n have one, as that of the first. All threads come here. */
__device__ inline cuplug_value share(const cuplug_numbers &given, cuplug_value *shared, int own,
                                     int step, int sharer, int n_sharers, int64_t n,
                                     const cuplug_value &value, bool has_value) {
  __syncthreads();
  if (has_value) shared[own + sharer * step] = value;
  for (int half = n_sharers / 2; half > 0; half /= 2) {
    __syncthreads();
    if (!has_value || sharer >= half || sharer + half >= n) continue;
    cuplug_value &mine = shared[own + sharer * step];
    mine = cuplug_reduce(given, mine, shared[own + (sharer + half) * step]);
  }
  return shared[own];
}

#define CUPLUG_REDUCTION_PARAMETERS                                                            \
  const arrays a, const scalars read, const int64_t n_outputs, const int64_t n_reduced,        \
      const int64_t part, const divisors<KEPT> kept, const strides<N_ARRAYS, KEPT> kept_steps, \
      const divisors<REDUCED> reduced, const strides<N_ARRAYS, REDUCED> reduced_steps,         \
      cuplug_value *partials, const int64_t n, const int64_t n_parts

CUPLUG_KERNEL cuplug_kernel(CUPLUG_REDUCTION_PARAMETERS) {
  __shared__ cuplug_value shared[ALONE ? 1 : THREADS];
  const cuplug_numbers given = cuplug_read(read.of);
  const int sharer = ALONE ? 0 : COLUMNS ? threadIdx.y : threadIdx.x;
  const int n_sharers = ALONE ? 1 : COLUMNS ? blockDim.y : blockDim.x;
  const bool is_across = ALONE || COLUMNS; /* threads side by side have different outputs */
  const int64_t owner = is_across ? (int64_t)blockIdx.x * blockDim.x + threadIdx.x
                                  : (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const int64_t begin = blockIdx.y * part;
  const int64_t end = begin + part < n_reduced ? begin + part : n_reduced;
  const bool is_used = owner * OUTPUTS < n_outputs;
  int64_t base[N_ARRAYS] = {};
  if (is_used) locate<KEPT>((index)owner, kept, kept_steps, base);
  cuplug_value values[WIDTH];
  bool is_first = true;
  for (int64_t r = begin + sharer; is_used && r < end; r += (int64_t)n_sharers * UNROLL) {
    cuplug_places loaded[UNROLL];
    int n_packs = 0;
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {
      int64_t at[N_ARRAYS] = {};
      if (r + (int64_t)u * n_sharers >= end) continue;
      locate<REDUCED>((index)(r + (int64_t)u * n_sharers), reduced, reduced_steps, at);
      loaded[u] = load_places(a, base, at);
      n_packs = u + 1;
    }
    take_packs(given, loaded, n_packs, r, n_sharers, is_first, values);
  }
  if (!COLUMNS && !CUPLUG_IS_SUM)
#pragma unroll
    for (int k = 1; k < WIDTH; k++)
      if (!is_first) values[0] = cuplug_reduce(given, values[0], values[k]);
  const int own = COLUMNS ? threadIdx.x : threadIdx.y * n_sharers;
  const int step = COLUMNS ? blockDim.x : 1; /* from one sharer to the next */
#pragma unroll
  for (int k = 0; k < OUTPUTS; k++) {
    const int64_t number = owner * OUTPUTS + k;
    if (!ALONE)
      values[k] =
          share(given, shared, own, step, sharer, n_sharers, end - begin, values[k], !is_first);
    if (!is_used || sharer) continue;
    if (n_parts > 1)
      partials[blockIdx.y * n_outputs + number] = values[k];
    else
      store_output(a, given, number, values[k], kept, kept_steps, n);
  }
}

/* Threads side by side have an output each; those above each other share the parts of it. */
CUPLUG_KERNEL cuplug_finish(CUPLUG_REDUCTION_PARAMETERS) {
  __shared__ cuplug_value shared[THREADS];
  const cuplug_numbers given = cuplug_read(read.of);
  const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const bool is_used = number < n_outputs;
  cuplug_value value = cuplug_identity(given);
  for (int64_t p = threadIdx.y; is_used && p < n_parts; p += blockDim.y) {
    const cuplug_value other = partials[p * n_outputs + number];
    value = p == threadIdx.y ? other : cuplug_reduce(given, value, other);
  }
  value = share(given, shared, threadIdx.x, blockDim.x, threadIdx.y, blockDim.y, n_parts, value,
                threadIdx.y < n_parts);
  /* a reduction of nothing has no parts, and its value is that of the identity */
  if (!n_parts) value = cuplug_identity(given);
  if (is_used && !threadIdx.y) store_output(a, given, number, value, kept, kept_steps, n);
}
} // namespace cuplug

/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of scans; what stands before is as for reduction.cuh, with packs of one element. A
 * line is cut into parts: cuplug_kernel puts together those of each part, and cuplug_finish goes on
 * from what came before a part. By columns a thread has a line, and neighbours lie side by side; by
 * rows the threads of a block share a tile of a line, each some elements that follow each other.
 * Values are put together in their order. */
constexpr int ITEMS = sizeof(cuplug_value) <= 16 ? 8 : 1; /* of a thread in a tile */
constexpr int TILE = THREADS * ITEMS, AHEAD = 4;
struct arrays {
  void *data[N_ARRAYS];
};
struct scalars {
  cuplug_scalar of[N_SCALARS];
};
struct steps {
  long long of[N_ARRAYS];
};

/* What has been put together so far, if anything. */
struct state {
  cuplug_value value;
  bool has_value;
};

__device__ inline void go_on(const cuplug_numbers &given, state &s, const cuplug_value &next) {
  s.value = s.has_value ? cuplug_reduce(given, s.value, next) : next;
  s.has_value = true;
}

__device__ inline cuplug_value element_at(const arrays &a, const cuplug_numbers &given,
                                          const int64_t (&base)[N_ARRAYS], const steps &step,
                                          int64_t r) {
  cuplug_places p;
#define CUPLUG_LOAD(k, name, type) \
  p.name.value[0] = static_cast<const type *>(a.data[k])[base[k] + r * step.of[k]];
  CUPLUG_EACH_INPUT(CUPLUG_LOAD)
  return cuplug_element(given, p, 0, r);
}

__device__ inline void store_at(const arrays &a, const cuplug_numbers &given,
                                const int64_t (&base)[N_ARRAYS], const steps &step, int64_t r,
                                const cuplug_value &value) {
  const cuplug_results results = cuplug_results_of(given, value, EXCLUSIVE ? r : r + 1);
#define CUPLUG_STORE(k, name, type) \
  static_cast<type *>(a.data[k])[base[k] + r * step.of[k]] = results.name;
  CUPLUG_EACH_OUTPUT(CUPLUG_STORE)
}

/* One element after the other; some are loaded ahead. */
template <bool STORES>
__device__ inline void scan_line(const arrays &a, const cuplug_numbers &given,
                                 const int64_t (&base)[N_ARRAYS], const steps &step, int64_t begin,
                                 int64_t end, state &s) {
  for (int64_t r = begin; r < end; r += AHEAD) {
    cuplug_value loaded[AHEAD];
#pragma unroll
    for (int u = 0; u < AHEAD; u++)
      if (r + u < end) loaded[u] = element_at(a, given, base, step, r + u);
#pragma unroll
    for (int u = 0; u < AHEAD; u++) {
      if (r + u >= end) continue;
      const cuplug_value before =
          STORES && EXCLUSIVE && !s.has_value ? cuplug_identity(given) : s.value;
      go_on(given, s, loaded[u]);
      if (STORES) store_at(a, given, base, step, r + u, EXCLUSIVE ? before : s.value);
    }
  }
}

/* Without conflicts of banks where each thread reads some that follow each other. */
__device__ inline int padded(int k) { return k + k / 32; }

/* Makes of the values of n threads those of all threads up to each. All threads come here. */
__device__ inline void scan_threads(const cuplug_numbers &given, cuplug_value *totals, int n) {
  const int own = threadIdx.x;
  for (int step = 1; step < n; step *= 2) {
    const bool takes = own >= step && own < n;
    cuplug_value both;
    __syncthreads();
    if (takes) both = cuplug_reduce(given, totals[own - step], totals[own]);
    __syncthreads();
    if (takes) totals[own] = both;
  }
  __syncthreads();
}

/* The n elements of a tile, in shared memory, after `s`. All threads come here. */
template <bool STORES>
__device__ inline void scan_tile(const cuplug_numbers &given, cuplug_value *tile,
                                 cuplug_value *totals, int n, state &s) {
  const int own = threadIdx.x, first = own * ITEMS;
  const int n_own = n - first < ITEMS ? n - first : ITEMS, n_used = (n + ITEMS - 1) / ITEMS;
  state mine = {};
  __syncthreads();
  for (int j = 0; j < n_own; j++) go_on(given, mine, tile[padded(first + j)]);
  if (n_own > 0) totals[own] = mine.value;
  scan_threads(given, totals, n_used);
  mine = s;
  if (own && n_own > 0) go_on(given, mine, totals[own - 1]);
  for (int j = 0; STORES && j < n_own; j++) {
    cuplug_value &place = tile[padded(first + j)];
    const cuplug_value before = EXCLUSIVE && !mine.has_value ? cuplug_identity(given) : mine.value;
    go_on(given, mine, place);
    place = EXCLUSIVE ? before : mine.value;
  }
  go_on(given, s, totals[n_used - 1]);
  __syncthreads();
}

#define CUPLUG_SCAN_PARAMETERS                                                                 \
  const arrays a, const scalars read, const int64_t n_lines, const int64_t n_scanned,          \
      const int64_t part, const divisors<KEPT> kept, const strides<N_ARRAYS, KEPT> kept_steps, \
      const steps step, cuplug_value *partials

template <bool STORES> __device__ inline void scan_part(CUPLUG_SCAN_PARAMETERS) {
  const cuplug_numbers given = cuplug_read(read.of);
  const int64_t line = COLUMNS ? (int64_t)blockIdx.x * blockDim.x + threadIdx.x : blockIdx.x;
  const int64_t begin = blockIdx.y * part;
  const int64_t end = begin + part < n_scanned ? begin + part : n_scanned;
  if (line >= n_lines) return;
  int64_t base[N_ARRAYS] = {};
  locate<KEPT>((index)line, kept, kept_steps, base);
  state s = {};
  for (int64_t p = 0; STORES && p < blockIdx.y; p++) go_on(given, s, partials[p * n_lines + line]);
  if constexpr (COLUMNS) {
    scan_line<STORES>(a, given, base, step, begin, end, s);
  } else {
    __shared__ cuplug_value tile[TILE + TILE / 32], totals[THREADS];
    for (int64_t r = begin; r < end; r += TILE) {
      const int n = end - r < TILE ? (int)(end - r) : TILE;
      for (int k = threadIdx.x; k < n; k += THREADS)
        tile[padded(k)] = element_at(a, given, base, step, r + k);
      scan_tile<STORES>(given, tile, totals, n, s);
      for (int k = threadIdx.x; STORES && k < n; k += THREADS)
        store_at(a, given, base, step, r + k, tile[padded(k)]);
      __syncthreads();
    }
  }
  if (!STORES && (COLUMNS || !threadIdx.x)) partials[blockIdx.y * n_lines + line] = s.value;
}

CUPLUG_KERNEL cuplug_kernel(CUPLUG_SCAN_PARAMETERS) {
  scan_part<false>(a, read, n_lines, n_scanned, part, kept, kept_steps, step, partials);
}

CUPLUG_KERNEL cuplug_finish(CUPLUG_SCAN_PARAMETERS) {
  scan_part<true>(a, read, n_lines, n_scanned, part, kept, kept_steps, step, partials);
}
} // namespace cuplug

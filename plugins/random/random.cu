/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of random.c. */
#include <cuplug/plugin.hpp>

#include "philox.cuh"
#include "random/draws.h"

namespace {

constexpr int THREADS = 256;
constexpr int64_t BLOCKS = 4096; /* keep any GPU busy; each may need its own table */

/* ---- Packs ----------------------------------------------------------------------------------- */

/* Packs of an output. The first pack may contain elements before the output. */
template <typename T> struct packs {
  T *out;
  int64_t n, lead;
  __device__ packs(const random_draw &d)
      : out((T *)d.out), n(d.n), lead((int64_t)((uintptr_t)d.out % 16 / sizeof(T))) {}
  __device__ bool has(int64_t i) const { return i >= 0 && i < n; }
  __device__ void store(int64_t i, const random_pack<T> &values) const {
    if (i >= 0 && i + random_pack<T>::N <= n) {
      random_store(out + i, values);
      return;
    }
#pragma unroll
    for (int j = 0; j < random_pack<T>::N; j++)
      if (has(i + j)) out[i + j] = values.of[j];
  }
};

/* Stores two packs of each thread, from element i on. Of two adjacent threads, the first stores the
 * first packs of both, so that they write a complete sector at once. */
template <typename T>
__device__ void store_two(const packs<T> &out, int64_t i, random_pack<T> (&values)[2]) {
  constexpr int N = random_pack<T>::N;
  const int lane = threadIdx.x % 32;
  const bool is_odd = lane % 2;
#pragma unroll
  for (int j = 0; j < N; j++) {
    T &first = values[0].of[j], &second = values[1].of[j];
    const T other = __shfl_sync(0xffffffff, is_odd ? first : second, lane ^ 1);
    first = is_odd ? other : first;
    second = is_odd ? second : other;
  }
  out.store(is_odd ? i - N : i, values[0]);
  out.store(is_odd ? i + N : i + 2 * N, values[1]);
  __syncwarp();
}

/* Numbers as code(bits) computes them; code.after(bits, i, out) may change them. Each thread, or
 * each block, has a pack. All threads of a block continue while one has work: their common values
 * are computed once for a warp. */
template <typename T, bool is_wide, class CODE>
__device__ void draw(const random_draw &d, const CODE &code) {
  constexpr int N = random_pack<T>::N, PER = random_bits_of<is_wide>::PER_BLOCK;
  constexpr int EACH = N < PER ? PER : N;
  const packs<T> out(d);
  const int beside = (int)((d.from.first - (uint64_t)out.lead) % PER);
  const int64_t step = (int64_t)gridDim.x * THREADS;
  for (int64_t p = (int64_t)blockIdx.x * THREADS; p * EACH - out.lead < d.n; p += step) {
    const int64_t i = (p + threadIdx.x) * EACH - out.lead;
    const random_bits<is_wide, EACH> own(d.from, d.from.first + (uint64_t)i, beside);
    random_pack<T> values[EACH / N];
#pragma unroll
    for (int j = 0; j < EACH; j++) values[j / N].of[j % N] = code(own.at[j]);
    if constexpr (EACH == N)
      out.store(i, values[0]);
    else
      store_two(out, i, values);
    code.after(own, i, out);
  }
}

/* ---- Numbers --------------------------------------------------------------------------------- */

template <typename T> struct floats {
  T at, by;
  floats(const random_range &range) : at((T)range.at), by((T)range.by) {}
  template <class BITS, class OUT>
  __device__ void after(const BITS &, int64_t, const OUT &) const {}
};

template <typename T> struct uniform : floats<T> {
  using floats<T>::floats;
  __device__ float operator()(uint32_t bits) const {
    return random_uniform32(bits, this->at, this->by);
  }
  __device__ double operator()(uint64_t bits) const {
    return random_uniform64(bits, this->at, this->by);
  }
};

template <typename T> struct normal : floats<T> {
  const float (*table)[QUANTILE_ROWS];
  using floats<T>::floats;
  __device__ float operator()(uint32_t bits) const {
    return fmaf(random_normal32(bits, table), this->by, this->at);
  }
  __device__ double operator()(uint64_t bits) const {
    return fma(random_normal64(bits), this->by, this->at);
  }
};

/* Both in float64 for either dtype, rounded once. */
template <typename T> struct exponential : floats<double> {
  using floats<double>::floats;
  __device__ T operator()(uint32_t bits) const {
    return (T)fma(random_exponential32(bits), by, at);
  }
  __device__ T operator()(uint64_t bits) const {
    return (T)fma(random_exponential64(bits), by, at);
  }
};

template <typename T> struct lognormal : floats<double> {
  const float (*table)[QUANTILE_ROWS];
  using floats<double>::floats;
  __device__ float operator()(uint32_t bits) const {
    return (float)random_exp(fma((double)random_normal32(bits, table), by, at));
  }
  __device__ double operator()(uint64_t bits) const {
    return random_exp(fma(random_normal64(bits), by, at));
  }
};

template <typename T> struct integers {
  const random_draw &d;
  __device__ T operator()(uint32_t bits) const {
    return (T)(d.range.low + random_below32(bits, (uint32_t)d.range.n));
  }
  __device__ T operator()(uint64_t bits) const {
    return (T)(d.range.low + random_below64(bits, d.range.n));
  }
  __device__ bool is_open(uint32_t bits) const {
    return random_is_open32(bits, (uint32_t)d.range.n);
  }
  __device__ bool is_open(uint64_t bits) const { return random_is_open64(bits, d.range.n); }
  __device__ T more(uint32_t bits, uint64_t deciding) const {
    return (T)random_more32(bits, (uint32_t)d.range.n, deciding);
  }
  __device__ T more(uint64_t bits, uint64_t deciding) const {
    return (T)random_more64(bits, d.range.n, deciding);
  }

  /* Few packs have numbers that their first bits leave open: the code for these exists once. */
  template <bool is_wide, int N>
  __device__ void after(const random_bits<is_wide, N> &own, int64_t i, const packs<T> &out) const {
    unsigned open = 0;
#pragma unroll
    for (int j = 0; j < N; j++) open |= (unsigned)is_open(own.at[j]) << j;
    for (int j = 0; open; j++, open >>= 1)
      if (open & 1 && out.has(i + j)) decide<is_wide>(i + j, out);
  }
  template <bool is_wide> __device__ void decide(int64_t i, const packs<T> &out) const {
    using of = random_bits_of<is_wide>;
    const uint64_t element = d.from.first + (uint64_t)i;
    const random_block block = random_philox(&d.from.keys, of::block(element), d.from.sequence);
    const auto bits = of::part(block, (int)(element % of::PER_BLOCK));
    out.out[i] += more(bits, random_deciding(&d.from, (uint64_t)i));
  }
};

/* ---- Kernels --------------------------------------------------------------------------------- */

template <typename T>
__global__ void __launch_bounds__(THREADS)
    uniform_kernel(const __grid_constant__ random_draw d, uniform<T> code) {
  draw<T, sizeof(T) == 8>(d, code);
}

template <typename T>
__global__ void __launch_bounds__(THREADS)
    exponential_kernel(const __grid_constant__ random_draw d, exponential<T> code) {
  draw<T, sizeof(T) == 8>(d, code);
}

/* For normal numbers and numbers derived from them. */
template <typename T, class CODE>
__global__ void __launch_bounds__(THREADS)
    normal_kernel(const __grid_constant__ random_draw d, CODE code) {
  if constexpr (sizeof(T) == 4) {
    __shared__ float copy[QUANTILE_DEGREE + 1][QUANTILE_ROWS];
#pragma unroll 1
    for (int k = threadIdx.x; k < (QUANTILE_DEGREE + 1) * QUANTILE_ROWS; k += THREADS)
      copy[0][k] = quantile_table[0][k];
    __syncthreads();
    code.table = copy;
  }
  draw<T, sizeof(T) == 8>(d, code);
}

template <typename T, bool is_wide>
__global__ void __launch_bounds__(THREADS) integers_kernel(const __grid_constant__ random_draw d) {
  draw<T, is_wide>(d, integers<T>{d});
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* With the blocks for this number of elements, and for elements of a pack before them. */
template <typename T, auto kernel, class... A>
int launch(cuplug::call call, const random_draw &d, const A &...code) {
  if (d.n == 0) return CUPLUG_OK;
  const int64_t wanted = cuplug::blocks(d.n / random_pack<T>::N + 2, THREADS);
  return call.launch<kernel>({wanted < BLOCKS ? wanted : BLOCKS, THREADS}, d, code...);
}

template <template <typename> class CODE>
int launch_normal(cuplug::call call, const random_draw &d) {
  using wide = CODE<double>;
  using narrow = CODE<float>;
  if (d.is_wide) return launch<double, normal_kernel<double, wide>>(call, d, wide(d.range));
  return launch<float, normal_kernel<float, narrow>>(call, d, narrow(d.range));
}

template <typename T> int launch_integers(cuplug::call call, const random_draw &d) {
  if constexpr (sizeof(T) >= 4)
    if (d.is_wide) return launch<T, integers_kernel<T, true>>(call, d);
  return launch<T, integers_kernel<T, false>>(call, d);
}

} // namespace

CUPLUG_ENTRY int uniform_cuda(const cuplug_call *call) {
  const random_draw d = random_draw_of(call, RANDOM_UNIFORM);
  if (d.is_wide) return launch<double, uniform_kernel<double>>(call, d, uniform<double>(d.range));
  return launch<float, uniform_kernel<float>>(call, d, uniform<float>(d.range));
}

CUPLUG_ENTRY int normal_cuda(const cuplug_call *call) {
  const random_draw d = random_draw_of(call, RANDOM_NORMAL);
  return launch_normal<normal>(call, d);
}

CUPLUG_ENTRY int exponential_cuda(const cuplug_call *call) {
  const random_draw d = random_draw_of(call, RANDOM_EXPONENTIAL);
  if (d.is_wide)
    return launch<double, exponential_kernel<double>>(call, d, exponential<double>(d.range));
  return launch<float, exponential_kernel<float>>(call, d, exponential<float>(d.range));
}

CUPLUG_ENTRY int lognormal_cuda(const cuplug_call *call) {
  const random_draw d = random_draw_of(call, RANDOM_LOGNORMAL);
  return launch_normal<lognormal>(call, d);
}

CUPLUG_ENTRY int integers_cuda(const cuplug_call *call) {
  const random_draw d = random_draw_of(call, RANDOM_INTEGERS);
  switch (d.element_bytes) {
  case 1:
    return launch_integers<uint8_t>(call, d);
  case 2:
    return launch_integers<uint16_t>(call, d);
  case 4:
    return launch_integers<uint32_t>(call, d);
  default:
    return launch_integers<uint64_t>(call, d);
  }
}

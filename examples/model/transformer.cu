/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of a transformer that no stock plugin has, each with its gradient.
 *   rms_norm(x, weight, epsilon)   y[i, j] = x[i, j] r[i] weight[j]
 *                                  r[i] = 1 / sqrt(mean_j x[i, j]^2 + epsilon)
 *   silu_and_mul(x)                y[i, j] = silu(x[i, j]) x[i, j + n],  silu(g) = g / (1 +
 * exp(-g)) rotary(x, cos, sin)            rotates the pairs (x[b, t, h, i], x[b, t, h, i + r]) by
 * the angle of cos[t, i] and sin[t, i], in place; x may be a slice T: float32, bfloat16, computed
 * with as float32. Each formula is written once, for a row that a block of a GPU or a thread of the
 * host computes. Sources: arXiv:1910.07467 (norm), arXiv:2002.05202 (gate), arXiv:2104.09864
 * (rotation). */
#include "../plugins/block.cuh"

/* The elements of a row that belong to a thread, and the sum over all threads of the row. */
#ifdef __CUDA_ARCH__
#define FIRST threadIdx.x
#define STEP blockDim.x
#define SUM(value) reduce_block(value, 0, sum_of())
#else
#define FIRST 0
#define STEP 1
#define SUM(value) (value)
#endif

/* y[column] = f(column, x...) for a row of n, W elements at a time. */
template <int W, typename T, typename F, typename... X>
__host__ __device__ void map_packs(int64_t n, T *y, F f, const X *...x) {
  for (int64_t at = FIRST; at < n / W; at += STEP)
    [&](const pack<X, W> &...p) {
      pack<T, W> out;
      for (int k = 0; k < W; k++) out.value[k] = (T)f(at * W + k, (float)p.value[k]...);
      reinterpret_cast<pack<T, W> *>(y)[at] = out;
    }(reinterpret_cast<const pack<X, W> *>(x)[at]...);
}
template <typename T, typename F, typename... X>
__host__ __device__ void map_of(int64_t n, T *y, F f, const X *...x) {
  constexpr int W = full_width<T>;
  if (n % W == 0 && ((uint64_t)y | ... | (uint64_t)x) % 16 == 0)
    map_packs<W>(n, y, f, x...);
  else
    map_packs<1>(n, y, f, x...);
}

/* Calls f(row, part) for m rows. The rows of one part are run one after the other. */
template <typename F> __global__ void __launch_bounds__(THREADS) rows_kernel(int64_t m, F f) {
  for (int64_t i = blockIdx.x; i < m; i += gridDim.x) f(i, blockIdx.x);
}

struct on_cuda {
  static constexpr int64_t GRAIN = 1; /* part p begins with row p * GRAIN */
  static int64_t n_parts(int64_t m) { return m < 1024 ? m : 1024; }
  template <typename F> static int rows(cuplug::call call, int64_t m, int64_t n, F f) {
    return m ? call.launch<rows_kernel<F>>({n_parts(m), threads_for(n, 1)}, m, f) : (int)CUPLUG_OK;
  }
};

struct on_host {
  static constexpr int64_t GRAIN = 16;
  static int64_t n_parts(int64_t m) { return cuplug::blocks(m, GRAIN); }
  template <typename F> static int rows(cuplug::call call, int64_t m, int64_t, F f) {
    return call.parallel(m, GRAIN, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) f(i, begin / GRAIN);
    });
  }
};

/* Both entries of an operator: function<where, T>(call, names...). */
#define ENTRIES(op, function, ...)                                                            \
  CUPLUG_CUDA_ENTRY(op, (T), __VA_ARGS__) { return function<on_cuda, T>(call, __VA_ARGS__); } \
  CUPLUG_HOST_ENTRY(op, (T), __VA_ARGS__) { return function<on_host, T>(call, __VA_ARGS__); }

CUPLUG_TYPED_OPERATOR(rms_norm,
                      "rms_norm(x: T[*rows, n], weight: T[n], epsilon: float = 1e-6) -> "
                      "y: T[*rows, n] where T: float32 | bfloat16, n > 0",
                      "Rows divided by the root of their mean square." CUPLUG_GRADIENT(
                          rms_norm_backward) CUPLUG_INDEPENDENT(rows));
CUPLUG_TYPED_OPERATOR(rms_norm_backward,
                      "rms_norm_backward(grad: T[*rows, n], x: T[*rows, n], weight: T[n], "
                      "epsilon: float = 1e-6) -> (grad_x: T[*rows, n], grad_weight: T[n]) "
                      "where T: float32 | bfloat16, n > 0",
                      "The gradients of rms_norm.");

template <typename Where, typename T>
int norm(cuplug::call call, cuplug::array<const T> of, const T *weight, double epsilon, int64_t n,
         T *y) {
  const T *x = of;
  return Where::rows(call, of.size() / n, n, [=] __host__ __device__(int64_t i, int64_t) {
    float squares = 0;
    for (int64_t j = FIRST; j < n; j += STEP) squares += (float)x[i * n + j] * (float)x[i * n + j];
    const float r = 1 / sqrtf(SUM(squares) / n + (float)epsilon);
    const auto scaled = [=](int64_t, float v, float w) { return v * r * w; };
    map_of(n, y + i * n, scaled, x + i * n, weight);
  });
}
ENTRIES(rms_norm, norm, x, weight, epsilon, n, y)

/* Each part adds up a gradient of the weight; the parts are summed in an order that is fixed. */
template <typename Where, typename T>
int norm_backward(cuplug::call call, const T *grad, cuplug::array<const T> of, const T *weight,
                  double epsilon, int64_t n, T *grad_x, T *grad_weight) {
  const T *x = of;
  const int64_t m = of.size() / n, n_parts = Where::n_parts(m);
  float *parts = call.workspace<float>(n_parts * n + 1);
  if (!parts) return CUPLUG_ERROR_MEMORY;
  const auto row = [=] __host__ __device__(int64_t i, int64_t part) {
    float squares = 0, product = 0, *sums = parts + part * n;
    for (int64_t j = FIRST; j < n; j += STEP) {
      const float v = (float)x[i * n + j];
      squares += v * v, product += (float)grad[i * n + j] * v * (float)weight[j];
    }
    const float r = 1 / sqrtf(SUM(squares) / n + (float)epsilon), tilt = SUM(product) / n * r * r;
    const auto back = [=](int64_t j, float g, float v, float w) {
      sums[j] = (i == part * Where::GRAIN ? 0 : sums[j]) + g * v * r;
      return r * (g * w - v * tilt);
    };
    map_of(n, grad_x + i * n, back, grad + i * n, x + i * n, weight);
  };
  if (int status = Where::rows(call, m, n, row)) return status;
  return Where::rows(call, n, 32, [=] __host__ __device__(int64_t j, int64_t) {
    float total = 0;
    for (int64_t part = FIRST; part < n_parts; part += STEP) total += parts[part * n + j];
    grad_weight[j] = (T)SUM(total);
  });
}
ENTRIES(rms_norm_backward, norm_backward, grad, x, weight, epsilon, n, grad_x, grad_weight)

CUPLUG_TYPED_OPERATOR(silu_and_mul,
                      "silu_and_mul(x: T[*rows, n]) -> y: T[*rows, n // 2] "
                      "where T: float32 | bfloat16, n > 0, n % 2 == 0",
                      "The silu of the first half of each row, times the second half." //
                      CUPLUG_GRADIENT(silu_and_mul_backward) CUPLUG_INDEPENDENT(rows));
CUPLUG_TYPED_OPERATOR(silu_and_mul_backward,
                      "silu_and_mul_backward(grad: T[*rows, h], x: T[*rows, n]) -> "
                      "grad_x: T[*rows, n] where T: float32 | bfloat16, n > 0, n == 2 * h",
                      "The gradient of silu_and_mul.");

template <typename Where, typename T>
int gate(cuplug::call call, cuplug::array<const T> x, int64_t n, T *y) {
  const int64_t h = n / 2;
  const T *gates = x, *ups = gates + h;
  return Where::rows(call, x.size() / n, h, [=] __host__ __device__(int64_t i, int64_t) {
    const auto gated = [](int64_t, float g, float u) { return g / (1 + expf(-g)) * u; };
    map_of(h, y + i * h, gated, gates + i * n, ups + i * n);
  });
}
ENTRIES(silu_and_mul, gate, x, n, y)

template <typename Where, typename T>
int gate_backward(cuplug::call call, const T *grad, cuplug::array<const T> x, int64_t n, T *to) {
  const int64_t h = n / 2;
  const T *gates = x, *ups = gates + h;
  return Where::rows(call, x.size() / n, h, [=] __host__ __device__(int64_t i, int64_t) {
    const auto of_gate = [](int64_t, float d, float g, float u) {
      const float s = 1 / (1 + expf(-g));
      return d * u * s * (1 + g * (1 - s));
    };
    const auto of_up = [](int64_t, float d, float g) { return d * g / (1 + expf(-g)); };
    map_of(h, to + i * n, of_gate, grad + i * h, gates + i * n, ups + i * n);
    map_of(h, to + i * n + h, of_up, grad + i * h, gates + i * n);
  });
}
ENTRIES(silu_and_mul_backward, gate_backward, grad, x, n, grad_x)

template <typename Where, typename T>
int rotate(cuplug::call call, cuplug::array<T> x, cuplug::array<const float> cos,
           cuplug::array<const float> sin, float sign) {
  const int64_t n_tokens = x.shape(1), of_batch = x.stride(0), of_token = x.stride(1);
  const int64_t of_head = x.stride(2), of_element = x.stride(3);
  const uint32_t r = (uint32_t)x.shape(3) / 2, n = (uint32_t)x.shape(2) * r;
  const float *const cosines = cos, *const sines = sin;
  const int64_t of_cos = cos.stride(0), of_sin = sin.stride(0);
  T *const data = x;
  const auto token = [=] __host__ __device__(int64_t i, int64_t) {
    const int64_t t = i % n_tokens;
    T *const heads = data + i / n_tokens * of_batch + t * of_token;
    for (uint32_t j = FIRST; j < n; j += STEP) {
      const uint32_t k = j % r;
      const float c = cosines[t * of_cos + k], s = sign * sines[t * of_sin + k];
      T *const a = heads + j / r * of_head + k * of_element, *const b = a + r * of_element;
      const float first = (float)*a, second = (float)*b;
      *a = (T)(first * c - second * s), *b = (T)(second * c + first * s);
    }
  };
  return Where::rows(call, n ? x.shape(0) * n_tokens : 0, n, token);
}

#define ROTARY(op, x, sign, doc)                                                                  \
  CUPLUG_TYPED_OPERATOR(op,                                                                       \
                        #op "(inout " #x                                                          \
                            ": T[b, t, h, d], cos: float32[m, r], sin: float32[m, r]) "           \
                            "where T: float32 | bfloat16, d == 2 * r, t <= m, "                   \
                            "stride(cos, -1) == 1, stride(sin, -1) == 1",                         \
                        doc CUPLUG_TAKES_STRIDES CUPLUG_LINEAR(x));                               \
  CUPLUG_CUDA_ENTRY(op, (T), x, cos, sin) { return rotate<on_cuda, T>(call, x, cos, sin, sign); } \
  CUPLUG_HOST_ENTRY(op, (T), x, cos, sin) { return rotate<on_host, T>(call, x, cos, sin, sign); }

ROTARY(rotary, x, 1, "Rotary position embedding, in place." CUPLUG_GRADIENT(rotary_backward))
ROTARY(rotary_backward, grad, -1, "The gradient of rotary: rotated back, in place.")
CUPLUG_PLUGIN(transformer, "1.0.0");

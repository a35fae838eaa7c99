/* SPDX-License-Identifier: Apache-2.0 */
/* adam(params, grads, m, v, step, ...): one step of Adam for all tensors of a model in one call.
 *   m = beta1 m + (1 - beta1) g          v = beta2 v + (1 - beta2) g^2
 *   p = p - lr (m / (1 - beta1^step)) / (sqrt(v / (1 - beta2^step)) + eps)
 * Modified: params, m, v. T: float32, float64. Item k of all four lists has the same shape, which
 * may differ for other k. Each element is read and written once. The addresses are passed as kernel
 * arguments, 64 tensors per launch, so nothing is copied to the GPU and graphs can be captured.
 * Source: Kingma and Ba, Adam: A Method for Stochastic Optimization, arXiv:1412.6980, algorithm 1.
 */
#include <cmath>
#include <cuplug/plugin.hpp>

struct rates {
  double beta1, beta2, eps, step, scale; /* step: lr / (1 - beta1^t); scale: 1 - beta2^t */
};

static rates rates_of(int64_t step, double lr, double beta1, double beta2, double eps) {
  return {beta1, beta2, eps, lr / (1 - pow(beta1, step)), 1 - pow(beta2, step)};
}

template <typename T> __host__ __device__ void update(T &p, double g, float &m, float &v, rates r) {
  m = (float)(r.beta1 * m + (1 - r.beta1) * g);
  v = (float)(r.beta2 * v + (1 - r.beta2) * g * g);
  p = (T)(p - r.step * m / (sqrt(v / r.scale) + r.eps));
}

constexpr int THREADS = 256, TENSORS = 64;
template <typename T> struct batch {
  T *p[TENSORS];
  const T *g[TENSORS];
  float *m[TENSORS], *v[TENSORS];
  int64_t n[TENSORS], n_tensors, largest;

  template <typename P, typename G, typename M> batch(int64_t at, P ps, G gs, M ms, M vs) {
    for (n_tensors = 0, largest = 1; n_tensors < TENSORS && at < ps.size(); n_tensors++, at++) {
      p[n_tensors] = ps[at], g[n_tensors] = gs[at], m[n_tensors] = ms[at], v[n_tensors] = vs[at];
      n[n_tensors] = ps[at].size();
      largest = n[n_tensors] > largest ? n[n_tensors] : largest;
    }
  }
};

template <typename T>
__global__ void __launch_bounds__(THREADS) adam_kernel(const batch<T> b, rates r) {
  const int k = blockIdx.y;
  const int64_t stride = (int64_t)gridDim.x * THREADS;
  for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < b.n[k]; i += stride)
    update(b.p[k][i], b.g[k][i], b.m[k][i], b.v[k][i], r);
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(adam,
                      "adam(inout params: T[*s][each], grads: T[*s][each], "
                      "inout m: float32[*s][each], inout v: float32[*s][each], step: int, "
                      "lr: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, "
                      "eps: float = 1e-8) where T: float32 | float64, step > 0",
                      "One step of Adam for all tensors of a model.");

CUPLUG_CUDA_ENTRY(adam, (T), params, grads, m, v, step, lr, beta1, beta2, eps) {
  const rates r = rates_of(step, lr, beta1, beta2, eps);
  for (int64_t k = 0; k < params.size(); k += TENSORS) {
    const batch<T> b(k, params, grads, m, v);
    const int64_t blocks = cuplug::blocks(b.largest, THREADS), most = 4096;
    const cuplug::grid grid = {{blocks < most ? blocks : most, b.n_tensors}, THREADS};
    if (int status = call.launch<adam_kernel<T>>(grid, b, r)) return status;
  }
  return CUPLUG_OK;
}

CUPLUG_HOST_ENTRY(adam, (T), params, grads, m, v, step, lr, beta1, beta2, eps) {
  const rates r = rates_of(step, lr, beta1, beta2, eps);
  return call.parallel(params.size(), 16, [=](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; k++) {
      auto p = params[k];
      const auto g = grads[k];
      const auto first = m[k], second = v[k];
      for (int64_t i = 0; i < p.size(); i++) update(p[i], g[i], first[i], second[i], r);
    }
  });
}
CUPLUG_PLUGIN(adam, "1.0.0");

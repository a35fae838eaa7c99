/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of gated.c. */
#include "rows/launch.cuh"

namespace {

struct gate {
  float value, slope;
};

/* 1 / (1 + exp(-x)), and its derivative without a difference. */
template <typename T> __device__ gate sigmoid(float x) {
  const float t = rows::exponential<T>(-fabsf(x)), inverse = 1 / (1 + t);
  return {x < 0 ? t * inverse : inverse, t * inverse * inverse};
}
template <typename T> struct silu {
  __device__ gate operator()(float a) const {
    const gate s = sigmoid<T>(a);
    return {a * s.value, s.value + a * s.slope};
  }
};
template <typename T> struct gelu {
  __device__ gate operator()(float a) const {
    const float p = 0.5f * erfcf(a * -0.70710678f);
    return {a * p, p + a * 0.39894228f * rows::exponential<T>(-0.5f * a * a)};
  }
};
template <typename T> struct gelu_tanh {
  __device__ gate operator()(float a) const {
    const gate s = sigmoid<T>(1.5957691f * (a + 0.044715f * a * a * a));
    return {a * s.value, s.value + a * s.slope * 1.5957691f * (1 + 0.134145f * a * a)};
  }
};

template <typename T, template <typename> class Gate> struct forward {
  static constexpr int KEPT = 0;
  const T *x;
  T *y;
  template <typename Part> __device__ void run(const Part &p) const {
    const T *a = x + 2 * p.row * p.length;
    p.map(
        p.at(y), [](float v, float b) { return Gate<T>()(v).value * b; }, p.stream(a),
        p.stream(a + p.length));
  }
};

template <typename T, template <typename> class Gate> struct backward {
  static constexpr int KEPT = 0;
  const T *grad, *x;
  T *grad_x;
  template <typename Part> __device__ void run(const Part &p) const {
    const int64_t begin = 2 * p.row * p.length;
    const auto a = p.stream(x + begin), b = p.stream(x + begin + p.length),
               g = p.stream(p.at(grad));
    p.over_packs([&](int i, auto first) {
      const auto v = a.get(p, i, first), factor = b.get(p, i, first), d = g.get(p, i, first);
      float of_a[Part::W], of_b[Part::W];
#pragma unroll
      for (int k = 0; k < Part::W; k++) {
        const gate s = Gate<T>()(v.value[k]);
        of_a[k] = d.value[k] * factor.value[k] * s.slope;
        of_b[k] = d.value[k] * s.value;
      }
      p.put(grad_x + begin, first, of_a);
      p.put(grad_x + begin + p.length, first, of_b);
    });
  }
};

template <template <typename> class Gate> int run_forward(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors, *y = x + 1;
  return rows::by_dtype(x, [=](auto zero) {
    using T = decltype(zero);
    const forward<T, Gate> op = {(const T *)x->data, (T *)y->data};
    return rows::launch_map<T>(call, rows::count(y), rows::length(y), op, op.x, op.y);
  });
}

template <template <typename> class Gate> int run_backward(const cuplug_call *call) {
  const cuplug_tensor *t = call->tensors;
  return rows::by_dtype(t, [=](auto zero) {
    using T = decltype(zero);
    const backward<T, Gate> op = {(const T *)t[0].data, (const T *)t[1].data, (T *)t[2].data};
    return rows::launch_map<T>(call, rows::count(t), rows::length(t), op, op.grad, op.x, op.grad_x);
  });
}

} // namespace

CUPLUG_ENTRY int silu_and_mul_cuda(const cuplug_call *call) { return run_forward<silu>(call); }
CUPLUG_ENTRY int silu_and_mul_backward_cuda(const cuplug_call *call) {
  return run_backward<silu>(call);
}
CUPLUG_ENTRY int gelu_and_mul_cuda(const cuplug_call *call) {
  return call->scalars[0].i ? run_forward<gelu_tanh>(call) : run_forward<gelu>(call);
}
CUPLUG_ENTRY int gelu_and_mul_backward_cuda(const cuplug_call *call) {
  return call->scalars[0].i ? run_backward<gelu_tanh>(call) : run_backward<gelu>(call);
}

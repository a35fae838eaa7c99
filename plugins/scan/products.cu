/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of products.c. Each line has a block. Each thread has a part of
 * the line. The block combines the sums backward and the products forward. */
#include "scan/values.cuh"

namespace {

constexpr int THREADS = 256;

template <typename T> __device__ T conjugate(const T &x) { return x; }
template <typename R> __device__ scan_complex<R> conjugate(const scan_complex<R> &x) {
  return {x.real, -x.imag};
}

template <typename T, typename C> struct arrays {
  const T *grad, *x;
  T *out;
  C *sums; /* memory for elements that would be rounded; NULL: they are stored in out */
  elements_axis of_grad, of_x;
  int64_t initial;
};

/* s[begin] = sum + factor s[end]; product of x from begin to end. */
template <typename C> struct part { C sum, factor, product; };

/* The values from the parts after, and before, each thread. */
template <typename C> __device__ void join(part<C> *parts) {
  C sum(0), product(1);
  for (int k = THREADS - 1; k >= 0; k--) {
    const C before = parts[k].sum + parts[k].factor * sum;
    parts[k].sum = sum;
    sum = before;
  }
  for (int k = 0; k < THREADS; k++) {
    const C after = product * parts[k].product;
    parts[k].product = product;
    product = after;
  }
}

template <typename T, typename C>
__global__ void __launch_bounds__(THREADS)
    products_backward_kernel(const __grid_constant__ arrays<T, C> a) {
  __shared__ part<C> parts[THREADS];
  const int64_t line = blockIdx.x, n = a.of_x.m, step = a.of_x.width;
  const int64_t each = (n + THREADS - 1) / THREADS, first = each * threadIdx.x;
  const int64_t begin = first < n ? first : n, end = first + each < n ? first + each : n;
  const T *x = a.x + elements_line(&a.of_x, line);
  const T *grad = a.grad + elements_line(&a.of_grad, line) + a.initial * step;
  part<C> own = {C(0), C(1), C(1)};
  for (int64_t i = end - 1; i >= begin; i--) {
    const C factor = conjugate(static_cast<C>(x[i * step]));
    const C next = i + 1 < n ? conjugate(static_cast<C>(x[(i + 1) * step])) : C(0);
    own.sum = static_cast<C>(grad[i * step]) + next * own.sum;
    own.factor = next * own.factor;
    own.product = factor * own.product;
  }
  parts[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x == 0) join(parts);
  __syncthreads();
  T *out = a.out + elements_line(&a.of_x, line);
  C *sums = a.sums ? a.sums + line * n : reinterpret_cast<C *>(out);
  const int64_t by = a.sums ? 1 : step;
  C sum = parts[threadIdx.x].sum, product = parts[threadIdx.x].product;
  for (int64_t i = end - 1; i >= begin; i--) {
    const C next = i + 1 < n ? conjugate(static_cast<C>(x[(i + 1) * step])) : C(0);
    sum = static_cast<C>(grad[i * step]) + next * sum;
    sums[i * by] = sum;
  }
  for (int64_t i = begin; i < end; i++) {
    const C factor = conjugate(static_cast<C>(x[i * step]));
    out[i * step] = static_cast<T>(product * sums[i * by]);
    product = product * factor;
  }
}

template <typename T> int backward(cuplug::call call) {
  using C = scan_computed_t<T>;
  const cuplug_call *c = call;
  const cuplug_tensor *grad = &c->tensors[0], *x = &c->tensors[1];
  const int64_t axis = c->scalars[0].i, n = cuplug_n_elements(x);
  const int status = elements_check_beside(c, "grad", grad, x, axis);
  if (status || n == 0) return status;
  arrays<T, C> a = {
      (const T *)grad->data,       (const T *)x->data,       (T *)c->outputs[0].data, nullptr,
      elements_around(grad, axis), elements_around(x, axis), c->scalars[1].i != 0};
  if (sizeof(C) != sizeof(T)) {
    a.sums = call.workspace<C>(n);
    if (!a.sums) return CUPLUG_ERROR_MEMORY;
  }
  return call.launch<products_backward_kernel<T, C>>({n / a.of_x.m, THREADS}, a);
}

} // namespace

CUPLUG_ENTRY int cumulative_prod_backward_cuda(const cuplug_call *call) {
  switch (cuplug_type(&call->tensors[1])) {
  case CUPLUG_FLOAT16:
    return backward<__half>(call);
  case CUPLUG_BFLOAT16:
    return backward<__nv_bfloat16>(call);
  case CUPLUG_FLOAT32:
    return backward<float>(call);
  case CUPLUG_FLOAT64:
    return backward<double>(call);
  case CUPLUG_COMPLEX64:
    return backward<scan_complex<float>>(call);
  }
  return backward<scan_complex<double>>(call);
}

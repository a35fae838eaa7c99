/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of selection.c. */
#include "compaction.cuh"
#include "indexing/flags.h"

namespace {

constexpr int THREADS = 256;

/* Returns whether an element of the width of W, a constant, is not 0. */
template <typename W> struct is_set {
  static constexpr bool ARE_BYTES = sizeof(W) == 1;
  flags_of flags;
  __device__ bool operator()(int64_t i) const {
    const flags_of known = {flags.data, sizeof(W), flags.mask};
    return flag_at(&known, i) != 0;
  }
  bool is_aligned() const { return (uintptr_t)flags.data % sizeof(uint4) == 0; }
  /* For 16 bytes. The set bits of each of four are added to its highest bit, and these are made
   * adjacent by a product. */
  __device__ unsigned together(int64_t i) const {
    const uint4 bytes = *(const uint4 *)((const uint8_t *)flags.data + i);
    const unsigned words[] = {bytes.x, bytes.y, bytes.z, bytes.w};
    const unsigned mask = (unsigned)(flags.mask & 255) * 0x01010101u;
    unsigned bits = 0;
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const unsigned x = words[k] & mask, set = ((x & 0x7f7f7f7fu) + 0x7f7f7f7fu | x) & 0x80808080u;
      bits |= ((set >> 7) * 0x01020408u >> 24) << k * 4;
    }
    return bits;
  }
};

/* The selected value of an element: itself, or its number. */
template <typename T> struct take_element {
  static constexpr bool ALL = false;
  using item = T;
  const T *x;
  T *out;
  __device__ T load(int64_t i) const { return x[i]; }
  __device__ void store(const T &value, int64_t, int64_t place, bool) const { out[place] = value; }
};
struct take_number {
  static constexpr bool ALL = false;
  using item = int;
  int64_t *out;
  __device__ int load(int64_t) const { return 0; }
  __device__ void store(int, int64_t i, int64_t place, bool) const { out[place] = i; }
};

/* Writes elements of grad to their positions. It is a fault if the mask has another number of true
 * elements than grad. */
template <typename T> struct put_back {
  static constexpr bool ALL = true;
  using item = int;
  const T *grad;
  T *out;
  int64_t n, n_grad;
  cuplug_fault *fault;
  __device__ int load(int64_t) const { return 0; }
  __device__ void store(int, int64_t i, int64_t place, bool is_set) const {
    const bool is_given = is_set && place < n_grad;
    out[i] = is_given ? grad[place] : T{};
    if (is_set && !is_given) cuplug_fault_index(fault, 1, i, place, 0, n_grad);
    if (i == n - 1 && place + is_set < n_grad)
      cuplug_fault_index(fault, 0, n_grad - 1, n_grad - 1, 0, place + is_set);
  }
};

/* Converts element numbers in the last row of out to positions along each dimension. */
struct sizes_of {
  int64_t at[64];
  int n;
};
__global__ void __launch_bounds__(THREADS)
    locate_kernel(int64_t *out, int64_t n_found, const __grid_constant__ sizes_of sizes) {
  const int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
  if (i >= n_found) return;
  int64_t rest = out[(sizes.n - 1) * n_found + i];
  for (int d = sizes.n - 1; d > 0; d--) {
    const int64_t outer = rest / sizes.at[d];
    out[d * n_found + i] = rest - outer * sizes.at[d];
    rest = outer;
  }
  out[i] = rest;
}

int locate(cuplug::call call, const cuplug_tensor &x, int64_t *out, int64_t n_found) {
  sizes_of sizes = {{}, x.ndim};
  for (int d = 0; d < x.ndim; d++) sizes.at[d] = x.shape[d];
  return call.launch<locate_kernel>({cuplug::blocks(n_found, THREADS), THREADS}, out, n_found,
                                    sizes);
}

int select(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0], &mask = c->tensors[1];
  compaction::tiles tiles;
  int status = compaction::count(call, is_set<uint8_t>{flags_of_tensor(&mask)},
                                 cuplug_n_elements(&x), &tiles);
  if (!status) status = cuplug_output(call, 2, &tiles.n_found);
  if (status || tiles.n_found == 0) return status;
  void *out = c->outputs[0].data;
#define CASE(T) return compaction::take(call, take_element<T>{(const T *)x.data, (T *)out}, tiles);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&x), CASE)
#undef CASE
  return CUPLUG_OK;
}

int select_backward(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &grad = c->tensors[0], &mask = c->tensors[1];
  const int64_t n = cuplug_n_elements(&mask);
  compaction::tiles tiles;
  const int status = compaction::begin(call, is_set<uint8_t>{flags_of_tensor(&mask)}, n, &tiles);
  if (status || n == 0) return status;
  void *out = c->outputs[0].data;
#define CASE(T)            \
  return compaction::take( \
      call, put_back<T>{(const T *)grad.data, (T *)out, n, grad.shape[0], call.fault()}, tiles);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&grad), CASE)
#undef CASE
  return CUPLUG_OK;
}

template <typename W> int nonzero_as(cuplug::call call) {
  const cuplug_call *c = call;
  const cuplug_tensor &x = c->tensors[0];
  compaction::tiles tiles;
  int status =
      compaction::count(call, is_set<W>{flags_of_tensor(&x)}, cuplug_n_elements(&x), &tiles);
  const int64_t shape[2] = {x.ndim, tiles.n_found};
  if (!status) status = cuplug_output(call, 1, shape);
  if (status || tiles.n_found == 0) return status;
  int64_t *out = (int64_t *)c->outputs[0].data;
  status = compaction::take(call, take_number{out + (x.ndim - 1) * tiles.n_found}, tiles);
  return status || x.ndim == 1 ? status : locate(call, x, out, tiles.n_found);
}

int nonzero(cuplug::call call) {
#define CASE(W) return nonzero_as<W>(call);
  ELEMENTS_BY_WIDTH(cuplug_element_bytes(&((const cuplug_call *)call)->tensors[0]), CASE)
#undef CASE
  return CUPLUG_OK;
}

} // namespace

CUPLUG_ENTRY int select_cuda(const cuplug_call *call) { return select(call); }
CUPLUG_ENTRY int select_backward_cuda(const cuplug_call *call) { return select_backward(call); }
CUPLUG_ENTRY int nonzero_cuda(const cuplug_call *call) { return nonzero(call); }

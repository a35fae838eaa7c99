/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of sorting.c. */
#include "sorting/radix.cuh"

namespace {

/* What is written once lines are in order. */
enum class result { numbers, index, taken, back };

struct writing {
  const void *keys, *from;
  sorted_index index;
  void *out;
  elements_axis axis;
  order o;
  int64_t n;
};

template <typename T, typename K, result wanted>
__global__ void __launch_bounds__(SORTING_THREADS) write_kernel(const __grid_constant__ writing w) {
  const int64_t i = (int64_t)blockIdx.x * SORTING_THREADS + threadIdx.x;
  if (i >= w.n) return;
  T *const out = (T *)w.out;
  constexpr bool is_placed = wanted == result::numbers || wanted == result::index;
  const bool is_direct = is_placed && w.axis.width == 1;
  const int64_t line = is_direct ? 0 : sorting_line(w.axis, i), j = i - line * w.axis.m;
  const int64_t place = is_direct ? i : sorting_place(w.axis, line, j);
  if constexpr (wanted == result::numbers && sizeof(K) == 8) {
    out[place] = order_bits64(&w.o, ((const K *)w.keys)[i]);
  } else if constexpr (wanted == result::numbers) {
    out[place] = (T)order_bits32(&w.o, ((const K *)w.keys)[i]);
  } else if constexpr (wanted == result::index) {
    out[place] = (T)w.index[i];
  } else {
    const int64_t origin = sorting_place(w.axis, line, w.index[i]);
    if constexpr (wanted == result::taken)
      out[place] = ((const T *)w.from)[origin];
    else
      out[origin] = ((const T *)w.from)[place];
  }
}

template <result wanted, typename T, typename K = uint32_t>
int write(cuplug::call call, const writing &w) {
  return call.launch<write_kernel<T, K, wanted>>(
      {cuplug::blocks(w.n, SORTING_THREADS), SORTING_THREADS}, w);
}

template <result wanted> int write(cuplug::call call, const writing &w, int64_t element_bytes) {
#define CASE(T) return write<wanted, T>(call, w);
  if constexpr (wanted == result::index) {
    return write<wanted, int64_t>(call, w);
  } else if constexpr (wanted == result::numbers) {
    switch (element_bytes) {
    case 1:
      CASE(uint8_t)
    case 2:
      CASE(uint16_t)
    case 4:
      CASE(uint32_t)
    default:
      return write<wanted, uint64_t, uint64_t>(call, w);
    }
  } else {
    ELEMENTS_BY_WIDTH(element_bytes, CASE)
  }
#undef CASE
  return CUPLUG_OK;
}

template <result wanted> int sort(cuplug::call call, const cuplug_tensor &x) {
  const cuplug_call *c = call;
  const elements_axis axis = elements_around(&x, c->scalars[0].i);
  const order o = order_of(&x, c->scalars[1].i != 0);
  const int64_t n_lines = axis.n_outer * axis.width;
  const int64_t element_bytes = cuplug_element_bytes(&c->tensors[0]);
  const void *const source = c->tensors[0].data;
  void *const out = c->outputs[0].data;
  if (sorting_is_short(n_lines, axis.m)) {
    sorting_short line = {x.data, axis, o};
    line.m = line.k = axis.m;
    line.from = wanted == result::taken || wanted == result::back ? source : nullptr;
    line.out = out;
    line.indices = wanted == result::index ? (int64_t *)out : nullptr;
    line.element_bytes = element_bytes;
    line.is_back = wanted == result::back;
    return sorting_run_short(call, line);
  }
  sorting s;
  int status =
      sorting_begin(call, &s, o.n_bytes, n_lines, axis.m, wanted == result::numbers ? 0 : axis.m);
  if (status || s.n() == 0) return status;
  status = sorting_load(call, s, x, axis, o);
  if (!status) status = sorting_run(call, &s);
  const writing w = {s.keys, source, s.indices(), out, axis, o, s.n()};
  return status ? status : write<wanted>(call, w, element_bytes);
}

} // namespace

CUPLUG_ENTRY int sort_cuda(const cuplug_call *call) {
  return sort<result::numbers>(call, call->tensors[0]);
}
CUPLUG_ENTRY int argsort_cuda(const cuplug_call *call) {
  return sort<result::index>(call, call->tensors[0]);
}
CUPLUG_ENTRY int sort_by_cuda(const cuplug_call *call) {
  return sort<result::taken>(call, call->tensors[1]);
}
CUPLUG_ENTRY int sort_backward_cuda(const cuplug_call *call) {
  return sort<result::back>(call, call->tensors[1]);
}

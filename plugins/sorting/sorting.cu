/* SPDX-License-Identifier: Apache-2.0 */
/* The specification is at the top of sorting.c. */
#include "sorting/gpu/columns.cuh"

namespace {

/* The output after lines are sorted. */
enum class result { numbers, index, taken, back };

/* K for keys, T for outputs. */
template <typename T, typename K, result wanted> struct writing {
  const K *keys;
  const T *from;
  sorted_index index;
  T *out;
  elements_axis axis;
  order o;
  unsigned long long *words; /* of sorting_restore */

  __device__ T read(const columns::spot &at) const {
    if constexpr (wanted == result::numbers && sizeof(K) == 8)
      return (T)order_bits64(&o, sorting_written(o, keys[at.i], words));
    else if constexpr (wanted == result::numbers)
      return (T)order_bits32(&o, sorting_written(o, keys[at.i], words));
    else if constexpr (wanted == result::index)
      return (T)index[at.i];
    else if constexpr (wanted == result::taken)
      return from[sorting_place(axis, at.line, index[at.i])];
    else
      return from[at.place];
  }
  __device__ void write(const columns::spot &at, T value) const {
    if constexpr (wanted == result::back)
      out[sorting_place(axis, at.line, index[at.i])] = value;
    else
      out[at.place] = value;
  }
};

/* For consecutive lines. */
template <typename T, typename K, result wanted>
__global__ void __launch_bounds__(SORTING_THREADS)
    write_kernel(const __grid_constant__ writing<T, K, wanted> w, int64_t n) {
  constexpr bool has_lines = wanted == result::taken || wanted == result::back;
  const int64_t i = (int64_t)blockIdx.x * SORTING_THREADS + threadIdx.x;
  if (i >= n) return;
  const int64_t line = has_lines ? sorting_line(w.axis, i) : 0;
  const columns::spot at = {line, i - line * w.axis.m, i, i};
  w.write(at, w.read(at));
}

template <result wanted, typename T, typename K = uint32_t>
int write(cuplug::call call, const sorting &s, const elements_axis &axis, const order &o,
          const void *from, void *out) {
  const writing<T, K, wanted> w = {
      (const K *)s.keys, (const T *)from, s.indices(), (T *)out, axis, o, s.words};
  return axis.width == 1 ? call.launch<write_kernel<T, K, wanted>>(
                               {cuplug::blocks(s.n(), SORTING_THREADS), SORTING_THREADS}, w, s.n())
                         : columns::turn<wanted == result::back, T>(call, axis, w);
}

template <result wanted>
int write(cuplug::call call, const sorting &s, const elements_axis &axis, const order &o,
          const void *from, void *out, int64_t element_bytes) {
#define CASE(T) return write<wanted, T>(call, s, axis, o, from, out);
  if constexpr (wanted == result::index) {
    return write<wanted, int64_t>(call, s, axis, o, from, out);
  } else if constexpr (wanted == result::numbers) {
    switch (element_bytes) {
    case 1:
      CASE(uint8_t)
    case 2:
      CASE(uint16_t)
    case 4:
      CASE(uint32_t)
    default:
      return write<wanted, uint64_t, uint64_t>(call, s, axis, o, from, out);
    }
  } else {
    ELEMENTS_BY_WIDTH(element_bytes, CASE)
  }
#undef CASE
  return CUPLUG_OK;
}

template <result wanted> int sort(cuplug::call call, const cuplug_tensor &x) {
  const cuplug_call *c = call;
  elements_axis axis = elements_around(&x, c->scalars[0].i);
  const order o = order_of(&x, c->scalars[1].i != 0);
  const int64_t n_lines = axis.n_outer * axis.width;
  if (axis.m == 1) axis = {n_lines, 1, 1};
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
  constexpr bool is_alone = wanted == result::numbers;
  if (is_alone && axis.m == 1 && o.infinity)
    return call.check(
        cudaMemcpyAsync(out, source, n_lines * o.n_bytes, cudaMemcpyDefault, call.stream()));
  const order of_keys = is_alone ? order_with_signs(o) : o;
  sorting s;
  int status = sorting_begin(call, &s, o.n_bytes, n_lines, axis.m, is_alone ? 0 : axis.m);
  if (status || s.n() == 0) return status;
  if (is_alone) status = sorting_begin_restore(call, &s, o);
  if (!status) status = sorting_load(call, &s, x, axis, of_keys);
  if (!status) status = sorting_run(call, &s);
  if (!status) status = write<wanted>(call, s, axis, of_keys, source, out, element_bytes);
  return status || !s.words ? status : sorting_restore(call, s, x, axis, o, out, axis.m);
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

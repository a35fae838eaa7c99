/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero(x) = the indices of the elements other than 0, ascending.           x: T[n] -> int64[?]
 * T: bool, int32, int64, float32, float64. NaN is not 0. On the GPU, a kernel marks elements with
 * bytes, and CUB selects by these. The call waits for their number, which is the output's size. */
#include <cub/device/device_select.cuh>
#include <cuplug/plugin.hpp>
#include <thrust/iterator/counting_iterator.h>

template <typename T> __global__ void mark_kernel(const T *__restrict__ x, bool *marks, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) marks[i] = x[i] != T(0);
}

/* found[0] = how many there are; found[1 ...] = their indices. */
cudaError_t select(void *scratch, size_t &bytes, const bool *marks, int64_t *found, int64_t n,
                   cudaStream_t stream) {
  const thrust::counting_iterator<int64_t> all(0);
  return cub::DeviceSelect::Flagged(scratch, bytes, all, marks, found + 1, found, n, stream);
}
/* ---- beyond the kernel ---- */
CUPLUG_TYPED_OPERATOR(nonzero,
                      "nonzero(x: T[n]) -> int64[?] "
                      "where T: bool | int32 | int64 | float32 | float64",
                      "The indices of the elements other than 0.");

CUPLUG_CUDA_ENTRY(nonzero, (T), x, n, out) {
  int64_t *found = call.workspace<int64_t>(n + 1), n_found = 0;
  bool *marks = call.workspace<bool>(n);
  if (!found || !marks) return CUPLUG_ERROR_MEMORY;
  if (int status = call.launch<mark_kernel<T>>({cuplug::blocks(n, 256), 256}, x, marks, n))
    return status;
  if (int status = call.with_workspace([=](void *scratch, size_t &bytes) {
        return select(scratch, bytes, marks, found, n, call.stream());
      }))
    return status;
  if (int status = call.copy_to_host(&n_found, found)) return status;
  if (int status = out.allocate(n_found)) return status;
  return call.check(
      cudaMemcpyAsync(out, found + 1, n_found * sizeof *found, cudaMemcpyDefault, call.stream()));
}

CUPLUG_HOST_ENTRY(nonzero, (T), x, out) {
  int64_t n_found = 0, at = 0;
  for (const T &value : x) n_found += value != T(0);
  if (int status = out.allocate(n_found)) return status;
  for (int64_t i = 0; i < x.size(); i++)
    if (x[i] != T(0)) out[at++] = i;
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(nonzero, "1.0.0");

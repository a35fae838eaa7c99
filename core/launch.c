/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"
#include "driver.h"
#include "status.h"

/* T. Granlund, P. L. Montgomery: Division by invariant integers using multiplication, PLDI 1994. */
static cuplug_divisor divisor_of(long long size) {
  cuplug_divisor d = {size, 0, 0};
  if (size >= 1ll << 31) return d; /* such loops are divided in 64 bits */
  while (d.shift < 31 && 1ll << d.shift < size) d.shift++;
  d.magic = (unsigned)(((1ull << 32) * ((1ull << d.shift) - (uint64_t)size)) / (uint64_t)size + 1);
  return d;
}

void cuplug__loop_pack(const cuplug_loop *loop, cuplug__loop_arguments *arguments) {
  long long *strides = arguments->strides;
  for (int d = 0; d < loop->ndim; d++) arguments->divisors[d] = divisor_of(loop->sizes[d]);
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    for (int d = 0; d < loop->ndim; d++) *strides++ = loop->strides[d][k];
}

uint32_t cuplug__pack_width(const cuplug_call *call) {
  int64_t greatest = 1;
  for (uint32_t k = 0; k < call->n_tensors; k++) {
    int64_t bytes = cuplug_element_bytes(&call->tensors[k]);
    if (bytes > greatest) greatest = bytes;
  }
  return greatest < 16 ? (uint32_t)(16 / greatest) : 1;
}

/* Whether each pack of array k lies at a multiple of its size. */
static int has_packs(const cuplug_loop *loop, uint32_t k, const void *data, int64_t bytes,
                     uint32_t width) {
  const int last = loop->ndim - 1;
  if ((uint64_t)(uintptr_t)data % (width * (uint64_t)bytes)) return 0;
  for (int d = 0; d < last; d++)
    if (loop->strides[d][k] % width) return 0;
  return loop->strides[last][k] == 1;
}

int cuplug__loop_has_packs(const cuplug_loop *loop, void *const *data, const cuplug_call *call,
                           uint32_t width) {
  if (!loop->ndim || loop->sizes[loop->ndim - 1] % width) return 0;
  for (uint32_t k = 0; k < loop->n_arrays; k++)
    if (loop->strides[loop->ndim - 1][k] &&
        !has_packs(loop, k, data[k], cuplug_element_bytes(&call->tensors[k]), width))
      return 0;
  return 1;
}

uint32_t cuplug__loop_take_packs(cuplug_loop *loop, uint32_t width) {
  const int last = loop->ndim - 1;
  uint32_t still = 0;
  for (uint32_t k = 0; k < loop->n_arrays; k++) {
    still |= (uint32_t)!loop->strides[last][k] << k;
    loop->strides[last][k] *= width;
  }
  loop->sizes[last] /= width;
  loop->n /= width;
  return still;
}

int cuplug__launch(const cuplug_call *call, void *function, const uint32_t grid[3],
                   const uint32_t block[3], uint32_t shared_bytes, void **arguments) {
  const char *name = NULL, *text = NULL;
  int code = cuplug__driver.cuLaunchKernel(function, grid[0], grid[1], grid[2], block[0], block[1],
                                           block[2], shared_bytes, call->stream, arguments, NULL);
  if (!code) return CUPLUG_OK;
  cuplug__driver.cuGetErrorName((CUresult)code, &name);
  cuplug__driver.cuGetErrorString((CUresult)code, &text);
  cuplug__fail(call->error, CUPLUG_ERROR_CUDA, "kernel launch: CUDA error %d, %s: %s", code,
               name ? name : "unknown", text ? text : "");
  call->error->cuda_code = code;
  return CUPLUG_ERROR_CUDA;
}

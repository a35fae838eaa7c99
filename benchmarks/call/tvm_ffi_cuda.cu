/* SPDX-License-Identifier: Apache-2.0 */
/* The two kernels with tvm-ffi's calling convention. Nothing is checked. The stream is the one that
 * tvm-ffi gets from the framework. */
#include "../fixtures/add3/add_kernel.cuh"
#include "../fixtures/chain/chain_kernel.cuh"

#include <cuda_runtime.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

static const DLTensor *tensor_of(const TVMFFIAny *value) {
  if (value->type_index == kTVMFFIDLTensorPtr) return (const DLTensor *)value->v_ptr;
  return TVMFFITensorGetDLTensorPtr(value->v_obj);
}

static float *data_of(const TVMFFIAny *value) {
  const DLTensor *tensor = tensor_of(value);
  return (float *)((char *)tensor->data + tensor->byte_offset);
}

static cudaStream_t stream_of(const DLTensor *tensor) {
  return (cudaStream_t)TVMFFIEnvGetStream(tensor->device.device_type, tensor->device.device_id);
}

static int launched(void) {
  cudaError_t code = cudaGetLastError();
  if (code == cudaSuccess) return 0;
  TVMFFIErrorSetRaisedFromCStr("RuntimeError", cudaGetErrorString(code));
  return -1;
}

extern "C" {

__attribute__((visibility("default"))) int __tvm_ffi_add3(void *, const TVMFFIAny *args, int32_t,
                                                          TVMFFIAny *) {
  const DLTensor *x = tensor_of(&args[0]);
  add_kernel<<<1, 32, 0, stream_of(x)>>>(data_of(&args[0]), data_of(&args[1]), data_of(&args[2]),
                                         x->shape[0]);
  return launched();
}

/* Arrays, followed by a factor if it exists. */
__attribute__((visibility("default"))) int __tvm_ffi_chain(void *, const TVMFFIAny *args,
                                                           int32_t n_args, TVMFFIAny *) {
  const DLTensor *first = tensor_of(&args[0]);
  chain_arrays arrays;
  float factor = 1.0f;
  if (args[n_args - 1].type_index == kTVMFFIFloat) factor = (float)args[--n_args].v_float64;
  arrays.n_arrays = n_args;
  for (int32_t k = 0; k < n_args; k++) arrays.data[k] = data_of(&args[k]);
  chain_kernel<<<1, 32, 0, stream_of(first)>>>(arrays, factor, first->shape[0]);
  return launched();
}
}

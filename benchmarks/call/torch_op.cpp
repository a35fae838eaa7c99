/* SPDX-License-Identifier: Apache-2.0 */
/* The add kernel as a PyTorch extension: an operator of torch.ops and a pybind11 function. */
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h> /* with torch/library.h, a third of torch/extension.h */
#include <torch/library.h>

extern "C" int add_launch(const float *x, const float *y, float *z, int64_t n, void *stream);

static void add3(const at::Tensor &x, const at::Tensor &y, const at::Tensor &z) {
  TORCH_CHECK(x.is_cuda() && y.is_cuda() && z.is_cuda(), "x, y and z must be CUDA tensors");
  TORCH_CHECK(x.sizes() == y.sizes() && x.sizes() == z.sizes(), "the shapes must be equal");
  TORCH_CHECK(x.is_contiguous() && y.is_contiguous() && z.is_contiguous(), "not contiguous");
  void *stream = c10::cuda::getCurrentCUDAStream(x.get_device()).stream();
  int code =
      add_launch(x.data_ptr<float>(), y.data_ptr<float>(), z.data_ptr<float>(), x.numel(), stream);
  TORCH_CHECK(code == 0, "CUDA error ", code);
}

TORCH_LIBRARY(cuplug_cpp, m) { m.def("add3(Tensor x, Tensor y, Tensor(a!) z) -> ()"); }
TORCH_LIBRARY_IMPL(cuplug_cpp, CUDA, m) { m.impl("add3", add3); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add3", add3); }

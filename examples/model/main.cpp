// SPDX-License-Identifier: Apache-2.0
// Continues a text by a model that PyTorch compiled ahead, without Python in the process:
//     main model.pt2 TEXT N_BYTES
// The package names operators of cuplug. Their schemas, which are in its metadata, are defined for
// PyTorch's dispatcher, with one kernel for all of them that calls libcuplug.
#include <ATen/DLConvertor.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <cuplug/host.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/library.h>

#include <iostream>
#include <sstream>

namespace {

// The outputs of a call, which are allocated on the device of its first array.
struct Outputs {
  at::Device device;
  std::vector<at::Tensor> tensors;
};

int allocate(void *user, uint32_t k, cuplug_tensor *x, cuplug_error *) try {
  Outputs &outputs = *static_cast<Outputs *>(user);
  const at::ScalarType dtype = at::toScalarType({x->dtype.code, x->dtype.bits, x->dtype.lanes});
  outputs.tensors.at(k) =
      at::empty({x->shape, static_cast<size_t>(x->ndim)}, at::device(outputs.device).dtype(dtype));
  x->data = outputs.tensors[k].data_ptr();
  return CUPLUG_OK;
} catch (const std::exception &) {
  return CUPLUG_ERROR_MEMORY;
}

cuplug_argument to_argument(c10::IValue &value, bool is_written) {
  if (value.isNone()) return cuplug_absent();
  if (value.isInt()) return cuplug_int(value.toInt());
  if (value.isBool()) return cuplug_bool(value.toBool());
  if (value.isDouble()) return cuplug_float(value.toDouble());
  if (value.isString()) return cuplug_string(value.toStringRef().c_str());
  TORCH_CHECK(value.isTensor(), "an argument of a type that this program does not pass");
  if (!is_written) value = value.toTensor().contiguous();
  DLTensor from;
  at::toDLPackNonOwning(value.toTensor(), &from);
  cuplug_tensor tensor;
  static_assert(sizeof tensor == sizeof from);
  memcpy(&tensor, &from, sizeof from);
  return cuplug_array(&tensor);
}

// The kernel of all operators. Work on a GPU is put on the default stream, as PyTorch's is here.
void call_operator(const c10::OperatorHandle &handle, torch::jit::Stack *stack) {
  const c10::FunctionSchema &schema = handle.schema();
  std::vector<c10::IValue> values = torch::jit::pop(*stack, schema.arguments().size());
  while (values.back().isNone()) values.pop_back(); // left out
  std::vector<cuplug_argument> arguments;
  for (size_t k = 0; k < values.size(); k++) {
    const c10::AliasInfo *alias = schema.arguments()[k].alias_info();
    arguments.push_back(to_argument(values[k], alias && alias->isWrite()));
  }
  const size_t n = schema.returns().size();
  arguments.resize(arguments.size() + n, cuplug_absent());
  Outputs outputs = {values.at(0).toTensor().device(), std::vector<at::Tensor>(n)};
  cuplug_options options = cuplug_default_options();
  options.allocate = allocate, options.user = &outputs;
  cuplug_operator *op = nullptr;
  cuplug_error error;
  const std::string name = schema.name().substr(schema.name().rfind(':') + 1);
  const auto n_arguments = static_cast<uint32_t>(arguments.size());
  if (cuplug_find(name.c_str(), &op, &error) ||
      cuplug_invoke(op, arguments.data(), n_arguments, &options, &error))
    TORCH_CHECK(false, error.message);
  for (at::Tensor &x : outputs.tensors) torch::jit::push(*stack, std::move(x));
}

} // namespace

int main(int, char **argv) try {
  using Loader = torch::inductor::AOTIModelPackageLoader;
  torch::Library library(torch::Library::FRAGMENT, "cuplug", std::nullopt, __FILE__, __LINE__);
  auto metadata = Loader::load_metadata_from_package(argv[1], "model");
  std::istringstream schemas(metadata.at("cuplug"));
  for (std::string schema; std::getline(schemas, schema);) {
    library.def(schema.c_str());
    library.impl(schema.substr(0, schema.find_first_of(".(")).c_str(),
                 torch::dispatch(c10::DispatchKey::CompositeExplicitAutograd,
                                 torch::CppFunction::makeFromBoxedFunction<call_operator>()));
  }
  Loader model(argv[1]);
  const at::Device device(metadata.at("device"));
  const size_t length = std::stoul(metadata.at("length"));
  std::string text = argv[2];
  for (long n = std::stol(argv[3]); n > 0; n--) {
    std::string last = text.substr(text.size() > length ? text.size() - length : 0);
    const at::Tensor bytes = at::from_blob(last.data(), {1, (int64_t)last.size()}, at::kByte);
    const at::Tensor logits = model.run({bytes.to(device, at::kLong)})[0];
    text += static_cast<char>(at::argmax(logits.select(1, -1)).item<int64_t>());
  }
  std::cout << text << '\n';
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}

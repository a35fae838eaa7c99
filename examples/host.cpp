// SPDX-License-Identifier: Apache-2.0
// The same API from C++17: errors as exceptions, an output of any size as a vector.
#include <cuplug/host.hpp>

#include <cstdint>
#include <iostream>
#include <new>
#include <vector>

namespace {

std::vector<float> positive_of(cuplug_operator *positive, std::vector<float> x) {
  std::vector<float> result;
  auto n = static_cast<std::int64_t>(x.size());
  const cuplug_tensor tensor = cuplug_make_tensor(x.data(), CUPLUG_FLOAT32, 1, &n);
  const cuplug_argument args[] = {cuplug_array(&tensor)};
  cuplug_options options = cuplug_default_options();
  options.user = &result;
  options.allocate = [](void *user, std::uint32_t, cuplug_tensor *x, cuplug_error *) -> int {
    auto &memory = *static_cast<std::vector<float> *>(user);
    try {
      memory.resize(static_cast<std::size_t>(cuplug_n_elements(x)));
    } catch (const std::bad_alloc &) {
      return CUPLUG_ERROR_MEMORY;
    }
    x->data = memory.data();
    return CUPLUG_OK;
  };
  cuplug::host::check(cuplug_invoke, positive, args, 1u, &options);
  return result;
}

} // namespace

int main() try {
  cuplug_operator *positive = cuplug::host::load("libpositive.so").at(0);
  for (float value : positive_of(positive, {3, -1, 2})) std::cout << value << '\n';
  const cuplug::host::file file = cuplug::host::inspect("libpositive.so");
  std::cout << cuplug_file_name(file.get()) << ' ' << cuplug_file_version(file.get()) << '\n';
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}

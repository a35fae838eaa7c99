// SPDX-License-Identifier: Apache-2.0
/**
 * @file host.hpp
 * The host API for C++17: errors are exceptions, and what must be freed has an owner. No part of
 * the ABI.
 *
 *     cuplug_operator *relu = cuplug::host::find("relu");
 *     cuplug::host::check(cuplug_invoke, relu, arguments, 2u, nullptr);
 */
#ifndef CUPLUG_HOST_HPP
#define CUPLUG_HOST_HPP

#include <cuplug/host.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

namespace cuplug::host {

/** An error that a function of the API has reported. */
class error : public std::runtime_error {
public:
  explicit error(const cuplug_error &record)
      : std::runtime_error(record.message), status_(record.status), cuda_code_(record.cuda_code) {}
  int status() const noexcept { return status_; }       // a cuplug_status
  int cuda_code() const noexcept { return cuda_code_; } // of CUDA; 0: none

private:
  int status_, cuda_code_;
};

/** Calls f(arguments..., error) of the API, and throws the error that it reports. */
template <class F, class... Arguments> void check(F f, Arguments... arguments) {
  cuplug_error record;
  if (f(arguments..., &record)) throw error(record);
}

/** Frees an object of the API. Errors of handles that cannot be closed are dropped: to get them,
 * pass handle.release() to cuplug_free_handle. */
struct freed {
  void operator()(cuplug_listing *x) const noexcept { cuplug_free_listing(x); }
  void operator()(cuplug_file *x) const noexcept { cuplug_free_file(x); }
  void operator()(cuplug_handle *x) const noexcept { cuplug_free_handle(x, nullptr); }
};
using listing = std::unique_ptr<cuplug_listing, freed>;
using file = std::unique_ptr<cuplug_file, freed>;
using handle = std::unique_ptr<cuplug_handle, freed>;

/** Operators live until the process ends: a pointer to one has no owner. */
inline cuplug_operator *find(const char *name) {
  cuplug_operator *op = nullptr;
  check(cuplug_find, name, &op);
  return op;
}

/** Returns the operators of the plugin in one file. */
inline std::vector<cuplug_operator *> load(const char *path) {
  std::uint32_t n = 0;
  check(cuplug_load, path, static_cast<cuplug_operator **>(nullptr), 0u, &n);
  std::vector<cuplug_operator *> ops(n);
  check(cuplug_load, path, ops.data(), n, &n);
  return ops;
}

/** Returns the operator with the code of its file, after that was replaced. */
inline cuplug_operator *reload(const cuplug_operator *op) {
  cuplug_operator *fresh = nullptr;
  check(cuplug_reload, op, &fresh);
  return fresh;
}

/** Returns a snapshot of the search path and, with `with_files`, of its files. */
inline listing list(bool with_files = true) {
  cuplug_listing *made = nullptr;
  check(cuplug_list, with_files ? 1 : 0, &made);
  return listing(made);
}

/** Returns the contents of a file's table. */
inline file inspect(const char *path) {
  cuplug_file *made = nullptr;
  cuplug_error record;
  const int status = cuplug_inspect(path, &made, &record);
  file owned(made); // it exists also after an error
  if (status) throw error(record);
  return owned;
}

} // namespace cuplug::host
#endif

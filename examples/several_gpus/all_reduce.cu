/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over GPUs by NCCL, one process for each GPU. The communicator is a handle: the caller
 * creates it, holds it, and closes it.
 *
 *   nccl_id() -> uint8[128]                                      called by one process, for all
 *   communicator(id: str, rank: int, size: int) -> handle[communicator]    `id` in hexadecimal
 *   all_reduce(c: handle[communicator], x: T[*s]) -> T[*s]       the sum of all processes' x */
#include <cuplug/plugin.hpp>
#include <mutex>
#include <nccl.h>

struct communicator {
  ncclComm_t comm;
  std::mutex mutex; // orders the calls of one communicator
};

template <typename T> constexpr ncclDataType_t type = ncclInt32;
template <> constexpr ncclDataType_t type<int64_t> = ncclInt64;
template <> constexpr ncclDataType_t type<__half> = ncclFloat16;
template <> constexpr ncclDataType_t type<float> = ncclFloat32;
template <> constexpr ncclDataType_t type<double> = ncclFloat64;

static int report(const cuplug_call *call, ncclResult_t result) {
  return result ? cuplug_fail(call, CUPLUG_ERROR_CUDA, ncclGetErrorString(result)) : CUPLUG_OK;
}

static int digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

CUPLUG_TYPED_HOST_OPERATOR(nccl_id, "nccl_id() -> uint8[128]",
                           "A number that the processes of a communicator share.");

CUPLUG_HOST_ENTRY(nccl_id, out) {
  static_assert(sizeof(ncclUniqueId) == 128);
  return report(call, ncclGetUniqueId((ncclUniqueId *)out.data()));
}

CUPLUG_ENTRY int close_communicator(const cuplug_call *call, void *handle) {
  communicator *c = (communicator *)handle;
  const int status = report(call, ncclCommDestroy(c->comm));
  delete c;
  return status;
}

CUPLUG_TYPED_CUDA_OPERATOR(communicator,
                           "communicator(id: str, rank: int, size: int) -> handle[communicator] "
                           "where 0 <= rank < size, size < 65536",
                           "Waits until all processes call it." CUPLUG_CLOSE(close_communicator));

CUPLUG_CUDA_ENTRY(communicator, id, rank, size) {
  static const char not_an_id[] = "id: got other text, expected 256 hexadecimal digits; pass "
                                  "nccl_id().tobytes().hex()";
  ncclUniqueId unique;
  for (int k = 0; k < 128; k++) {
    const int high = digit(id[2 * k]), low = high < 0 ? -1 : digit(id[2 * k + 1]);
    if (low < 0) return call.fail(CUPLUG_ERROR_VALUE, not_an_id);
    unique.internal[k] = (char)(high << 4 | low);
  }
  communicator *c = new struct communicator;
  if (int status = report(call, ncclCommInitRank(&c->comm, (int)size, unique, (int)rank))) {
    delete c;
    return status;
  }
  return call.set_handle(c);
}

CUPLUG_TYPED_CUDA_OPERATOR(all_reduce,
                           "all_reduce(c: handle[communicator], x: T[*s]) -> T[*s] "
                           "where T: int32 | int64 | float16 | float32 | float64",
                           "The sum of the arrays of all processes.");

CUPLUG_CUDA_ENTRY(all_reduce, (T), c, x, out) {
  struct communicator *of = c;
  std::lock_guard<std::mutex> lock(of->mutex);
  return report(call, ncclAllReduce(x.data(), out.data(), (size_t)x.size(), type<T>, ncclSum,
                                    of->comm, call.stream()));
}

CUPLUG_PLUGIN(all_reduce, "1.0.0");

/* SPDX-License-Identifier: Apache-2.0 */
/* A function that does nothing and checks nothing, in the calling convention of tvm-ffi. */
#include <tvm/ffi/c_api.h>

__attribute__((visibility("default"))) int __tvm_ffi_noop(void *self, const TVMFFIAny *args,
                                                          int32_t n_args, TVMFFIAny *result) {
  (void)self, (void)args, (void)n_args, (void)result;
  return 0;
}

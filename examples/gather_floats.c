/* SPDX-License-Identifier: Apache-2.0 */
/* The operator gather on float32 as a C function, for Numba and other callers of C. */
#include <cuplug/host.h>

/* Writes the n elements of source at the indices to out. Returns 0, or the status of the error. */
int gather_floats(const float *source, int64_t m, const int32_t *index, int64_t n, float *out) {
  static cuplug_operator *gather; /* the same for all callers */
  cuplug_operator *found = __atomic_load_n(&gather, __ATOMIC_ACQUIRE);
  cuplug_error error;
  int status = found ? CUPLUG_OK : cuplug_find("gather", &found, &error);
  if (status) return status;
  __atomic_store_n(&gather, found, __ATOMIC_RELEASE);
  const cuplug_tensor tensors[] = {cuplug_make_tensor((void *)source, CUPLUG_FLOAT32, 1, &m),
                                   cuplug_make_tensor((void *)index, CUPLUG_INT32, 1, &n),
                                   cuplug_make_tensor(out, CUPLUG_FLOAT32, 1, &n)};
  const cuplug_argument args[] = {cuplug_array(&tensors[0]), cuplug_array(&tensors[1]),
                                  cuplug_absent(), cuplug_array(&tensors[2])};
  return cuplug_invoke(found, args, 4, NULL, &error);
}

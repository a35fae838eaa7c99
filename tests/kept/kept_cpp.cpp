// SPDX-License-Identifier: Apache-2.0
// Entries with named arguments, as ABI 2.0 has them. The binary beside it must work for as long as
// ABI 2 lives.
#include <cuplug/plugin.hpp>

CUPLUG_TYPED_HOST_OPERATOR(mix,
                           "mix(x: T[*rows, n], y: T[n], weight: T = 1, "
                           "mode: 'add' | 'multiply' = 'add', z: T[n] = None) "
                           "-> (out: T[*rows, n], n_rows: int64[]) "
                           "where T: int32 | float32 | float64, n > 0",
                           "x and weight * y, added or multiplied in each row; z is added.");
CUPLUG_HOST_ENTRY(mix, (T), x, y, weight, mode, z, rows, n, out, n_rows) {
  n_rows[0] = rows.product();
  for (int64_t row = 0; row < rows.product(); row++)
    for (int64_t k = 0; k < n; k++) {
      const T a = x[row * n + k], b = weight * y[k];
      out[row * n + k] = (CUPLUG_CHOICE(mode, "add") == mode ? a + b : a * b) + (z ? z[k] : T(0));
    }
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(kept_cpp, "1.0.0");

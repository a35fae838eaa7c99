/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Normal numbers in float32, in all rows of their table, compared with float64. */
#include "random/numbers.h"

#include "check.h"

/* The quantile at v / 2^32 of a side, v being odd, in float32 and, at the same place, in float64.
 */
static double narrow(uint32_t v) { return random_normal32(v, quantile_table); }
static double wide(uint32_t v) { return random_normal64((uint64_t)v << 33); }

static void check_at(uint32_t v) {
  const double x = narrow(v), wanted = -wide(v);
  CHECK(fabs(x - wanted) <= 4e-7 * fabs(wanted) + 4e-8);
  CHECK(narrow(v | 0x80000000u) == -x);
}

int main(void) {
  for (uint32_t octave = 1; octave < 31; octave++)
    for (uint32_t part = 0; part < 512; part++) {
      const uint32_t first = 1u << octave;
      check_at((first + (uint32_t)((uint64_t)first * part / 512)) | 1);
    }
  check_at(1);
  CHECK(narrow(0x7fffffffu) == 0 && fabs(narrow(1)) < 6.3);
  return n_failed != 0;
}

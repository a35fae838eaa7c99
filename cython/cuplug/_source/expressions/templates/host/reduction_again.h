/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated sums and products, before reduction.h stores outputs. In lanes, numbers that cancel each
 * other in another order, such as 1e308, -1e308, 1e308, -1e308, may give infinities and zeros, and
 * both may give NaN. A value that may be such a result is computed again, in double: a sum of
 * elements times 2^-64, which no number of elements overflows, or a product of fractions with the
 * sum of the exponents. In addition to the definitions listed in reduction.h, it requires:
 *
 *   AGAIN                           0: never, 1: sums, 2: products
 *   N_AGAIN                         numbers in a value: 2 if it is complex
 *   cuplug_get_part(value, k), cuplug_set_parts(value, parts)
 */
enum { N_AGAIN_LANES = 8, AGAIN_STEPS = 64 };
#define CUPLUG_AGAIN_SCALE 0x1p-64

/* One of the numbers of a value, in lanes. */
typedef struct cuplug_again {
  double lanes[N_AGAIN_LANES];
  int64_t exponents[N_AGAIN_LANES];
} cuplug_again;

/* Returns a number as a fraction f, 1 <= f < 2. Zeros, infinities and NaNs are unchanged. */
static inline double cuplug_fraction(double x, int64_t *exponent) {
  const double normal = x < 0x1p-1022 && x > -0x1p-1022 ? x * 0x1p54 : x;
  uint64_t bits;
  memcpy(&bits, &normal, sizeof bits);
  const int64_t field = (int64_t)(bits >> 52 & 0x7ff);
  const int is_fraction = field != 0 && field != 0x7ff;
  const uint64_t fraction = (bits & 0x800fffffffffffffu) | 0x3ff0000000000000u;
  double found;
  bits = is_fraction ? fraction : bits;
  memcpy(&found, &bits, sizeof found);
  *exponent += is_fraction ? field - (normal == x ? 1023 : 1077) : 0;
  return found;
}

/* Returns whether a value may depend on the order. */
static inline int is_doubtful(const cuplug_value value) {
  int found = 0;
  for (int k = 0; k < N_AGAIN; k++) {
    const __typeof__(cuplug_get_part(value, k)) part = cuplug_get_part(value, k);
    found |= part - part != 0 || (AGAIN == 2 && part == 0);
  }
  return found;
}

static __attribute__((noinline)) int has_zero(const cuplug_numbers given, const cuplug_places p,
                                              int64_t n, int64_t i) {
  int found = 0;
  CUPLUG_SIMD
  for (int64_t at = 0; at < n; at++) {
    const cuplug_value value = cuplug_element(given, p, at, i + at);
    found |= cuplug_get_part(value, 0) == 0;
  }
  return found;
}

/* Adds n elements, the first with number i. */
static __attribute__((noinline)) void add_again(const cuplug_numbers given, const cuplug_places p,
                                                int64_t n, int64_t i, cuplug_again *all) {
  for (int64_t from = 0; from < n; from += N_AGAIN_LANES * AGAIN_STEPS) {
    const int64_t to = cuplug_min_i64(n, from + N_AGAIN_LANES * AGAIN_STEPS);
    for (int64_t at = from; at < to; at++) {
      const int lane = (int)(at % N_AGAIN_LANES);
      const cuplug_value value = cuplug_element(given, p, at, i + at);
      for (int k = 0; k < N_AGAIN; k++) {
        const double x = (double)cuplug_get_part(value, k);
        if (AGAIN == 1)
          all[k].lanes[lane] += x * CUPLUG_AGAIN_SCALE;
        else
          all[k].lanes[lane] *= cuplug_fraction(x, &all[k].exponents[lane]);
      }
    }
    for (int lane = 0; AGAIN == 2 && lane < N_AGAIN_LANES; lane++)
      all->lanes[lane] = cuplug_fraction(all->lanes[lane], &all->exponents[lane]);
  }
}

static double total_again(cuplug_again *all) {
  for (int lane = 1; lane < N_AGAIN_LANES; lane++) {
    if (AGAIN == 1)
      all->lanes[0] += all->lanes[lane];
    else
      all->lanes[0] *= all->lanes[lane], all->exponents[0] += all->exponents[lane];
  }
  if (AGAIN == 1) return all->lanes[0] / CUPLUG_AGAIN_SCALE;
  const int64_t most = 5000, exponent = all->exponents[0];
  return (ldexp)(all->lanes[0], (int)(exponent > most    ? most
                                      : exponent < -most ? -most
                                                         : exponent));
}

/* Computes the value of one doubtful output from its elements. */
static __attribute__((noinline)) cuplug_value value_again(const cuplug_task *task, int64_t output,
                                                          const cuplug_value value) {
  const cuplug_numbers given = task->given;
  const int64_t n = task->call->reduced->n;
  cuplug_loop_call call = *task->call;
  cuplug_task rows;
  int64_t offsets[N_INPUTS];
  double parts[N_AGAIN];
  cuplug_again all[N_AGAIN];
  call.by_columns = 0;
  start_task(&rows, &call);
  row_offsets(&call, output, offsets);
  for (int64_t r = 0; AGAIN == 2 && cuplug_get_part(value, 0) == 0 && r < n; r += BLOCK) {
    const int64_t n_here = cuplug_min_i64(BLOCK, n - r);
    if (has_zero(given, row_places(&rows, offsets, r, n_here), n_here, r)) return value;
  }
  for (int k = 0; k < N_AGAIN; k++)
    for (int lane = 0; lane < N_AGAIN_LANES; lane++)
      all[k].lanes[lane] = AGAIN == 2, all[k].exponents[lane] = 0;
  for (int64_t r = 0; r < n; r += BLOCK) {
    const int64_t n_here = cuplug_min_i64(BLOCK, n - r);
    add_again(given, row_places(&rows, offsets, r, n_here), n_here, r, all);
  }
  for (int k = 0; k < N_AGAIN; k++) parts[k] = total_again(&all[k]);
  return cuplug_set_parts(value, parts);
}

static void replace_doubtful(const cuplug_task *task, int64_t begin, int64_t m,
                             cuplug_values *values) {
  int is_any = 0;
  CUPLUG_SIMD
  for (int64_t at = 0; at < m; at++) is_any |= is_doubtful(CUPLUG_GET(*values, at));
  for (int64_t at = 0; is_any && at < m; at++) {
    const cuplug_value value = CUPLUG_GET(*values, at);
    if (is_doubtful(value)) CUPLUG_SET(*values, at, value_again(task, begin + at, value));
  }
}

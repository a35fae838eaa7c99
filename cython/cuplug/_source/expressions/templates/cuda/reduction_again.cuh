/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated sums and products, as in host/reduction_again.h, between reduction_packs.cuh and
 * reduction.cuh. The thread that stores an output computes them, and therefore for at most
 * MOST_AGAIN elements. */
#if CUPLUG_IS_AGAIN
#define CUPLUG_AGAIN_PARAMETERS                                                                \
  const arrays &a, const cuplug_numbers &given, int64_t n_reduced, const divisors<KEPT> &kept, \
      const strides<N_ARRAYS, KEPT> &kept_steps, const divisors<REDUCED> &reduced,             \
      const strides<N_ARRAYS, REDUCED> &reduced_steps, int64_t n, int64_t n_columns
#define CUPLUG_SETTLED(number, value)                                                          \
  settled(a, given, n_reduced, kept, kept_steps, reduced, reduced_steps, n, n_columns, number, \
          value)

/* Passes the elements of an output to `take`, until it returns false. */
template <typename F>
__device__ inline void each_element(CUPLUG_AGAIN_PARAMETERS, int64_t number, F take) {
  const int64_t column = FEW ? number % n_columns : COLUMNS ? number % WIDTH : 0;
  int64_t base[N_ARRAYS] = {};
  locate<KEPT>((index)(FEW ? number - column : number / OUTPUTS), kept, kept_steps, base);
  bool goes_on = true;
#pragma unroll 1
  for (int64_t r = 0; goes_on && r < (FLAT ? n : n_reduced); r++) {
    if constexpr (FLAT) {
      const cuplug_places p = load_element(a, base, FEW ? r * n_columns + column : r);
      goes_on = take(cuplug_element(given, p, 0, r));
    } else {
      int64_t place[N_ARRAYS] = {};
      locate<REDUCED>((index)r, reduced, reduced_steps, place);
      for (int k = 0; k < N_INPUTS; k++) place[k] = FIXED >> k & 1 ? 0 : place[k];
      const cuplug_places p = load_places(a, base, place);
#pragma unroll
      for (int k = 0; k < WIDTH; k++)
        if (goes_on && (!COLUMNS || k == column))
          goes_on = take(cuplug_element(given, p, k, COLUMNS ? r : r * WIDTH + k));
    }
  }
}

/* A value, or a repeated one if it may depend on the order of its elements. */
__device__ inline cuplug_value settled(CUPLUG_AGAIN_PARAMETERS, int64_t number,
                                       const cuplug_value &value) {
  constexpr int64_t MOST_AGAIN = 1 << 16;
  constexpr double SCALE = 1.0 / 18446744073709551616.0;
  bool is_doubtful = false, has_zero = false;
  double parts[N_AGAIN];
  int64_t exponent = 0;
  for (int k = 0; k < N_AGAIN; k++) {
    const auto part = cuplug_get_part(value, k);
    is_doubtful |= part - part != 0 || (AGAIN == 2 && part == 0);
    parts[k] = AGAIN == 2;
  }
  if (!is_doubtful || n > MOST_AGAIN) return value;
  each_element(a, given, n_reduced, kept, kept_steps, reduced, reduced_steps, n, n_columns, number,
               [&](const cuplug_value &element) {
                 for (int k = 0; k < N_AGAIN; k++) {
                   const double x = (double)cuplug_get_part(element, k);
                   int own = 0, all = 0;
                   if (AGAIN == 1) {
                     parts[k] += x * SCALE;
                   } else {
                     has_zero |= x == 0;
                     parts[k] = ::frexp(parts[k] * ::frexp(x, &own), &all);
                     exponent += own + all;
                   }
                 }
                 return AGAIN == 1 || !has_zero || cuplug_get_part(value, 0) != 0;
               });
  if (AGAIN == 2 && has_zero && cuplug_get_part(value, 0) == 0) return value;
  const int64_t most = 5000;
  for (int k = 0; k < N_AGAIN; k++)
    parts[k] = AGAIN == 1 ? parts[k] / SCALE
                          : ::ldexp(parts[k], (int)(exponent > most    ? most
                                                    : exponent < -most ? -most
                                                                       : exponent));
  return cuplug_set_parts(value, parts);
}
#else
#define CUPLUG_SETTLED(number, value) (value)
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Several numbers on the host, as loops that compilers vectorize. */
#ifndef CUPLUG_PLUGINS_RANDOM_CHUNK_H
#define CUPLUG_PLUGINS_RANDOM_CHUNK_H

#include "random/draws.h"

#define NARROW(k) words[k]
#define WIDE(k) ((uint64_t)words[2 * (k) + 1] << 32 | words[2 * (k)])

ELEMENTS_INLINE void random_put_uniform32(const random_draw *d, int64_t n,
                                          const uint32_t *restrict words, float *restrict to) {
  const float low = (float)d->range.at, span = (float)d->range.by;
  for (int64_t k = 0; k < n; k++) to[k] = random_uniform32(NARROW(k), low, span);
}
ELEMENTS_INLINE void random_put_uniform64(const random_draw *d, int64_t n,
                                          const uint32_t *restrict words, double *restrict to) {
  const double low = d->range.at, span = d->range.by;
  for (int64_t k = 0; k < n; k++) to[k] = random_uniform64(WIDE(k), low, span);
}
ELEMENTS_INLINE void random_put_normal32(const random_draw *d, int64_t n,
                                         const uint32_t *restrict words, float *restrict to) {
  const float loc = (float)d->range.at, scale = (float)d->range.by;
  for (int64_t k = 0; k < n; k++)
    to[k] = fmaf(random_normal32(NARROW(k), quantile_table), scale, loc);
}
ELEMENTS_INLINE void random_put_normal64(const random_draw *d, int64_t n,
                                         const uint32_t *restrict words, double *restrict to) {
  const double loc = d->range.at, scale = d->range.by;
  for (int64_t k = 0; k < n; k++) to[k] = fma(random_normal64(WIDE(k)), scale, loc);
}

/* In float64 for either dtype, rounded once. */
#define EXPONENTIAL(T, BITS, width)                                                      \
  ELEMENTS_INLINE void random_put_exponential##width(                                    \
      const random_draw *d, int64_t n, const uint32_t *restrict words, T *restrict to) { \
    const double loc = d->range.at, scale = d->range.by;                                 \
    for (int64_t k = 0; k < n; k++)                                                      \
      to[k] = (T)fma(random_exponential##width(BITS(k)), scale, loc);                    \
  }
EXPONENTIAL(float, NARROW, 32)
EXPONENTIAL(double, WIDE, 64)

ELEMENTS_INLINE void random_put_lognormal32(const random_draw *d, int64_t n,
                                            const uint32_t *restrict words, float *restrict to) {
  const double mean = d->range.at, sigma = d->range.by;
  for (int64_t k = 0; k < n; k++)
    to[k] = (float)random_exp(fma(random_normal32(NARROW(k), quantile_table), sigma, mean));
}
ELEMENTS_INLINE void random_put_lognormal64(const random_draw *d, int64_t n,
                                            const uint32_t *restrict words, double *restrict to) {
  const double mean = d->range.at, sigma = d->range.by;
  for (int64_t k = 0; k < n; k++) to[k] = random_exp(fma(random_normal64(WIDE(k)), sigma, mean));
}

/* Few numbers are left open by the first bits. */
#define INTEGERS(T, BITS, N, width)                                                                \
  ELEMENTS_INLINE void random_put_##T##_of_##width(const random_draw *d, uint64_t i, int64_t n,    \
                                                   const uint32_t *restrict words,                 \
                                                   T *restrict to) {                               \
    const N n_numbers = (N)d->range.n;                                                             \
    const T low = (T)d->range.low;                                                                 \
    N n_open = 0;                                                                                  \
    for (int64_t k = 0; k < n; k++) {                                                              \
      to[k] = (T)(low + random_below##width(BITS(k), n_numbers));                                  \
      n_open += (N)random_is_open##width(BITS(k), n_numbers);                                      \
    }                                                                                              \
    for (int64_t k = 0; n_open && k < n; k++)                                                      \
      if (random_is_open##width(BITS(k), n_numbers))                                               \
        to[k] +=                                                                                   \
            (T)random_more##width(BITS(k), n_numbers, random_deciding(&d->from, i + (uint64_t)k)); \
  }
INTEGERS(uint8_t, NARROW, uint32_t, 32)
INTEGERS(uint16_t, NARROW, uint32_t, 32)
INTEGERS(uint32_t, NARROW, uint32_t, 32)
INTEGERS(uint64_t, NARROW, uint32_t, 32)
INTEGERS(uint32_t, WIDE, uint64_t, 64)
INTEGERS(uint64_t, WIDE, uint64_t, 64)

/* Elements i to i + n - 1 of the draw, from their bits. */
ELEMENTS_INLINE void random_chunk(const random_draw *d, uint64_t i, int64_t n,
                                  const uint32_t *words, void *to) {
  const int is_single = d->element_bytes == 4;
  if (d->kind == RANDOM_UNIFORM && is_single)
    random_put_uniform32(d, n, words, to);
  else if (d->kind == RANDOM_UNIFORM)
    random_put_uniform64(d, n, words, to);
  else if (d->kind == RANDOM_NORMAL && is_single)
    random_put_normal32(d, n, words, to);
  else if (d->kind == RANDOM_NORMAL)
    random_put_normal64(d, n, words, to);
  else if (d->kind == RANDOM_EXPONENTIAL && is_single)
    random_put_exponential32(d, n, words, to);
  else if (d->kind == RANDOM_EXPONENTIAL)
    random_put_exponential64(d, n, words, to);
  else if (d->kind == RANDOM_LOGNORMAL && is_single)
    random_put_lognormal32(d, n, words, to);
  else if (d->kind == RANDOM_LOGNORMAL)
    random_put_lognormal64(d, n, words, to);
  else if (d->is_wide && is_single)
    random_put_uint32_t_of_64(d, i, n, words, to);
  else if (d->is_wide)
    random_put_uint64_t_of_64(d, i, n, words, to);
  else if (d->element_bytes == 1)
    random_put_uint8_t_of_32(d, i, n, words, to);
  else if (d->element_bytes == 2)
    random_put_uint16_t_of_32(d, i, n, words, to);
  else if (is_single)
    random_put_uint32_t_of_32(d, i, n, words, to);
  else
    random_put_uint64_t_of_32(d, i, n, words, to);
}

#endif

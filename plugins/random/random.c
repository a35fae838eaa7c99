/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, which overwrite an array x: T[*s]. Element i of x is computed from the bits of
 * element first + i of a sequence, modulo 2^64, which philox.h defines.
 *
 * uniform(x, key, sequence, first, low, span): low + u span, rounded once, where 0 <= u < 1 is a
 *   multiple of 2^-24 from narrow bits in float32, of 2^-53 from wide ones in float64.
 * normal(x, key, sequence, first, loc, scale): loc + z scale, rounded once, where z is the quantile
 *   function: in float32 at odd multiples of 2^-32, from narrow bits, to 4e-7 of z and 4e-8, up to
 *   6.3; in float64 at odd multiples of 2^-54, from wide ones, to 1e-15, up to 8.3.
 * exponential(x, key, sequence, first, loc, scale): loc + e scale, rounded once, where e is the
 *   quantile function: in float32 at odd multiples of 2^-33, from narrow bits, up to 22.9; in
 *   float64 at odd multiples of 2^-53, from wide ones, to 1e-15, up to 36.8.
 * lognormal(x, key, sequence, first, mean, sigma): exp(mean + z sigma) in float64, rounded once
 *   more in float32, where z is as in `normal`.
 * integers(x, key, sequence, first, low, last): from low to low + last, modulo 2^64. The relative
 *   difference of their probabilities is at most 2^-64. From narrow bits if last < 2^24, else from
 *   wide ones.
 *
 * The bits are the same on the host and on GPUs. Bytes moved: x is written once. */
#include <cuplug/nontemporal.h>

#include "philox_words.h"
#include "random/chunk.h"

CUPLUG_ENTRY int uniform_cuda(const cuplug_call *call);
CUPLUG_ENTRY int normal_cuda(const cuplug_call *call);
CUPLUG_ENTRY int exponential_cuda(const cuplug_call *call);
CUPLUG_ENTRY int lognormal_cuda(const cuplug_call *call);
CUPLUG_ENTRY int integers_cuda(const cuplug_call *call);

#define PARALLEL_FROM 32768 /* elements; below, waking threads costs more time than they save */
#define AT_ONCE 16384       /* elements that are worth a thread; complete chunks */

/* For each kind of vectors of its own; without fused products and sums, their function is slow. */
typedef void draw_chunk(const random_draw *d, uint64_t i, int64_t n, const uint32_t *words,
                        void *to);

static void chunk_plain(const random_draw *d, uint64_t i, int64_t n, const uint32_t *words,
                        void *to) {
  random_chunk(d, i, n, words, to);
}

#ifdef __x86_64__
__attribute__((target("avx2,fma"))) static void
chunk_256(const random_draw *d, uint64_t i, int64_t n, const uint32_t *words, void *to) {
  random_chunk(d, i, n, words, to);
}
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma"))) static void
chunk_512(const random_draw *d, uint64_t i, int64_t n, const uint32_t *words, void *to) {
  random_chunk(d, i, n, words, to);
}

static draw_chunk *chunk_by_vectors(void) {
  if (!__builtin_cpu_supports("fma")) return chunk_plain;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return chunk_512;
  return __builtin_cpu_supports("avx2") ? chunk_256 : chunk_plain;
}
#else
static draw_chunk *chunk_by_vectors(void) { return chunk_plain; }
#endif

/* Numbers `begin` to `end` - 1. Chunks of large arrays end at line boundaries, and are stored
 * bypassing the caches. */
static int draw_range(void *context, int64_t begin, int64_t end) {
  const random_draw *d = context;
  random_fill *const fill = random_fill_by_vectors();
  draw_chunk *const chunk = chunk_by_vectors();
  const int past = d->n * d->element_bytes >= CUPLUG_NONTEMPORAL_FROM;
  const int64_t lead = past ? (uintptr_t)d->out % CUPLUG_LINE_BYTES / d->element_bytes : 0;
  uint64_t numbers[RANDOM_CHUNK] __attribute__((aligned(CUPLUG_LINE_BYTES)));
  random_words room __attribute__((aligned(CUPLUG_LINE_BYTES)));
  for (int64_t line = begin - lead; line < end; line += RANDOM_CHUNK) {
    const int64_t i = line < begin ? begin : line;
    const int64_t n = (line + RANDOM_CHUNK < end ? line + RANDOM_CHUNK : end) - i;
    char *const to = (char *)d->out + i * d->element_bytes;
    const uint32_t *words = random_words_of(fill, &d->from, (uint64_t)i, n, d->is_wide, &room);
    chunk(d, (uint64_t)i, n, words, past ? (void *)numbers : to);
    if (past) cuplug_copy_nontemporal(to, numbers, (size_t)(n * d->element_bytes));
  }
  if (past) cuplug_nontemporal_fence();
  return CUPLUG_OK;
}

static int draw(const cuplug_call *call, random_kind kind) {
  random_draw d = random_draw_of(call, kind);
  return d.n < PARALLEL_FROM ? draw_range(&d, 0, d.n)
                             : cuplug_parallel(call, d.n, AT_ONCE, draw_range, &d);
}

CUPLUG_ENTRY int uniform_host(const cuplug_call *call) { return draw(call, RANDOM_UNIFORM); }
CUPLUG_ENTRY int normal_host(const cuplug_call *call) { return draw(call, RANDOM_NORMAL); }
CUPLUG_ENTRY int exponential_host(const cuplug_call *call) {
  return draw(call, RANDOM_EXPONENTIAL);
}
CUPLUG_ENTRY int lognormal_host(const cuplug_call *call) { return draw(call, RANDOM_LOGNORMAL); }
CUPLUG_ENTRY int integers_host(const cuplug_call *call) { return draw(call, RANDOM_INTEGERS); }

#define FROM "inout x: T[*s], key: uint64, sequence: uint64, first: uint64, "

CUPLUG_OPERATOR(uniform_cuda, uniform_host,
                "uniform(" FROM "low: float, span: float) where T: float32 | float64",
                "Uniform numbers from low up to, but not including, low + span." CUPLUG_NONBLOCKING
                    CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(normal_cuda, normal_host,
                "normal(" FROM "loc: float, scale: float) where T: float32 | float64",
                "Normal numbers with mean loc." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(exponential_cuda, exponential_host,
                "exponential(" FROM "loc: float, scale: float) where T: float32 | float64",
                "Exponential numbers, plus loc." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(lognormal_cuda, lognormal_host,
                "lognormal(" FROM "mean: float, sigma: float) where T: float32 | float64",
                "Exponentials of normal numbers." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC);
CUPLUG_OPERATOR(
    integers_cuda, integers_host,
    "integers(" FROM "low: uint64, last: uint64) where T: bool | integer",
    "Uniform integers from low to low + last, inclusive." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC);
CUPLUG_PLUGIN(random, "1.0.0");

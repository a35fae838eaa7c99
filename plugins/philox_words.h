/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits of several elements on the host, by vector intrinsics that multiply. From plain
 * loops, compilers split the halves of products and combine them again, which takes twice the time.
 */
#ifndef CUPLUG_PLUGINS_PHILOX_WORDS_H
#define CUPLUG_PLUGINS_PHILOX_WORDS_H

#include <string.h>

#include "philox.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Elements at once: the closest cache holds their bits and some further data. */
#define RANDOM_CHUNK 512
typedef struct random_words {
  uint32_t at[2 * RANDOM_CHUNK + 4 * 9];
} random_words;

/* The words of n blocks, and possibly of up to seven more after them, from the first element of the
 * block of an element on. */
typedef void random_fill(const random_source *from, uint64_t element, int is_wide, int64_t n,
                         uint32_t *words);

static inline void random_fill_plain(const random_source *from, uint64_t element, int is_wide,
                                     int64_t n, uint32_t *words) {
  for (int64_t k = 0; k < n; k++) {
    const uint64_t number = is_wide ? random_wide_block(element + 2 * (uint64_t)k)
                                    : random_narrow_block(element + 4 * (uint64_t)k);
    const random_block block = random_philox(&from->keys, number, from->sequence);
    for (int word = 0; word < 4; word++) words[4 * k + word] = block.word[word];
  }
}

#ifdef __x86_64__
/* The same in lanes of 64 bits, whose lower 32 bits are multiplied. LANES gives the blocks in the
 * lanes, which LEFT and RIGHT put in order. */
#define RANDOM_FILL(name, TARGET, n_lanes, PRODUCT, LANES, LEFT, RIGHT)                       \
  typedef uint64_t name##_vector __attribute__((vector_size(8 * (n_lanes))));                 \
  __attribute__((target(TARGET))) static inline void name(                                    \
      const random_source *from, uint64_t element, int is_wide, int64_t n, uint32_t *words) { \
    const name##_vector zero = {0}, low = zero + 0xffffffffu, lanes = LANES;                  \
    const name##_vector first = zero + 0xD2511F53u, second = zero + 0xCD9E8D57u;              \
    const uint64_t domain = is_wide ? random_wide_block(0) : 0;                               \
    const int per_shift = is_wide ? 1 : 2;                                                    \
    for (int64_t k = 0; k < n; k += (n_lanes)) {                                              \
      const name##_vector elements =                                                          \
          (lanes << per_shift) + (element + ((uint64_t)k << per_shift));                      \
      const name##_vector block = elements >> per_shift | domain;                             \
      name##_vector a = block, b = block >> 32;                                               \
      name##_vector c = zero + from->sequence, d = zero + (from->sequence >> 32);             \
      RANDOM_UNROLL                                                                           \
      for (int round = 0; round < 10; round++) {                                              \
        const name##_vector x = PRODUCT(a, first), y = PRODUCT(c, second);                    \
        a = y >> 32 ^ b ^ (zero + from->keys.of[round][0]), b = y;                            \
        c = x >> 32 ^ d ^ (zero + from->keys.of[round][1]), d = x;                            \
      }                                                                                       \
      const name##_vector even = (a & low) | b << 32, odd = (c & low) | d << 32;              \
      const name##_vector blocks[2] = {LEFT(even, odd), RIGHT(even, odd)};                    \
      memcpy(words + 4 * k, blocks, sizeof blocks);                                           \
    }                                                                                         \
  }

#define RANDOM_256(f, x, y) (random_fill_256_vector) _mm256_##f((__m256i)(x), (__m256i)(y))
#define RANDOM_PRODUCT_256(x, y) RANDOM_256(mul_epu32, x, y)
#define RANDOM_LEFT_256(x, y) RANDOM_256(unpacklo_epi64, x, y)
#define RANDOM_RIGHT_256(x, y) RANDOM_256(unpackhi_epi64, x, y)
#define RANDOM_LANES_256 \
  { 0, 2, 1, 3 }
RANDOM_FILL(random_fill_256, "avx2", 4, RANDOM_PRODUCT_256, RANDOM_LANES_256, RANDOM_LEFT_256,
            RANDOM_RIGHT_256)

#define RANDOM_512(f, x, y) (random_fill_512_vector) _mm512_##f((__m512i)(x), (__m512i)(y))
#define RANDOM_PRODUCT_512(x, y) RANDOM_512(mul_epu32, x, y)
#define RANDOM_LEFT_512(x, y) RANDOM_512(unpacklo_epi64, x, y)
#define RANDOM_RIGHT_512(x, y) RANDOM_512(unpackhi_epi64, x, y)
#define RANDOM_LANES_512 \
  { 0, 4, 1, 5, 2, 6, 3, 7 }
RANDOM_FILL(random_fill_512, "avx512f", 8, RANDOM_PRODUCT_512, RANDOM_LANES_512, RANDOM_LEFT_512,
            RANDOM_RIGHT_512)

/* The fastest variant for this CPU. */
static inline random_fill *random_fill_by_vectors(void) {
  if (__builtin_cpu_supports("avx512f")) return random_fill_512;
  return __builtin_cpu_supports("avx2") ? random_fill_256 : random_fill_plain;
}
#else
static inline random_fill *random_fill_by_vectors(void) { return random_fill_plain; }
#endif

/* Returns the bits of elements i to i + n - 1 of a draw, n <= RANDOM_CHUNK, somewhere in the
 * buffer. Wide elements have two words each, the lower one first. */
static inline const uint32_t *random_words_of(random_fill *fill, const random_source *from,
                                              uint64_t i, int64_t n, int is_wide,
                                              random_words *room) {
  const uint64_t first = from->first + i, per_block = is_wide ? 2 : 4, beside = first % per_block;
  const int64_t n_blocks = (int64_t)((beside + (uint64_t)n + per_block - 1) / per_block);
  fill(from, first - beside, is_wide, n_blocks, room->at);
  return room->at + beside * 4 / per_block;
}

#endif

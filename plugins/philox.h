/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random bits, for the host and for CUDA.
 *
 * The numbers of a generator are elements 0, 1, 2, ... of a sequence. Each element has its own bits
 * for each kind of number, which do not depend on how many elements a call draws:
 *   narrow: 32 bits, word i mod 4 of block i / 4;
 *   wide: 64 bits, half i mod 2 of block 2^63 + i / 2;
 *   deciding: 64 more bits, the first half of block i of the sequence with inverted bits.
 * Blocks of 128 bits are those of Philox4x32-10: J. K. Salmon, M. A. Moraes, R. O. Dror and
 * D. E. Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011; words in the paper's order. */
#ifndef CUPLUG_PLUGINS_PHILOX_H
#define CUPLUG_PLUGINS_PHILOX_H

#include "elements.h"

#define RANDOM_INLINE ELEMENTS_INLINE

/* Before a loop that must be unrolled completely, so that loops around it are vectorized. */
#if defined(__CUDA_ARCH__) || defined(__clang__)
#define RANDOM_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define RANDOM_UNROLL
#else
#define RANDOM_UNROLL _Pragma("GCC unroll 16")
#endif

typedef struct random_block {
  uint32_t word[4];
} random_block;

/* The keys of the rounds. */
typedef struct random_keys {
  uint32_t of[10][2];
} random_keys;

RANDOM_INLINE random_keys random_keys_of(uint64_t key) {
  random_keys keys;
  RANDOM_UNROLL
  for (uint32_t round = 0; round < 10; round++) {
    keys.of[round][0] = (uint32_t)key + round * 0x9E3779B9u;
    keys.of[round][1] = (uint32_t)(key >> 32) + round * 0xBB67AE85u;
  }
  return keys;
}

/* A sequence of numbers: element 0 of a draw is element `first` of the sequence. */
typedef struct random_source {
  random_keys keys;
  uint64_t sequence, first;
} random_source;

/* Returns the lower 32 bits of a product. For C's expression, nvcc adds 0 to the upper ones. */
RANDOM_INLINE uint32_t random_product(uint32_t x, uint32_t y, uint32_t *upper) {
#ifdef __CUDA_ARCH__
  uint32_t lower;
  asm("{ .reg .u64 xy; mul.wide.u32 xy, %2, %3; mov.b64 {%0, %1}, xy; }"
      : "=r"(lower), "=r"(*upper)
      : "r"(x), "r"(y));
  return lower;
#else
  const uint64_t product = (uint64_t)x * y;
  *upper = (uint32_t)(product >> 32);
  return (uint32_t)product;
#endif
}

/* Block `low` of sequence `high`. */
RANDOM_INLINE random_block random_philox(const random_keys *keys, uint64_t low, uint64_t high) {
  uint32_t a = (uint32_t)low, b = (uint32_t)(low >> 32);
  uint32_t c = (uint32_t)high, d = (uint32_t)(high >> 32);
  RANDOM_UNROLL
  for (int round = 0; round < 10; round++) {
    uint32_t first, third;
    const uint32_t second = random_product(0xCD9E8D57u, c, &first);
    const uint32_t fourth = random_product(0xD2511F53u, a, &third);
    a = first ^ b ^ keys->of[round][0], b = second;
    c = third ^ d ^ keys->of[round][1], d = fourth;
  }
  const random_block block = {{a, b, c, d}};
  return block;
}

/* The block that contains the bits of element i. The next block has those of the following
 * elements. */
RANDOM_INLINE uint64_t random_narrow_block(uint64_t i) { return i >> 2; }
RANDOM_INLINE uint64_t random_wide_block(uint64_t i) { return i >> 1 | (uint64_t)1 << 63; }

RANDOM_INLINE uint64_t random_half(const random_block *block, int half) {
  return (uint64_t)block->word[2 * half + 1] << 32 | block->word[2 * half];
}

/* For element i of a draw. */
RANDOM_INLINE uint64_t random_deciding(const random_source *from, uint64_t i) {
  const random_block block = random_philox(&from->keys, from->first + i, ~from->sequence);
  return random_half(&block, 0);
}

#endif

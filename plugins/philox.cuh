/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits of several elements in a thread's registers. The numbers computed from them are
 * stored at once. */
#ifndef CUPLUG_PLUGINS_PHILOX_CUH
#define CUPLUG_PLUGINS_PHILOX_CUH

#include <string.h>

#include "philox.h"

/* The numbers that a thread stores at once. */
template <typename T> struct alignas(16) random_pack {
  static constexpr int N = 16 / sizeof(T);
  T of[N];
};

/* `to` is a multiple of 16. For a C++ assignment, nvcc would split the store. */
template <typename T> __device__ inline void random_store(T *to, const random_pack<T> &values) {
#ifdef __CUDA_ARCH__
  uint32_t word[4];
  memcpy(word, values.of, sizeof word);
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};"
               :
               : "l"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
               : "memory");
#else
  memcpy(to, values.of, sizeof values.of);
#endif
}

template <bool is_wide> struct random_bits_of;
template <> struct random_bits_of<false> {
  using type = uint32_t;
  static constexpr int PER_BLOCK = 4;
  static __device__ uint64_t block(uint64_t element) { return random_narrow_block(element); }
  static __device__ uint32_t part(const random_block &block, int k) {
    return (uint32_t)(random_half(&block, k >> 1) >> 32 * (k & 1));
  }
};
template <> struct random_bits_of<true> {
  using type = uint64_t;
  static constexpr int PER_BLOCK = 2;
  static __device__ uint64_t block(uint64_t element) { return random_wide_block(element); }
  static __device__ uint64_t part(const random_block &block, int k) {
    return random_half(&block, k);
  }
};

/* Computes the bits of N elements from number `element` of the sequence on, in registers. The block
 * that contains these has `beside` elements before them. If there are any, an additional block is
 * computed, and all elements are shifted. */
template <bool is_wide, int N> struct random_bits {
  using of = random_bits_of<is_wide>;
  static constexpr int PER = of::PER_BLOCK, BLOCKS = (N + PER - 1) / PER, ALL = (BLOCKS + 1) * PER;
  typename of::type at[ALL];

  __device__ void fill(const random_source &from, uint64_t element, int k) {
    const random_block block =
        random_philox(&from.keys, of::block(element + k * PER), from.sequence);
#pragma unroll
    for (int j = 0; j < PER; j++) at[k * PER + j] = of::part(block, j);
  }
  template <int STEP> __device__ void move_up() {
#pragma unroll
    for (int j = 0; j + STEP < ALL; j++) at[j] = at[j + STEP];
  }
  __device__ random_bits(const random_source &from, uint64_t element, int beside) {
#pragma unroll
    for (int k = 0; k < BLOCKS; k++) fill(from, element, k);
    if (beside == 0) return;
    if (beside + N > BLOCKS * PER) fill(from, element, BLOCKS);
    if (beside & 1) move_up<1>();
    if (PER == 4 && beside & 2) move_up<2>();
  }
};

#endif

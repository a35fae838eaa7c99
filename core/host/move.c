/* SPDX-License-Identifier: Apache-2.0 */
#include "host/move.h"

#include "host/shuffle.h"

#include <string.h>

#define LONG_BYTES 1024 /* from there on it pays to begin an instruction that fills memory */

#define ONE(size, k) memcpy(to + (k)*to_step, from + (k)*from_step, (size_t)(size));

/* Four at a time: a jump for each element may take as long as to move it. */
#define MOVE(size)                                                   \
  for (; n >= 4; n -= 4, to += 4 * to_step, from += 4 * from_step) { \
    ONE(size, 0) ONE(size, 1) ONE(size, 2) ONE(size, 3)              \
  }                                                                  \
  for (int64_t i = 0; i < n; i++) ONE(size, i)                       \
  break;

static __attribute__((noinline)) void move_any(char *restrict to, int64_t to_step,
                                               const char *restrict from, int64_t from_step,
                                               int64_t n, int64_t bytes) {
  switch (bytes) {
  case 1:
    MOVE(1)
  case 2:
    MOVE(2)
  case 4:
    MOVE(4)
  case 8:
    MOVE(8)
  case 16:
    MOVE(16)
  default:
    MOVE(bytes)
  }
}

#define EACH(size, FROM) \
  for (int64_t i = 0; i < n; i++) memcpy(to + i * (size), from + i * (FROM), (size_t)(size));

/* Steps that the compiler knows become vector instructions. */
#define MOVE_KNOWN(size)            \
  if (from_step == 0)               \
    EACH(size, 0)                   \
  else if (from_step == 2 * (size)) \
    EACH(size, 2 * (size))          \
  else if (from_step == -(size))    \
    EACH(size, -(size))             \
  else                              \
    break;                          \
  return 1;

/* Writes an element many times, by the instruction for it, which stores whole lines. Returns how
 * many were written. */
static inline int64_t fill_words(char *to, const char *from, int64_t n, int64_t bytes) {
#ifdef __x86_64__
  if (bytes > 8 || bytes & (bytes - 1) || n * bytes < LONG_BYTES) return 0;
  uint64_t word = 0;
  memcpy(&word, from, (size_t)bytes);
  for (int64_t k = bytes; k < 8; k *= 2) word |= word << 8 * k;
  int64_t n_words = n * bytes / 8;
  const int64_t n_done = n_words * 8 / bytes;
  __asm__ volatile("rep stosq" : "+D"(to), "+c"(n_words) : "a"(word) : "memory");
  return n_done;
#else
  (void)to, (void)from, (void)n, (void)bytes;
  return 0;
#endif
}

#ifdef __x86_64__
/* Places from the last to the first. */
#define DOWN_4(k) (k) + 3, (k) + 2, (k) + 1, (k)
#define DOWN_8(k) DOWN_4((k) + 4), DOWN_4(k)
#define DOWN_16(k) DOWN_8((k) + 8), DOWN_8(k)
#define DOWN_32(k) DOWN_16((k) + 16), DOWN_16(k)
#define TURN(size, type, ...)                                                    \
  case size: {                                                                   \
    typedef type vector __attribute__((vector_size(32), aligned(1), may_alias)); \
    for (int64_t i = 0; i < n_vectors; i++) {                                    \
      const vector x = *(const vector *)(from + (size)-32 * (i + 1));            \
      *(vector *)(to + 32 * i) = CUPLUG__SHUFFLE(vector, x, x, __VA_ARGS__);     \
    }                                                                            \
    return n_vectors * 32 / (size);                                              \
  }

/* Writes elements that lie in the other order. Returns how many were written. */
__attribute__((target("avx2"))) static int64_t turn_vectors(char *to, const char *from, int64_t n,
                                                            int64_t bytes) {
  const int64_t n_vectors = n * bytes / 32;
  switch (bytes) {
    TURN(1, uint8_t, DOWN_32(0))
    TURN(2, uint16_t, DOWN_16(0))
    TURN(4, uint32_t, DOWN_8(0))
    TURN(8, uint64_t, DOWN_4(0))
    TURN(16, uint64_t, 2, 3, 0, 1)
  }
  return 0;
}
#endif

/* The same of 1, 2 or 4 bytes for every processor, a word at a time. */
static inline int64_t turn_words(char *to, const char *from, int64_t n, int64_t bytes) {
  const uint64_t low = 0x00ff00ff00ff00ff;
  const int64_t n_words = n * bytes / 8;
  if (bytes != 1 && bytes != 2 && bytes != 4) return 0;
  for (int64_t i = 0; i < n_words; i++) {
    uint64_t word;
    memcpy(&word, from - 8 * i - (8 - bytes), 8);
    if (bytes == 4) word = word << 32 | word >> 32;
    if (bytes < 4) word = __builtin_bswap64(word);
    if (bytes == 2) word = (word & low) << 8 | (word >> 8 & low);
    memcpy(to + 8 * i, &word, 8);
  }
  return n_words * 8 / bytes;
}

static inline int64_t turn(char *to, const char *from, int64_t n, int64_t bytes) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return turn_vectors(to, from, n, bytes);
#endif
  return turn_words(to, from, n, bytes);
}

/* Elements that come to lie together. 0: nothing was done. */
static inline int move_known(char *restrict to, const char *restrict from, int64_t from_step,
                             int64_t n, int64_t bytes) {
  if (from_step == 0) {
    const int64_t n_done = fill_words(to, from, n, bytes);
    to += n_done * bytes, n -= n_done;
  }
  if (from_step == -bytes) {
    const int64_t n_done = turn(to, from, n, bytes);
    to += n_done * bytes, from -= n_done * bytes, n -= n_done;
  }
  switch (bytes) {
  case 1:
    MOVE_KNOWN(1)
  case 2:
    MOVE_KNOWN(2)
  case 4:
    MOVE_KNOWN(4)
  case 8:
    MOVE_KNOWN(8)
  case 16:
    MOVE_KNOWN(16)
  }
  return 0;
}

void cuplug__move(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n,
                  int64_t bytes) {
  if (to_step == bytes && from_step == bytes)
    memcpy(to, from, (size_t)(n * bytes));
  else if (to_step != bytes || !move_known(to, from, from_step, n, bytes))
    move_any(to, to_step, from, from_step, n, bytes);
}

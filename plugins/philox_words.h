/* SPDX-License-Identifier: Apache-2.0 */
/* Random bits of several elements, on the host, by a loop that compilers make vectors of: for a
 * function that is compiled for these. */
#ifndef CUPLUG_PLUGINS_PHILOX_WORDS_H
#define CUPLUG_PLUGINS_PHILOX_WORDS_H

#include "philox.h"

/* Elements at once: the nearest cache holds their bits. */
#define RANDOM_CHUNK 512
typedef struct random_words {
  uint32_t at[2 * RANDOM_CHUNK + 8];
} random_words;

/* Those of elements i to i + n - 1 of a draw, n <= RANDOM_CHUNK, somewhere in the room; of wide
 * bits two words each, the lower one first. */
#define RANDOM_WORDS(name, block_of, per_block)                                          \
  ELEMENTS_INLINE const uint32_t *name(const random_source *from, uint64_t i, int64_t n, \
                                       random_words *room) {                             \
    const uint64_t first = from->first + i, beside = first % (per_block);                \
    const int64_t n_blocks = ((int64_t)beside + n + (per_block)-1) / (per_block);        \
    uint32_t *restrict words = room->at;                                                 \
    for (int64_t k = 0; k < n_blocks; k++) {                                             \
      const uint64_t number = block_of(first - beside + (per_block) * (uint64_t)k);      \
      const random_block block = random_philox(&from->keys, number, from->sequence);     \
      for (int word = 0; word < 4; word++) words[4 * k + word] = block.word[word];       \
    }                                                                                    \
    return room->at + beside * 4 / (per_block);                                          \
  }
RANDOM_WORDS(random_narrow_words, random_narrow_block, 4)
RANDOM_WORDS(random_wide_words, random_wide_block, 2)

#endif

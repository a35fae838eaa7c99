/* SPDX-License-Identifier: Apache-2.0 */
/* Keys without anything that goes with them, sorted in place by vectors, on the host. */
#ifndef CUPLUG_PLUGINS_SORTING_QUICKSORT_H
#define CUPLUG_PLUGINS_SORTING_QUICKSORT_H

#include <stdint.h>

/* Of keys of one width. `depth`: how many bad divisions there may be; some twice the logarithm. */
typedef struct sorting_by_vectors {
  void (*sort)(void *keys, int64_t n, int depth);
  /* Moves lesser keys before the others, where there are 512 or more. Returns how many are lesser,
   * at least one; with *is_done these are equal. */
  int64_t (*split)(void *keys, int64_t n, int depth, int *is_done);
} sorting_by_vectors;

/* For keys of 4 or 8 bytes, or NULL where this CPU has no vectors for it. */
const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes);

#endif

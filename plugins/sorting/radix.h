/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting lines of keys on the host: what all host entries of this plugin call. */
#ifndef CUPLUG_PLUGINS_SORTING_RADIX_H
#define CUPLUG_PLUGINS_SORTING_RADIX_H

#include "order.h"

/* Keys without anything that goes with them, sorted in place by vectors (quicksort.c). Of keys of
 * one width; `depth`: how many bad divisions there may be, some twice the logarithm. */
typedef struct sorting_by_vectors {
  void (*sort)(void *keys, int64_t n, int depth);
  /* Moves lesser keys before the others, where there are 512 or more. Returns how many are lesser,
   * at least one; with *is_done these are equal. */
  int64_t (*split)(void *keys, int64_t n, int depth, int *is_done);
} sorting_by_vectors;

/* For keys of 4 or 8 bytes, or NULL where this CPU has no vectors for it. */
const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes);

/* n_lines of m keys each, one after the other. Keys of up to 4 bytes lie in 32 bits, others in 64.
 * `index`, unless it is NULL, has what goes with each key. */
typedef struct sorting {
  const cuplug_call *call;
  const sorting_by_vectors *by; /* or NULL: a radix sort, which takes the spare arrays */
  void *keys, *spare;
  int64_t *index, *spare_index;
  int64_t n_lines, m, n_bytes;
} sorting;

/* Reads n elements of x, which are `step` apart, as keys. */
void sorting_read(const order *o, const void *x, int64_t step, int64_t n, void *keys);

/* Takes workspaces for the keys of lines, and, if asked to, for an index. Keys by vectors may lie
 * in `home` instead, unless it is NULL. */
int sorting_begin(sorting *s, const cuplug_call *call, int64_t n_bytes, int64_t n_lines, int64_t m,
                  int has_index, void *home);

/* Reads the keys of x along an axis; the index of each becomes its position in its line. */
int sorting_load(sorting *s, const cuplug_tensor *x, const elements_axis *axis, const order *o);

/* Sorts each line; equal keys stay in their order. */
int sorting_run(sorting *s);

/* The same with an index by vectors of keys and places, where that can be. */
int sorting_can_pack(const sorting *s);
int sorting_run_packed(sorting *s);

/* The same without an index, by vectors. Keys become numbers again, unless o is NULL. */
int sorting_run_by_vectors(const sorting *s, const order *o);

#endif

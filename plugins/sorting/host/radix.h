/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting lines of keys on the host: what all host entries of this plugin call. */
#ifndef CUPLUG_PLUGINS_SORTING_RADIX_H
#define CUPLUG_PLUGINS_SORTING_RADIX_H

#include "sort_keys.h"

/* Of narrow keys more are computed at once. */
ORDER_OF_WIDTH(uint8_t, 8)
ORDER_OF_WIDTH(uint16_t, 16)

/* Keys without anything that goes with them, sorted in place by vectors (quicksort.c). Of keys of
 * one width; `depth`: how many bad divisions there may be, some twice the logarithm. */
typedef struct sorting_by_vectors {
  void (*sort)(void *keys, int64_t n, int depth);
  /* Moves smaller keys before the others, if there are 512 or more. Returns the number of smaller
   * ones, at least one; with *is_done these are equal. */
  int64_t (*split)(void *keys, int64_t n, int depth, int *is_done);
  int64_t most; /* keys that `sort` takes: there is no `split` where this is less than any number */
} sorting_by_vectors;

/* For keys of so many bytes, or NULL where this CPU has no vectors for it. */
const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes);

/* The values of keys: none, their positions in their lines, or the caller's. */
typedef enum sorting_index { SORTING_ALONE, SORTING_PLACES, SORTING_GIVEN } sorting_index;

/* n_lines of m keys each, one after the other, of `width` bytes: of n_bytes, but of 4 or more where
 * the caller gives an index. `index`, unless it is NULL, has what goes with each key. */
typedef struct sorting {
  const cuplug_call *call;
  const sorting_by_vectors *by; /* or NULL: with an index, or where there are none */
  void *keys, *spare;
  int64_t *index, *spare_index;
  int64_t n_lines, m, n_bytes, width;
  int is_given, wants_keys; /* unless set, an index may be in order, but not the keys */
} sorting;

/* Reads n elements of x, which are `step` apart, as keys of `width` bytes. */
void sorting_read(const order *o, const void *x, int64_t step, int64_t n, int64_t width,
                  void *keys);

/* Allocates workspaces for the keys of lines, and, if requested, for an index. The required output,
 * keys or positions, is in `home` instead, unless it is NULL. */
int sorting_begin(sorting *s, const cuplug_call *call, int64_t n_bytes, int64_t n_lines, int64_t m,
                  sorting_index index, void *home);

/* Reads the keys of x along an axis. */
int sorting_load(sorting *s, const cuplug_tensor *x, const elements_axis *axis, const order *o);

/* Sorts each line; equal keys stay in their order. */
int sorting_run(sorting *s);

/* The same with an index by vectors of keys and positions: *is_done reports whether it was
 * possible. */
int sorting_run_packed(sorting *s, int *is_done);

/* The same without an index, by vectors; bytes are counted where there are many, or no vectors.
 * Keys become numbers again, unless o is NULL. */
int sorting_run_by_vectors(const sorting *s, const order *o);

/* Gives the zeros and the NaNs among n_out elements in order, which are of those of x, the bits
 * that the first ones of x have. Elements are `step` apart. */
void sorting_restore(const order *o, const void *x, int64_t step, int64_t n, void *out,
                     int64_t n_out);

/* Returns whether n elements have a zero with a sign, or a NaN. */
int sorting_has_unequal(const order *o, const void *x, int64_t n);

/* Sorts bytes in place: counts how often each is there. */
int sorting_count(const cuplug_call *call, uint8_t *keys, int64_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of lines of keys on the host: the functions that all host entries of this plugin call. */
#ifndef CUPLUG_PLUGINS_SORTING_RADIX_H
#define CUPLUG_PLUGINS_SORTING_RADIX_H

#include "sort_keys.h"

/* More narrow keys are computed at once. */
ORDER_OF_WIDTH(uint8_t, 8)
ORDER_OF_WIDTH(uint16_t, 16)

/* Keys without values, sorted in place by vectors (quicksort.c), for one width of keys. `depth` is
 * the allowed number of bad divisions, about twice the logarithm. */
typedef struct sorting_by_vectors {
  void (*sort)(void *keys, int64_t n, int depth);
  /* Moves smaller keys before the others, if there are 512 or more. Returns the number of smaller
   * ones, at least one. With *is_done, these are equal. */
  int64_t (*split)(void *keys, int64_t n, int depth, int *is_done);
  int64_t most; /* keys that `sort` accepts; `split` is missing if all numbers exceed this */
} sorting_by_vectors;

/* For keys of this number of bytes, or NULL if this CPU has no vectors for it. */
const sorting_by_vectors *sorting_by_vectors_of(int64_t n_bytes);

/* The values of keys: none, their positions in their lines, or the caller's. */
typedef enum sorting_index { SORTING_ALONE, SORTING_PLACES, SORTING_GIVEN } sorting_index;

/* n_lines of m keys each, consecutive, of `width` bytes: n_bytes, but 4 or more if the caller
 * passes an index. `index`, unless it is NULL, has the value of each key. */
typedef struct sorting {
  const cuplug_call *call;
  const sorting_by_vectors *by; /* or NULL: with an index, or if none is available */
  void *keys, *spare;
  int64_t *index, *spare_index;
  int64_t n_lines, m, n_bytes, width;
  int is_given, wants_keys; /* if 0, an index may be sorted without the keys */
} sorting;

/* Reads n elements of x, at distances of `step`, as keys of `width` bytes. */
void sorting_read(const order *o, const void *x, int64_t step, int64_t n, int64_t width,
                  void *keys);

/* Allocates workspaces for the keys of lines and, if requested, for an index. The required output,
 * keys or positions, is in `home` instead, unless it is NULL. */
int sorting_begin(sorting *s, const cuplug_call *call, int64_t n_bytes, int64_t n_lines, int64_t m,
                  sorting_index index, void *home);

/* Reads the keys of x along an axis. */
int sorting_load(sorting *s, const cuplug_tensor *x, const elements_axis *axis, const order *o);

/* Sorts each line. Equal keys stay in their order. */
int sorting_run(sorting *s);

/* The same with an index, by vectors of keys and positions. *is_done reports whether it was
 * possible. */
int sorting_run_packed(sorting *s, int *is_done);

/* The same without an index, by vectors. Bytes are counted if there are many, or no vectors. Keys
 * become numbers again, unless o is NULL. */
int sorting_run_by_vectors(const sorting *s, const order *o);

/* Sets the bits of the zeros and NaNs among n_out sorted elements to the bits of the zeros and NaNs
 * of x, in their order. Elements are at distances of `step`. */
void sorting_restore(const order *o, const void *x, int64_t step, int64_t n, void *out,
                     int64_t n_out);

/* Returns whether n elements have a zero with a sign, or a NaN. */
int sorting_has_unequal(const order *o, const void *x, int64_t n);

/* Sorts bytes in place, by counting each value. */
int sorting_count(const cuplug_call *call, uint8_t *keys, int64_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host entries of this plugin: values that are moved to or from their positions. */
#ifndef CUPLUG_PLUGINS_SCATTER_SCATTER_H
#define CUPLUG_PLUGINS_SCATTER_SCATTER_H

#include "indexing/positions.h"

#define RUN 256 /* values whose positions are found before they are moved */

typedef struct job job;

/* Moves values `first` to first + n - 1, whose positions are `at`, in their order. */
typedef void move(const job *j, const int64_t *at, int64_t first, int64_t n);

struct job {
  const cuplug_call *call;
  places places;
  move *move;
  void *x, *values;       /* values may be NULL: only their numbers matter */
  const int64_t *numbers; /* positions of the values; NULL: they are in order */
  int64_t *last;          /* for each written element of x, the number of the remaining value */
  int64_t n_each;         /* values that one thread moves */
  int64_t element_bytes;
};

/* Finds the elements of x for values `first` to first + n - 1. A bad index is an error. */
int find_places(const job *j, int64_t first, int64_t n, int64_t *at);

/* Reports the error of the index for value e. */
int fail_index(const job *j, int64_t e);

move take, put, add; /* from x; to x; added to x */
move put_one; /* the same value to all positions of x, of up to PUT_ONE_BYTES, in any order */
#define PUT_ONE_BYTES 8

/* Moves all values, on the most efficient number of threads. */
int move_all(job *j, move *m);

/* The gradient of `put`, from the first array of the call. The first output becomes that array,
 * with 0 at the positions. The values become its elements there for the last value of each
 * position, else 0. */
int find_gradients(job *j);

/* Writes a value of so many bytes n times. */
void repeat_value(void *to, const void *value, int64_t n, int64_t bytes);

/* Returns whether values are long rows that are copied or filled; if so, moves them on all threads.
 */
int can_move_rows(const job *j);
int move_rows(const job *j);

/* Copies the bytes of `from` to the first output; without it, writes zeros. */
int fill(const cuplug_call *call, const void *from);

/* Returns whether the available threads move values in buckets faster than one of them in order. */
int wants_buckets(const job *j);

/* Moves all values on all threads. Those for one position are moved in their order. */
int move_in_buckets(const job *j);

#endif

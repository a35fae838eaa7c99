/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting of lines of keys on a GPU: the functions that all CUDA entries of this plugin call. */
#ifndef CUPLUG_PLUGINS_SORTING_RADIX_CUH
#define CUPLUG_PLUGINS_SORTING_RADIX_CUH

#include <cuplug/plugin.hpp>

#include "sort_keys.h"

constexpr int SORTING_THREADS = 256;
constexpr int SORTING_SHORT = 4096; /* keys of a line that a block has in shared memory */

/* Positions in lines, of 32 bits if they suffice. */
struct sorted_index {
  void *at;
  bool is_wide;
  __device__ int64_t operator[](int64_t i) const {
    return is_wide ? ((const int64_t *)at)[i] : ((const uint32_t *)at)[i];
  }
  __device__ void set(int64_t i, int64_t j) const {
    if (is_wide)
      ((int64_t *)at)[i] = j;
    else
      ((uint32_t *)at)[i] = (uint32_t)j;
  }
};

/* n_lines of m keys each, consecutive, in device memory. Keys of up to 4 bytes have 32 bits, others
 * 64. `index`, unless it is null, has the value of each key. */
struct sorting {
  void *keys, *spare, *index, *spare_index;
  int64_t n_lines, m, n_bytes;
  bool is_wide;             /* the index has 64 bits */
  bool is_numbered = false; /* the index, not yet written, is each key's position in its line */
  int first_bit = 0;        /* of keys; lower bits are ignored */
  unsigned long long *words = nullptr; /* for sorting_restore; the first is 1 if it has work */
  int64_t n_words = 0;

  int64_t n() const { return n_lines * m; }
  int64_t key_bytes() const { return n_bytes == 8 ? 8 : 4; }
  int64_t index_bytes() const { return is_wide ? 8 : 4; }
  sorted_index indices() const { return {index, is_wide}; }
  void swap() {
    void *const before = keys, *const index_before = index;
    keys = spare, index = spare_index, spare = before, spare_index = index_before;
  }
};

/* Allocates workspaces for the keys of lines and, unless `n_indices` is 0, for an index of numbers
 * below that. */
int sorting_begin(cuplug::call call, sorting *s, int64_t n_bytes, int64_t n_lines, int64_t m,
                  int64_t n_indices);

/* Reads the keys of x along an axis. The index of each becomes its position in its line. */
int sorting_load(cuplug::call call, sorting *s, const cuplug_tensor &x, const elements_axis &axis,
                 const order &o);

/* Prepares sorting_restore, if dtypes have signs of zeros and NaNs. sorting_load clears the words.
 */
int sorting_begin_restore(cuplug::call call, sorting *s, const order &o);

/* Writes the zeros and NaNs of each line of x, in their order, over the zeros and NaNs among its
 * n_out sorted elements of `out`. Does nothing unless an earlier kernel has set s.words[0]. */
int sorting_restore(cuplug::call call, const sorting &s, const cuplug_tensor &x,
                    const elements_axis &axis, const order &o, void *out, int64_t n_out);

/* Returns whether lines are sorted without an index that was written before. */
bool sorting_numbers(const sorting &s);

/* Sorts each line. Equal keys stay in their order. `keys` and `index` may then be other workspaces.
 */
int sorting_run(cuplug::call call, sorting *s);
int sorting_run_long(cuplug::call call, sorting *s);   /* elements of lines that fill a GPU */
int sorting_run_digits(cuplug::call call, sorting *s); /* elements for keys of 32 bits and less */

/* Lines of up to SORTING_SHORT keys, and the output of each after a block has sorted it: its first
 * k numbers in `out`; or, with `from` or `indices`, the elements of `from` for them, and their
 * positions. `is_back`: the elements of `from` go to those positions. */
struct sorting_short {
  const void *x; /* has the keys along an axis, unless `keys` are known with their values */
  elements_axis axis;
  order o;
  const void *keys;
  sorted_index index;
  int64_t m, k;
  const void *from;
  void *out;
  int64_t *indices;
  int64_t element_bytes;
  bool is_back;
};
bool sorting_is_short(int64_t n_lines, int64_t m);

/* In one launch, without a workspace. */
int sorting_run_short(cuplug::call call, const sorting_short &s);
int sorting_run_tiles(cuplug::call call,
                      const sorting_short &s); /* elements of many lines, or of longer ones */

/* The same for the first few of longer lines, without `keys`: only keys of each line that may be
 * among them are sorted. */
bool sorting_has_few(const sorting_short &s);
int sorting_run_few(cuplug::call call, const sorting_short &s);

/* Finds the top.m smallest keys of each line of x, equal ones in their order. */
bool sorting_can_choose(const elements_axis &axis, int64_t k);
int sorting_choose(cuplug::call call, const sorting &top, const cuplug_tensor &x,
                   const elements_axis &axis, const order &o);

/* unique, or unique_values, of the n elements of the first array, with their outputs. Sets
 * `is_done`, unless they are more than a block sorts, and their values are more than a table holds
 * or, by dtype and n, not worth counting. */
int sorting_unique_few(cuplug::call call, const order &o, int64_t n, bool has_index, bool *is_done);

/* The line of key number i of all. */
__device__ inline int64_t sorting_line(const elements_axis &axis, int64_t i) {
  return axis.n_outer * axis.width == 1 ? 0 : i / axis.m;
}

/* The keys of zeros, of NaNs, and of the -0.0 of order_with_signs. */
template <typename K> __device__ inline bool sorting_is_zero(const order &o, K key) {
  return o.infinity && (K)(key ^ (K)o.flip) == (K)o.sign;
}
template <typename K> __device__ inline bool sorting_is_nan(const order &o, K key) {
  return o.infinity && (K)(key ^ (K)o.flip) == (K)(o.nan ^ o.sign);
}
template <typename K> __device__ inline bool sorting_is_minus_zero(const order &o, K key) {
  return o.infinity && (K)(key ^ (K)o.flip) == (K)(o.sign ^ o.all);
}

/* Returns the key to write. sorting_restore, which finds 1 in `words`, expects zeros without signs.
 */
template <typename K>
__device__ inline K sorting_written(const order &o, K key, unsigned long long *words) {
  const bool is_minus_zero = sorting_is_minus_zero(o, key);
  if (is_minus_zero || sorting_is_nan(o, key)) *words = 1;
  return is_minus_zero ? key ^ (K)o.all : key;
}

/* Copies element `from` of x, of a floating dtype. */
__device__ inline void sorting_copy(const order &o, const void *x, int64_t from, void *out,
                                    int64_t to) {
  if (o.n_bytes == 2)
    ((uint16_t *)out)[to] = ((const uint16_t *)x)[from];
  else if (o.n_bytes == 4)
    ((uint32_t *)out)[to] = ((const uint32_t *)x)[from];
  else
    ((uint64_t *)out)[to] = ((const uint64_t *)x)[from];
}

/* The position of element j of a line in x. */
__device__ inline int64_t sorting_place(const elements_axis &axis, int64_t line, int64_t j) {
  return elements_line(&axis, line) + j * axis.width;
}

#endif

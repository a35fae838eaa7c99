/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting lines of keys on a GPU: what all CUDA entries of this plugin call. */
#ifndef CUPLUG_PLUGINS_SORTING_RADIX_CUH
#define CUPLUG_PLUGINS_SORTING_RADIX_CUH

#include <cuplug/plugin.hpp>

#include "order.h"

constexpr int SORTING_THREADS = 256;

/* n_lines of m keys each, one after the other, in memory of the device. Keys of up to 4 bytes lie
 * in 32 bits, others in 64. `index`, unless it is null, has what goes with each key. */
struct sorting {
  void *keys, *spare;
  int64_t *index, *spare_index;
  int64_t n_lines, m, n_bytes;

  int64_t n() const { return n_lines * m; }
};

/* Takes workspaces for the keys of lines, and, if asked to, for an index. */
int sorting_begin(cuplug::call call, sorting *s, int64_t n_bytes, int64_t n_lines, int64_t m,
                  bool has_index);

/* Reads the keys of x along an axis; the index of each becomes its position in its line. */
int sorting_load(cuplug::call call, const sorting &s, const cuplug_tensor &x,
                 const elements_axis &axis, const order &o);

/* Sorts each line; equal keys stay in their order. `keys` and `index` are then others of the
 * workspaces. */
int sorting_run(cuplug::call call, sorting *s);

/* Key or element number i of the sorted lines, where x has it. */
__device__ inline int64_t sorting_place(const elements_axis &axis, int64_t i, int64_t j_of_line) {
  return axis.width == 1 ? i - i % axis.m + j_of_line
                         : elements_line(&axis, i / axis.m) + j_of_line * axis.width;
}

#endif

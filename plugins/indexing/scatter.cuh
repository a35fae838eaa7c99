/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are added or stored on a GPU, at positions that the caller has found. */
#ifndef CUPLUG_PLUGINS_INDEXING_SCATTER_CUH
#define CUPLUG_PLUGINS_INDEXING_SCATTER_CUH

#include "indexing/positions.h"

/* Clears the first output, and adds values to it. Elements at bad positions are not changed. */
int scatter_add(const cuplug_call *call, const places &p, void *values);

/* The first output becomes the first array, with 0 at the positions. grad_values receives the
 * elements there, each for one of the values with that position, and 0 for the others. */
int scatter_gradients(const cuplug_call *call, const places &p, void *grad_values);

/* Returns the sum of n floating or complex numbers; zero if there are none. */
int sum_all(const cuplug_call *call, const void *from, int64_t n, void *to, uint32_t type);

#endif

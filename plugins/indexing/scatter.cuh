/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are added up or replaced on a GPU, at places that the caller has found. */
#ifndef CUPLUG_PLUGINS_INDEXING_SCATTER_CUH
#define CUPLUG_PLUGINS_INDEXING_SCATTER_CUH

#include "indexing/positions.h"

/* The first output becomes zeros, to which values are added. Elements at bad positions are not
 * changed. */
int scatter_add(const cuplug_call *call, const places &p, void *values);

/* The first output becomes the first array, 0 at the places; grad_values the elements there, each
 * for one of the values whose place it is, 0 for the others. */
int scatter_gradients(const cuplug_call *call, const places &p, void *grad_values);

/* The sum of n floating or complex numbers; zero if there are none. */
int sum_all(const cuplug_call *call, const void *from, int64_t n, void *to, uint32_t type);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are moved on a GPU, for whoever has found their places. */
#ifndef CUPLUG_PLUGINS_INDEXING_SCATTER_CUH
#define CUPLUG_PLUGINS_INDEXING_SCATTER_CUH

#include "indexing/places.h"

/* From x; to x; the first output becomes zeros, to which they are added. What stands at a bad place
 * is left alone. */
int scatter_take(const cuplug_call *call, const places &p, void *x, void *values);
int scatter_put(const cuplug_call *call, const places &p, void *x, void *values);
int scatter_add(const cuplug_call *call, const places &p, void *values);

#endif

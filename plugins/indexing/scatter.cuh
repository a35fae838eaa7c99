/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are added up on a GPU, for whoever has found their places. */
#ifndef CUPLUG_PLUGINS_INDEXING_SCATTER_CUH
#define CUPLUG_PLUGINS_INDEXING_SCATTER_CUH

#include "indexing/places.h"

/* The first output becomes zeros, to which values are added. What stands at a bad place is left
 * alone. */
int scatter_add(const cuplug_call *call, const places &p, void *values);

#endif

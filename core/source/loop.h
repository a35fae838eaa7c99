/* SPDX-License-Identifier: Apache-2.0 */
/* Strided arrays of one shape as loops of few dimensions. */
#ifndef CUPLUG_CORE_SOURCE_LOOP_H
#define CUPLUG_CORE_SOURCE_LOOP_H

#include <cuplug/walk.h>
#include <internal/source.h>

/* Declares memory for the strides of `ndim` dimensions: of 64 it would fill small stacks. */
#define CUPLUG__LOOP_STRIDES(name, ndim) long long name[(ndim) + 1][CUPLUG_MAX_LOOP_ARRAYS]

#endif

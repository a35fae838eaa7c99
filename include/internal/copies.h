/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between arrays of the host. Not installed. */
#ifndef CUPLUG_INTERNAL_COPIES_H
#define CUPLUG_INTERNAL_COPIES_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Copies the elements of an array to one of the same shape and dtype, in other memory; at least one
 * of the two is contiguous. Returns 0 if elements of `to` share memory: nothing was done.
 * [thread-safe] [no-cuda] */
int cuplug_copy_array(const cuplug_tensor *to, const cuplug_tensor *from);

CUPLUG__END_C

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges that a signature gives for elements of arrays, checked where that is asked for. */
#ifndef CUPLUG_CORE_ARGUMENTS_ELEMENT_RANGES_H
#define CUPLUG_CORE_ARGUMENTS_ELEMENT_RANGES_H

#include <internal/frame.h>

/* With CUPLUG_CHECK_ELEMENTS=1, checks the elements of arrays on the host. Returns ERROR_VALUE for
 * one out of its range, and says where it is. */
int cuplug__check_elements(const cuplug_frame *frame, cuplug_error *error);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUPLUG_CORE_CALL_CALL_H
#define CUPLUG_CORE_CALL_CALL_H

#include <internal/frame.h>

/* Where a bound frame, with its `device` as it is now, will run. */
cuplug_device cuplug__where(const cuplug_frame *frame);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays against the guarantees of a signature: "stride(x, -1) == 1", "align(x) >= 16". */
#ifndef CUPLUG_CORE_ARGUMENTS_GUARANTEES_H
#define CUPLUG_CORE_ARGUMENTS_GUARANTEES_H

#include "base/status.h"

#include <internal/signature.h>

/* Returns 1 if the memory of an array of parameter or output x is not as guaranteed. */
int cuplug__breaks_guarantees(const cuplug_parameter *x, const cuplug_tensor *t);

typedef struct cuplug__guarantee_text {
  char got[80], expected[80];
} cuplug__guarantee_text;

/* Returns the two parts of a message about the first guarantee that an array breaks. */
CUPLUG__COLD cuplug__guarantee_text cuplug__describe_broken(const cuplug_parameter *x,
                                                            const cuplug_tensor *t);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a GPU, made current around what needs it. */
#ifndef CUPLUG_CORE_CUDA_CONTEXT_H
#define CUPLUG_CORE_CUDA_CONTEXT_H

#include <cuplug/host.h>

/* What is current, and what was before; alike after an error. */
typedef struct cuplug__context {
  void *current, *previous;
  int status; /* CUPLUG_OK, or why there is nothing to leave */
} cuplug__context;

/* Makes the primary context of `device` current, unless it is. Declares one that is left where the
 * block ends:
 *     CUPLUG__ENTERED context = cuplug__cuda_enter(device, error);
 *     if (context.status) return context.status;
 */
#define CUPLUG__ENTERED __attribute__((cleanup(cuplug__cuda_leave))) cuplug__context
cuplug__context cuplug__cuda_enter(int32_t device, cuplug_error *error);
void cuplug__cuda_leave(const cuplug__context *context);

/* For the begin of a function: empties the record, and declares such a `context`. The function
 * returns the status where there is none. */
#define CUPLUG__ENTER_OR_RETURN(device, error)                 \
  cuplug__clear(error);                                        \
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error); \
  if (context.status) return context.status

#endif

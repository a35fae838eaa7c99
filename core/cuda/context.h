/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a GPU, made current around what needs it. */
#ifndef CUPLUG_CORE_CUDA_CONTEXT_H
#define CUPLUG_CORE_CUDA_CONTEXT_H

#include <cuplug/host.h>

/* Makes the primary context of `device` current, unless it is; *previous is for cuda_leave. */
int cuplug__cuda_enter(int32_t device, void **previous, cuplug_error *error);
void cuplug__cuda_leave(void *previous, int32_t device);

#endif

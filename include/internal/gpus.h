/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for Python users of GPUs in addition to <cuplug/devices.h>. Not installed: C programs
 * have CUDA's own. */
#ifndef CUPLUG_INTERNAL_GPUS_H
#define CUPLUG_INTERNAL_GPUS_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* The GPUs that have been used: bit k for GPU k. [thread-safe] */
uint64_t cuplug_used_gpus(void);

/* An attribute by CUDA's number. `is_known`: 0 where the driver is older. [thread-safe] */
int cuplug_query_attribute(int32_t device, int32_t attribute, int32_t *value, int32_t *is_known,
                           cuplug_error *error);

/* Frees memory of cuplug_allocate_device of this size, and may cache it for the next request of
 * that size. [thread-safe] [stream-ordered] */
int cuplug_release_device(int32_t device, void *pointer, uint64_t bytes, void *stream);

/* Raises the fault of the call of that origin, or of a call whose results it read, every time. 0:
 * unknown. The outputs of the call must have been waited for. [thread-safe] */
int cuplug_check_origin(uint64_t origin, cuplug_error *error);

CUPLUG__END_C
#endif

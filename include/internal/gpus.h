/* SPDX-License-Identifier: Apache-2.0 */
/* What Python users ask of GPUs beyond <cuplug/devices.h>: attributes, memory that the host sees,
 * copies from GPU to GPU. Not installed: C programs have CUDA's own. */
#ifndef CUPLUG_INTERNAL_GPUS_H
#define CUPLUG_INTERNAL_GPUS_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* The GPUs that have been used: bit k for GPU k. [thread-safe] */
CUPLUG_API uint64_t cuplug_used_gpus(void);

/* An attribute by CUDA's number. `is_known`: 0 where the driver is older. [thread-safe] */
CUPLUG_API int cuplug_query_attribute(int32_t device, int32_t attribute, int32_t *value,
                                      int32_t *is_known, cuplug_error *error);

/* Frees what cuplug_allocate_device gave for as many bytes, and may keep it for the next of that
 * many. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_release_device(int32_t device, void *pointer, uint64_t bytes, void *stream);

/* Pinned memory of the host, which all GPUs see; or managed memory, which moves to where it is
 * used. [thread-safe] */
CUPLUG_API int cuplug_allocate_shared(int32_t device, int is_managed, uint64_t bytes,
                                      void **pointer, cuplug_error *error);
/* [thread-safe] [syncs] */
CUPLUG_API int cuplug_free_shared(int32_t device, int is_managed, void *pointer,
                                  cuplug_error *error);

/* Copies from one GPU to another, after the work on `stream` of the one and before that on
 * `waiting` of the other. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_copy_peer(int32_t to_device, void *to, void *waiting, int32_t from_device,
                                const void *from, void *stream, uint64_t bytes,
                                cuplug_error *error);

CUPLUG__END_C
#endif

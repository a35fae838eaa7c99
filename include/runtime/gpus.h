/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that several GPUs, or the host and a GPU, can access, and copies between GPUs. Not
 * installed: C programs use CUDA's functions. */
#ifndef CUPLUG_RUNTIME_GPUS_H
#define CUPLUG_RUNTIME_GPUS_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

/* Pinned memory of the host, which all GPUs can access; or managed memory, which is transferred to
 * its users. [thread-safe] */
CUPLUG_API int cuplug_allocate_shared(int32_t device, int is_managed, uint64_t bytes,
                                      void **pointer, cuplug_error *error);
/* [thread-safe] [syncs] */
CUPLUG_API int cuplug_free_shared(int32_t device, int is_managed, void *pointer,
                                  cuplug_error *error);

/* Copies from one GPU to another, after the work on `stream` of the first and before later work on
 * `waiting` of the second. [thread-safe] [stream-ordered] */
CUPLUG_API int cuplug_copy_peer(int32_t to_device, void *to, void *waiting, int32_t from_device,
                                const void *from, void *stream, uint64_t bytes,
                                cuplug_error *error);

/* Returns the origin of the outputs of work that is not a call, such as a kernel launch, after it
 * read arrays with these origins. The work was queued on the device's `stream`. [thread-safe] */
CUPLUG_API int cuplug_join_origins(int32_t device, void *stream, const uint64_t *origins,
                                   uint32_t n, uint64_t *origin, cuplug_error *error);

CUPLUG__END_C
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for streams, and their order. */
#ifndef CUPLUG_CORE_CUDA_STREAM_H
#define CUPLUG_CORE_CUDA_STREAM_H

#include <cuplug/host.h>

/* The legacy default stream by its explicit name, for callers that say NULL. */
#define CUPLUG__STREAM(stream) ((stream) ? (stream) : (void *)1)
/* Handles up to this one name a default stream of whichever GPU is current. */
#define CUPLUG__LAST_DEFAULT_STREAM 2

/* Blocks or orders; `device` has been entered. Streams of which one alone is captured are left as
 * they are. */
int cuplug__stream_synchronize(void *stream, cuplug_error *error);
int cuplug__stream_wait(int32_t device, void *waiting, void *stream, cuplug_error *error);
/* Orders them whether captured or not: a stream that waits for one that is captured takes part in
 * the capture from there on. */
int cuplug__stream_order(int32_t device, void *waiting, void *stream, cuplug_error *error);

#endif

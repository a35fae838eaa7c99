/* SPDX-License-Identifier: Apache-2.0 */
/* Second streams: work beside a call's stream, after what was on it and before what comes next. The
 * device has been entered in every call. */
#ifndef CUPLUG_CORE_CUDA_SECOND_H
#define CUPLUG_CORE_CUDA_SECOND_H

#include <cuplug/host.h>

typedef struct cuplug__second {
  void *stream;
  int32_t device;
  void *forked_from; /* the stream it was ordered after most recently */
  struct cuplug__second *next;
} cuplug__second;

/* Orders *second after what is on `stream`. It is acquired from the device's pool if it is NULL. */
int cuplug__second_fork(int32_t device, void *stream, cuplug__second **second, cuplug_error *error);
/* Makes `stream` wait for it, and releases it: its work may still be queued. */
int cuplug__second_join(cuplug__second *second, void *stream, cuplug_error *error);

#endif

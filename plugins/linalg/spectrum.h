/* SPDX-License-Identifier: Apache-2.0 */
/* Transforms of real numbers, half of which is stored. */
#ifndef CUPLUG_PLUGINS_LINALG_SPECTRUM_H
#define CUPLUG_PLUGINS_LINALG_SPECTRUM_H

#include "linalg/library.h"

#include <cuplug/format.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Copies the elements of x, lines of n // 2 + 1 in a transform of n real numbers. Elements that
 * represent two (all except number 0 and, for an even n, the last) are multiplied by `weight`.
 * `from` may equal `to`. */
#ifdef CUPLUG_HOST_ONLY
static inline int spectrum_weigh(const cuplug_call *call, const cuplug_tensor *x, const void *from,
                                 void *to, int64_t n, double weight) {
  (void)x, (void)from, (void)to, (void)n, (void)weight;
  return cuplug_failf(call, CUPLUG_ERROR_PLUGIN,
                      "got a build without nvcc, expected one with it; install the CUDA toolkit "
                      "and build again");
}
#else
int spectrum_weigh(const cuplug_call *call, const cuplug_tensor *x, const void *from, void *to,
                   int64_t n, double weight);
#endif

#ifdef __cplusplus
}
#endif

#endif

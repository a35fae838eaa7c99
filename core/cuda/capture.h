/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs under capture. */
#ifndef CUPLUG_CORE_CUDA_CAPTURE_H
#define CUPLUG_CORE_CUDA_CAPTURE_H

#include <cuplug/host.h>

/* What allocates, loads or waits would spoil a graph capture under way in this process, unless this
 * thread's mode is relaxed meanwhile. Declares the mode that is gone back to where the block ends:
 *     CUPLUG__RELAXED mode = cuplug__capture_relax();
 */
#define CUPLUG__RELAXED __attribute__((unused, cleanup(cuplug__capture_restore))) int
int cuplug__capture_relax(void);
void cuplug__capture_restore(const int *mode);
/* Whether work put on a stream becomes part of a graph. Return the driver's code: the legacy stream
 * cannot be asked while a stream that it waits for is captured. */
int cuplug__capture_query(void *stream, int *is_captured);
/* Whether one of two streams is captured and the other not: then no event can order them, and what
 * launches the graph has to. */
int cuplug__capture_parts(void *a, void *b, int *parted);

#endif

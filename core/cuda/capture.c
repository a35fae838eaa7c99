/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA graphs under capture: what a stream does with work put on it, and what this thread may do
 * beside a capture that is under way. */
#include "cuda/capture.h"

#include "cuda/driver.h"

static int exchange(CUstreamCaptureMode mode) {
  cuplug__driver.cuThreadExchangeStreamCaptureMode(&mode);
  return (int)mode;
}

int cuplug__capture_relax(void) { return exchange(CUPLUG__CAPTURE_RELAXED); }

void cuplug__capture_restore(const int *mode) { exchange((CUstreamCaptureMode)*mode); }

int cuplug__capture_query(void *stream, int *is_captured) {
  CUstreamCaptureStatus capture = 0;
  int code = cuplug__driver.cuStreamIsCapturing(stream, &capture);
  *is_captured = !code && capture;
  return code;
}

int cuplug__capture_parts(void *a, void *b, int *parted) {
  int a_is_captured, b_is_captured;
  int code = cuplug__capture_query(a, &a_is_captured);
  int b_code = cuplug__capture_query(b, &b_is_captured);
  *parted = a_is_captured != b_is_captured;
  return *parted ? 0 : code ? code : b_code;
}

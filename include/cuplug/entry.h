/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that an entry calls: errors, arrays, memory, threads. Part of <cuplug/plugin.h>.
 * Functions without the tag [thread-safe] are called on the entry's own thread. */
#ifndef CUPLUG_ENTRY_H
#define CUPLUG_ENTRY_H

#include <cuplug/abi.h>

CUPLUG__BEGIN_C

/** Reports an error: `return cuplug_fail(call, CUPLUG_ERROR_VALUE, "x: got 0, expected ...")`. The
 * text, which is copied, names the argument, the value and the expectation; the host prepends the
 * operator's name. The call then fails, whatever the entry returns. Returns `status`.
 * <cuplug/format.h> has cuplug_failf, which formats. [thread-safe] [no-cuda] */
CUPLUG__MUST_USE static inline int cuplug_fail(const cuplug_call *call, int status,
                                               const char *text) {
  return call->services->fail(call, status, 0, text);
}

/** The dtype of an array as a cuplug_type_id. [thread-safe] [no-cuda] */
static inline uint32_t cuplug_type(const cuplug_tensor *x) {
  return ((uint32_t)x->dtype.code << 24) | ((uint32_t)x->dtype.bits << 16) | x->dtype.lanes;
}

/** The number of elements of an array; 0 for an omitted optional one. [thread-safe] [no-cuda] */
static inline int64_t cuplug_n_elements(const cuplug_tensor *x) {
  uint64_t n =
      x->ndim >= 0; /* unsigned: without elements, the sizes before the 0 may be of any product */
  for (int32_t i = 0; i < x->ndim; i++) n *= (uint64_t)x->shape[i];
  return (int64_t)n;
}

/** Bytes of one element. [thread-safe] [no-cuda] */
static inline int64_t cuplug_element_bytes(const cuplug_tensor *x) {
  return ((int64_t)x->dtype.bits * x->dtype.lanes + 7) / 8;
}

/** Workspace memory on the call's device, at least 256-byte aligned, until the entry returns (on
 * CUDA: until the work on the call's stream is done). NULL if memory ran out: the error record is
 * filled, return CUPLUG_ERROR_MEMORY. Safe under graph capture. [stream-ordered] */
static inline void *cuplug_workspace(const cuplug_call *call, uint64_t bytes) {
  return call->services->workspace(call, bytes);
}

/** Allocates output `tensor` (its number in call->tensors), whose signature has unknown dimensions
 * `?`, with the shape that the entry found (ndim sizes), and sets its `data`. Returns CUPLUG_OK or
 * an error that the entry returns. [stream-ordered] */
CUPLUG__MUST_USE static inline int cuplug_output(const cuplug_call *call, uint32_t tensor,
                                                 const int64_t *shape) {
  return call->services->output(call, tensor, shape);
}

/** Calls body(context, begin, end) for items 0 to n - 1 in ranges of `grain`, the last one shorter,
 * on this thread and on others of the host's. The ranges do not depend on the number of threads;
 * the order in which they run does. A grain is worth a thread from about 10 microseconds on; `n <=
 * grain` is one plain call. A body may fail (cuplug_fail) and may loop in parallel itself; it
 * requests no workspace or output. Returns CUPLUG_OK or the result of a body. [thread-safe] */
CUPLUG__MUST_USE static inline int cuplug_parallel(const cuplug_call *call, int64_t n,
                                                   int64_t grain, cuplug_body *body,
                                                   void *context) {
  if (n > grain) return call->services->parallel(call, n, grain, body, context);
  return n > 0 ? body(context, 0, n) : CUPLUG_OK;
}

/** How many threads such a loop runs on at most, this one included: to choose between ways whose
 * results are the same. [thread-safe] */
static inline int cuplug_n_threads(const cuplug_call *call) {
  return call->services->threads(call);
}

/** Whether to continue, for an entry that takes seconds on the host: CUPLUG_OK, or
 * CUPLUG_ERROR_CANCELLED, which the entry returns soon; the error is reported. In Python, Ctrl-C
 * arrives here. */
CUPLUG__MUST_USE static inline int cuplug_interrupted(const cuplug_call *call) {
  return call->services->interrupted(call);
}

/** Another stream of the call's GPU (CUstream or cudaStream_t), for work concurrent with that of
 * call->stream: it waits for the current work on call->stream, workspaces included, and
 * call->stream waits for it when the entry returns, whatever it returns. Later calls return the
 * same stream, which then waits for the work put on call->stream in the meantime. NULL on failure:
 * the error is reported, return CUPLUG_ERROR_CUDA. Safe under graph capture. [stream-ordered] */
static inline void *cuplug_second_stream(const cuplug_call *call) {
  return call->services->second_stream(call);
}

/** A property of the call's GPU by its CUdevice_attribute, 16 for the number of multiprocessors.
 * Returns CUPLUG_OK or an error that the entry returns. [thread-safe] */
CUPLUG__MUST_USE static inline int cuplug_device_attribute(const cuplug_call *call,
                                                           int32_t attribute, int64_t *value) {
  return call->services->device_attribute(call, attribute, value);
}

/** Sets the result of an operator `-> handle[tag]`, which is not NULL. From then on the host owns
 * it: it calls the function of CUPLUG_CLOSE, even if the entry fails afterwards. Returns CUPLUG_OK
 * or an error that the entry returns. */
CUPLUG__MUST_USE static inline int cuplug_set_handle(const cuplug_call *call, void *handle) {
  return call->services->set_handle(call, handle);
}

CUPLUG__END_C

#endif

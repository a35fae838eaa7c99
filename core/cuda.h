/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA driver, opened at run time: devices, contexts, streams, events, fault records.
 * No header of the CUDA toolkit is needed: driver.h declares the few types of it. */
#ifndef CUPLUG_CORE_CUDA_H
#define CUPLUG_CORE_CUDA_H

#include <cuplug/host.h>

/* The legacy default stream by its explicit name, for callers that say NULL. */
#define CUPLUG__STREAM(stream) ((stream) ? (stream) : (void *)1)
/* Handles up to this one name a default stream of whichever GPU is current. */
#define CUPLUG__LAST_DEFAULT_STREAM 2

/* Starts the driver once. After that one atomic load. Refuses in a child forked after the start. */
int cuplug__cuda_start(cuplug_error *error);

/* ERROR_VALUE unless there is a GPU of that number; the driver has been started. */
int cuplug__cuda_check_device(int32_t device, cuplug_error *error);

/* Makes the primary context of `device` current, unless it is; *previous is for cuda_leave. */
int cuplug__cuda_enter(int32_t device, void **previous, cuplug_error *error);
void cuplug__cuda_leave(void *previous, int32_t device);

/* 1 when the GPU can run code for one of the capabilities in "750,800", as machine code or as PTX.
 */
int cuplug__cuda_can_run(int32_t device, const char *architectures, int32_t *capability);

/* Fills the record from a driver or runtime error code: name, text and what to do about it; for a
 * sticky error, that the process must be restarted, and after which operator it was seen first.
 * Running out of memory is ERROR_MEMORY. Returns the status. */
int cuplug__cuda_fail(cuplug_error *error, int code, const char *doing);
/* The same without what to do about it: for an entry, whose record gets that when it returns. */
int cuplug__cuda_report(cuplug_error *error, int code, const char *doing);
/* cuda_fail unless `code` is 0. */
int cuplug__cuda_check(cuplug_error *error, int code, const char *doing);
/* Appends what to do about `code` to the message that a plugin has already made of it. */
void cuplug__cuda_explain(cuplug_error *error, int code);
/* Remembers the operator launched last, to be named with a sticky error. */
void cuplug__cuda_note_launch(const char *name);
/* Remembers that `code`, seen after operator `name`, made the context unusable, if it is sticky:
 * cuda_enter then refuses. Operator names are borrowed for ever. */
void cuplug__cuda_note_sticky(int code, const char *name);

/* A fault record for calls of one overload, in pinned memory mapped to host and devices; never
 * freed. `name` names the operator in the report. The strings are borrowed for ever, the array of
 * them is copied. A device has been entered. */
int cuplug__fault_record(const char *name, const char *const *tensor_names, uint32_t n_tensors,
                         cuplug_fault **fault, cuplug_error *error);
/* A record that fault_take_any leaves alone, for one call at a time: named before each by
 * fault_rename, and given back. */
int cuplug__fault_private(cuplug_fault **fault, cuplug_error *error);
void cuplug__fault_rename(cuplug_fault *fault, const char *name, const char *const *tensor_names,
                          uint32_t n_tensors);
void cuplug__fault_release(cuplug_fault *fault);

/* Reports and clears the fault of one record; of any record (one word is read when there is none).
 */
int cuplug__fault_take(cuplug_fault *fault, cuplug_error *error);
int cuplug__fault_take_any(cuplug_error *error);

/* What allocates, loads or waits would spoil a graph capture under way in this process, unless this
 * thread's mode is relaxed meanwhile: both return the mode to go back to. */
int cuplug__capture_relax(void);
int cuplug__capture_exchange(int mode);
/* Whether work put on a stream becomes part of a graph. Return the driver's code: the legacy stream
 * cannot be asked while a stream that it waits for is captured. */
int cuplug__capture_query(void *stream, int *is_captured);
/* Whether one of two streams is captured and the other not: then no event can order them, and what
 * launches the graph has to. */
int cuplug__capture_parts(void *a, void *b, int *parted);

/* Blocks or orders; `device` has been entered. Streams of which one alone is captured are left as
 * they are. */
int cuplug__stream_synchronize(void *stream, cuplug_error *error);
int cuplug__stream_wait(void *waiting, void *stream, cuplug_error *error);

#endif

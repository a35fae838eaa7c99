/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and events that Python users create. */
#include "base/core.h"

#include <runtime/streams.h>

int cuplug_make_stream(int32_t device, int is_non_blocking, int32_t priority, void **stream,
                       cuplug_error *error) {
  CUstream made = NULL;
  ENTER_OR_RETURN(device, error);
  int code = core->driver->cuStreamCreateWithPriority(
      &made, is_non_blocking ? CUPLUG__STREAM_NON_BLOCKING : 0, priority);
  *stream = made;
  return core->cuda_check(error, code, "making a stream");
}

int cuplug_free_stream(int32_t device, void *stream, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  return core->cuda_check(error, core->driver->cuStreamDestroy(stream), "freeing a stream");
}

int cuplug_make_event(int32_t device, int has_time, void **event, cuplug_error *error) {
  CUevent made = NULL;
  ENTER_OR_RETURN(device, error);
  int code = core->driver->cuEventCreate(&made, has_time ? 0 : CUPLUG__EVENT_NO_TIMING);
  *event = made;
  return core->cuda_check(error, code, "making an event");
}

int cuplug_free_event(int32_t device, void *event, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  return core->cuda_check(error, core->driver->cuEventDestroy(event), "freeing an event");
}

int cuplug_record_event(int32_t device, void *event, void *stream, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  return core->cuda_check(error, core->driver->cuEventRecord(event, CUPLUG__STREAM(stream)),
                          "recording an event");
}

int cuplug_wait_for_event(int32_t device, void *stream, void *event, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  return core->cuda_check(error, core->driver->cuStreamWaitEvent(CUPLUG__STREAM(stream), event, 0),
                          "having a stream wait for an event");
}

int cuplug_synchronize_event(int32_t device, void *event, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  int code = core->driver->cuEventSynchronize(event);
  int status = core->cuda_check(error, code, "waiting for an event");
  return status ? status : core->calls_check(error);
}

int cuplug_query_work(int32_t device, void *stream, void *event, int32_t *is_done,
                      cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  int code = event ? (int)core->driver->cuEventQuery(event)
                   : (int)core->driver->cuStreamQuery(CUPLUG__STREAM(stream));
  *is_done = !code;
  if (code == CUPLUG__CU_NOT_READY) return CUPLUG_OK;
  return core->cuda_check(error, code, "asking whether work is done");
}

int cuplug_elapsed_time(int32_t device, void *start, void *end, float *milliseconds,
                        cuplug_error *error) {
  *milliseconds = 0;
  ENTER_OR_RETURN(device, error);
  int code = core->driver->cuEventElapsedTime(milliseconds, start, end);
  if (code == CUPLUG__CU_NOT_READY)
    return core->fail(error, CUPLUG_ERROR_VALUE,
                      "elapsed_time: got an event whose work is not done, expected one that was "
                      "waited for");
  return core->cuda_check(error, code, "asking for the time between two events");
}

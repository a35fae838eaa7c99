/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer.h"

#include "cuda.h"
#include "driver.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static CUdeviceptr device_address(const void *pointer, uint64_t offset) {
  return (CUdeviceptr)(uintptr_t)pointer + offset;
}

/* The chunk goes out of the lane's buffer k, when the last copy from or to that is done. */
static int send_chunk(cuplug__lane *lane, int k, CUdeviceptr to, const char *from, uint64_t bytes) {
  int code = cuplug__driver.cuEventSynchronize(lane->events[k]);
  if (code) return code;
  memcpy(lane->pinned[k], from, bytes);
  code = cuplug__driver.cuMemcpyHtoDAsync(to, lane->pinned[k], bytes, lane->stream);
  return code ? code : (int)cuplug__driver.cuEventRecord(lane->events[k], lane->stream);
}

static int request_chunk(cuplug__lane *lane, int k, CUdeviceptr from, uint64_t bytes) {
  int code = cuplug__driver.cuMemcpyDtoHAsync(lane->pinned[k], from, bytes, lane->stream);
  return code ? code : (int)cuplug__driver.cuEventRecord(lane->events[k], lane->stream);
}

static int receive_chunk(cuplug__lane *lane, int k, char *to, uint64_t bytes) {
  int code = cuplug__driver.cuEventSynchronize(lane->events[k]);
  if (!code) memcpy(to, lane->pinned[k], bytes);
  return code;
}

/* After an error a copy may be in flight that no event covers. */
static int finish(cuplug__lane *lane, int code, const char *doing, cuplug_error *error) {
  if (!code) return CUPLUG_OK;
  cuplug__driver.cuStreamSynchronize(lane->stream);
  return cuplug__cuda_fail(error, code, doing);
}

int cuplug__to_device(cuplug__lane *lane, void *to, const void *from, uint64_t bytes,
                      cuplug_error *error) {
  int code = 0, k = 0;
  if (!bytes) return CUPLUG_OK;
  int status = cuplug__lane_pin(lane, bytes, error);
  if (status) return status;
  for (uint64_t at = 0; at < bytes && !code; at += lane->pinned_bytes, k ^= 1)
    code = send_chunk(lane, k, device_address(to, at), (const char *)from + at,
                      least(lane->pinned_bytes, bytes - at));
  return finish(lane, code, "copying to the device", error);
}

/* While one chunk is copied out of its pinned buffer the next arrives in the other. */
int cuplug__to_host(cuplug__lane *lane, void *to, const void *from, uint64_t bytes,
                    cuplug_error *error) {
  int k = 0;
  if (!bytes) return CUPLUG_OK;
  int status = cuplug__lane_pin(lane, bytes, error);
  if (status) return status;
  const uint64_t step = lane->pinned_bytes;
  int code = request_chunk(lane, 0, device_address(from, 0), least(step, bytes));
  for (uint64_t at = 0; at < bytes && !code; at += step, k ^= 1) {
    uint64_t left = bytes - at;
    if (left > step)
      code = request_chunk(lane, k ^ 1, device_address(from, at + step), least(step, left - step));
    if (!code) code = receive_chunk(lane, k, (char *)to + at, least(step, left));
  }
  return finish(lane, code, "copying to the host", error);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that Python users capture and launch. */
#include "base/status.h"
#include "cuda/context.h"
#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/fault.h"
#include "cuda/stream.h"

#include <internal/streams.h>

/* Relaxed: what others allocate or load in the meantime does no harm to what is captured. */
int cuplug_begin_capture(int32_t device, void *stream, cuplug_error *error) {
  cuplug__clear(error);
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error);
  if (context.status) return context.status;
  int code = cuplug__driver.cuStreamBeginCapture(stream, CUPLUG__CAPTURE_RELAXED);
  return cuplug__cuda_check(error, code, "capturing a graph");
}

int cuplug_end_capture(int32_t device, void *stream, void **graph, cuplug_error *error) {
  CUgraph captured = NULL;
  CUgraphExec made = NULL;
  cuplug__clear(error);
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error);
  if (context.status) return context.status;
  int code = cuplug__driver.cuStreamEndCapture(stream, &captured);
  if (!code && graph) code = cuplug__driver.cuGraphInstantiate(&made, captured, 0);
  if (captured) cuplug__driver.cuGraphDestroy(captured);
  if (graph) *graph = made;
  return cuplug__cuda_check(error, code, "capturing a graph");
}

int cuplug_launch_graph(int32_t device, void *graph, void *stream, cuplug_error *error) {
  int status = cuplug__fault_take_any(error);
  if (status) return status;
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error);
  if (context.status) return context.status;
  int code = cuplug__driver.cuGraphLaunch(graph, CUPLUG__STREAM(stream));
  return cuplug__cuda_check(error, code, "launching a graph");
}

int cuplug_free_graph(int32_t device, void *graph, cuplug_error *error) {
  cuplug__clear(error);
  CUPLUG__ENTERED context = cuplug__cuda_enter(device, error);
  if (context.status) return context.status;
  return cuplug__cuda_check(error, cuplug__driver.cuGraphExecDestroy(graph), "freeing a graph");
}

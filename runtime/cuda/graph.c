/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that Python users capture and launch. */
#include "base/core.h"

#include <runtime/streams.h>

/* Relaxed: allocations and loads by other threads do not invalidate the capture. */
int cuplug_begin_capture(int32_t device, void *stream, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  int code = core->driver->cuStreamBeginCapture(stream, CUPLUG__CAPTURE_RELAXED);
  return core->cuda_check(error, code, "capturing a graph");
}

int cuplug_end_capture(int32_t device, void *stream, void **graph, cuplug_error *error) {
  CUgraph captured = NULL;
  CUgraphExec made = NULL;
  ENTER_OR_RETURN(device, error);
  int code = core->driver->cuStreamEndCapture(stream, &captured);
  if (!code && graph) code = core->driver->cuGraphInstantiate(&made, captured, 0);
  if (captured) core->driver->cuGraphDestroy(captured);
  core->calls_again(stream);
  if (graph) *graph = made;
  return core->cuda_check(error, code, "capturing a graph");
}

int cuplug_launch_graph(int32_t device, void *graph, const void *captured_on, void *stream,
                        cuplug_error *error) {
  int status = core->calls_check(error);
  if (status) return status;
  core->calls_again(captured_on);
  ENTERED context = core->cuda_enter(device, error);
  if (context.status) return context.status;
  int code = core->driver->cuGraphLaunch(graph, CUPLUG__STREAM(stream));
  return core->cuda_check(error, code, "launching a graph");
}

int cuplug_free_graph(int32_t device, void *graph, cuplug_error *error) {
  ENTER_OR_RETURN(device, error);
  return core->cuda_check(error, core->driver->cuGraphExecDestroy(graph), "freeing a graph");
}

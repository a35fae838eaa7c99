/* SPDX-License-Identifier: Apache-2.0 */
/* Operators that do nothing: what is timed is the call, with all its checks. */
#include <cuplug/plugin.h>

CUPLUG_ENTRY int noop_host(const cuplug_call *call) {
  (void)call;
  return CUPLUG_OK;
}

CUPLUG_PLUGIN(
    noop, "1.0.0", CUPLUG_HOST_OPERATOR(noop_host, "noop1(a: float32[n])", "Nothing, 1 array."),
    CUPLUG_HOST_OPERATOR(noop_host, "noop3(a: float32[n], b: float32[n], c: float32[n])",
                         "Nothing, 3 arrays."),
    CUPLUG_HOST_OPERATOR(noop_host, "noop_out(a: float32[n], b: float32[n]) -> float32[n]",
                         "Nothing, 2 arrays and an output."),
    CUPLUG_HOST_OPERATOR(noop_host, "brief3(a: float32[n], b: float32[n], c: float32[n])",
                         "Nothing, 3 arrays, with Python's lock held.", CUPLUG_NEVER_WAITS),
    CUPLUG_HOST_OPERATOR(noop_host, "brief_out(a: float32[n], b: float32[n]) -> float32[n]",
                         "Nothing, 2 arrays and an output, with Python's lock held.",
                         CUPLUG_NEVER_WAITS),
    CUPLUG_HOST_OPERATOR(noop_host,
                         "noop_scaled(a: float32[n], b: float32[n], c: float32[n], "
                         "factor: float32 = 1.0, mode: \"raise\" | \"wrap\" = \"raise\")",
                         "Nothing, 3 arrays, a scalar and a choice."),
    CUPLUG_HOST_OPERATOR(noop_host,
                         "noop8(a: float32[n], b: float32[n], c: float32[n], d: float32[n], "
                         "e: float32[n], f: float32[n], g: float32[n], h: float32[n])",
                         "Nothing, 8 arrays."),
    CUPLUG_HOST_OPERATOR(noop_host,
                         "noop14(a: float32[n], b: float32[n], c: float32[n], d: float32[n], "
                         "e: float32[n], f: float32[n], g: float32[n], h: float32[n], "
                         "i: float32[n], j: float32[n], k: float32[n], l: float32[n], "
                         "m: float32[n], o: float32[n])",
                         "Nothing, 14 arrays."))

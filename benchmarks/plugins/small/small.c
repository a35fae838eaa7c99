/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin that discovery.py copies; each copy gets a number of its own in place of p0000. */
#include <cuplug/plugin.h>

CUPLUG_ENTRY int copy_host(const cuplug_call *call) {
  (void)call;
  return CUPLUG_OK;
}

CUPLUG_PLUGIN(p0000, "1.0.0",
              CUPLUG_HOST_OPERATOR(copy_host, "p0000(x: float32[...]) -> float32[...]", "A copy."))

/* SPDX-License-Identifier: Apache-2.0 */
/* hello(): prints one line, from the host or from a kernel. It is the only operator that prints. */
#include <cuplug/plugin.h>
#include <stdio.h>

CUPLUG_ENTRY int hello_cuda(const cuplug_call *call);

CUPLUG_ENTRY int hello_host(const cuplug_call *call) {
  (void)call;
  puts("hello from the host");
  fflush(stdout);
  return CUPLUG_OK;
}

CUPLUG_OPERATOR(hello_cuda, hello_host, "hello()", "Prints a line on the device that runs it.");
CUPLUG_PLUGIN(hello, "1.0.0");

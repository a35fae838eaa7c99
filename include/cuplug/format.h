/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts with values in them, for entries in C and C++. No part of the ABI. */
#ifndef CUPLUG_FORMAT_H
#define CUPLUG_FORMAT_H

#include <cuplug/plugin.h>
#include <stdarg.h>
#include <stdio.h>

#if defined(__GNUC__)
#define CUPLUG__PRINTF __attribute__((format(printf, 3, 4)))
#else
#define CUPLUG__PRINTF
#endif

/** `return cuplug_failf(call, CUPLUG_ERROR_VALUE, "x: seen %g, wanted ...", x)`: cuplug_fail with
 * what printf makes of the arguments, cut after 1,023 bytes. [thread-safe] [no-cuda] */
CUPLUG__MUST_USE CUPLUG__PRINTF static inline int cuplug_failf(const cuplug_call *call, int status,
                                                               const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  return cuplug_fail(call, status, text);
}

#endif

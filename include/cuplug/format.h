/* SPDX-License-Identifier: Apache-2.0 */
/* Error texts with values in them, for entries in C and C++. No part of the ABI. */
#ifndef CUPLUG_FORMAT_H
#define CUPLUG_FORMAT_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cuplug/entry.h>

#if defined(__GNUC__)
#define CUPLUG__PRINTF __attribute__((format(printf, 3, 4)))
#else
#define CUPLUG__PRINTF
#endif

/** `return cuplug_failf(call, CUPLUG_ERROR_VALUE, "x: got %g, expected ...", x)`: cuplug_fail with
 * what printf makes of the arguments; of more than 1,023 bytes it ends with "...". [thread-safe]
 * [no-cuda] */
CUPLUG__MUST_USE CUPLUG__PRINTF static inline int cuplug_failf(const cuplug_call *call, int status,
                                                               const char *format, ...) {
  char text[1024];
  va_list list;
  va_start(list, format);
  const int n_bytes = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (n_bytes >= (int)sizeof text) {
    char *end = text + sizeof text - 4;
    while (end > text && ((unsigned char)*end & 0xC0) == 0x80) end--; /* no half characters */
    memcpy(end, "...", 4);
  }
  return cuplug_fail(call, status, text);
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Error records: filled here, never allocated. */
#ifndef CUPLUG_CORE_BASE_STATUS_H
#define CUPLUG_CORE_BASE_STATUS_H

#include <cuplug/host.h>
#include <stdarg.h>

#define CUPLUG__FORMAT(string, first) __attribute__((format(printf, string, first)))
/* For code of failed calls only: compilers place it apart from other code. */
#define CUPLUG__COLD __attribute__((cold))

/* vsnprintf as in the C locale, whose decimal point is a point. */
CUPLUG__FORMAT(3, 0) int cuplug__print(char *text, size_t room, const char *format, va_list list);

/* Empties a record; NULL is accepted. */
static inline void cuplug__clear(cuplug_error *error) {
  if (!error) return;
  error->status = CUPLUG_OK;
  error->cuda_code = 0;
  error->message_bytes = sizeof(error->message);
  error->reserved = 0;
  error->message[0] = 0;
}

/* Fills a record (NULL is accepted; a long message is cut with "...") and returns `status`. */
CUPLUG__COLD CUPLUG__FORMAT(3, 4) int cuplug__fail(cuplug_error *error, int status,
                                                   const char *format, ...);

/* The same with ERROR_PLUGIN. */
#define cuplug__reject(error, ...) cuplug__fail(error, CUPLUG_ERROR_PLUGIN, __VA_ARGS__)

/* "out of memory while ...", as ERROR_MEMORY. */
int cuplug__no_memory(cuplug_error *error, const char *doing);

/* Puts text before, or appends it to, the message of a filled record. */
CUPLUG__FORMAT(2, 3) void cuplug__prefix(cuplug_error *error, const char *format, ...);
CUPLUG__FORMAT(2, 3) void cuplug__append(cuplug_error *error, const char *format, ...);

/* ---- Structures of programs ------------------------------------------------------------------ */

/* Copies `from`, of `bytes` bytes, to a structure of a program, up to its size, and sets the copied
 * size. `first_bytes`: the size in the first version of the library. ERROR_VALUE names the
 * structure if it has not set its size. */
int cuplug__struct_give(void *to, const void *from, uint32_t bytes, uint32_t first_bytes,
                        const char *name, cuplug_error *error);

/* Copies a structure that a program has filled to `to`; fields that the program lacks are 0.
 * ERROR_VALUE also if a field that this library lacks is set. */
int cuplug__struct_take(void *to, uint32_t bytes, uint32_t first_bytes, const void *from,
                        const char *name, cuplug_error *error);

#endif

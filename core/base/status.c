/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

const char *cuplug_version(void) { return CUPLUG_VERSION; }

const char *cuplug_status_name(int status) {
  switch (status) {
#define CUPLUG__X(name, value, meaning) \
  case value:                           \
    return #name;
    CUPLUG_STATUS_LIST(CUPLUG__X)
#undef CUPLUG__X
  default:
    return NULL;
  }
}

int cuplug__print(char *text, size_t room, const char *format, va_list list) {
  const locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
  const int n = vsnprintf(text, room, format, list);
  uselocale(before);
  if (plain) freelocale(plain);
  return n;
}

/* Shows that a message was cut, without leaving half of a UTF-8 character. */
static void mark_truncated(cuplug_error *error) {
  char *at = error->message + sizeof(error->message) - sizeof("...");
  while (at > error->message && (*at & 0xC0) == 0x80) at--;
  strcpy(at, "...");
}

CUPLUG__FORMAT(3, 0)
static void print_at(cuplug_error *error, size_t at, const char *format, va_list list) {
  size_t room = sizeof(error->message) - at;
  int n = cuplug__print(error->message + at, room, format, list);
  if (n < 0) error->message[at] = 0;
  if (n >= 0 && (size_t)n >= room) mark_truncated(error);
}

int cuplug__fail(cuplug_error *error, int status, const char *format, ...) {
  if (!error) return status;
  va_list list;
  cuplug__clear(error);
  error->status = status;
  va_start(list, format);
  print_at(error, 0, format, list);
  va_end(list);
  return status;
}

int cuplug__no_memory(cuplug_error *error, const char *doing) {
  return cuplug__fail(error, CUPLUG_ERROR_MEMORY, "out of memory while %s", doing);
}

void cuplug__prefix(cuplug_error *error, const char *format, ...) {
  if (!error) return;
  char tail[sizeof(error->message)];
  va_list list;
  memcpy(tail, error->message, sizeof(tail));
  tail[sizeof(tail) - 1] = 0;
  va_start(list, format);
  print_at(error, 0, format, list);
  va_end(list);
  cuplug__append(error, "%s", tail);
}

void cuplug__append(cuplug_error *error, const char *format, ...) {
  if (!error) return;
  va_list list;
  va_start(list, format);
  print_at(error, strnlen(error->message, sizeof(error->message) - 1), format, list);
  va_end(list);
}

/* ---- Structures of programs ------------------------------------------------------------------ */

static uint32_t size_of(const void *structure) {
  uint32_t bytes;
  memcpy(&bytes, structure, sizeof bytes);
  return bytes;
}

static int check_size(uint32_t seen, uint32_t wanted, const char *name, cuplug_error *error) {
  if (seen >= wanted) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "struct_bytes: got %u, expected sizeof(%s) (at least %u)", seen, name,
                      wanted);
}

int cuplug__struct_give(void *to, const void *from, uint32_t bytes, uint32_t first_bytes,
                        const char *name, cuplug_error *error) {
  const uint32_t room = size_of(to), filled = room < bytes ? room : bytes;
  int status = check_size(room, first_bytes, name, error);
  if (status) return status;
  memcpy(to, from, filled);
  memcpy(to, &filled, sizeof filled);
  return CUPLUG_OK;
}

int cuplug__struct_take(void *to, uint32_t bytes, uint32_t first_bytes, const void *from,
                        const char *name, cuplug_error *error) {
  const uint32_t given = size_of(from);
  const char *at = from;
  int status = check_size(given, first_bytes, name, error);
  if (status) return status;
  for (uint32_t k = bytes; k < given; k++)
    if (at[k])
      return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                          "%s: got a nonzero field after byte %u, expected zeros (this version of "
                          "the library does not know it)",
                          name, bytes);
  memset(to, 0, bytes);
  memcpy(to, from, given < bytes ? given : bytes);
  return CUPLUG_OK;
}

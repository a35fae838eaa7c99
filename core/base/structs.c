/* SPDX-License-Identifier: Apache-2.0 */
#include "base/structs.h"

#include "base/status.h"

#include <string.h>

static uint32_t size_of(const void *structure) {
  uint32_t bytes;
  memcpy(&bytes, structure, sizeof bytes);
  return bytes;
}

static int check_size(uint32_t seen, uint32_t wanted, const char *name, cuplug_error *error) {
  if (seen >= wanted) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "struct_bytes: got %u, expected sizeof(%s), which is %u at least", seen, name,
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
                          "%s: got a field behind byte %u, which this version of the library does "
                          "not know, expected zeros there",
                          name, bytes);
  memset(to, 0, bytes);
  memcpy(to, from, given < bytes ? given : bytes);
  return CUPLUG_OK;
}

/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Structures that grow: a program and a library of different versions read and write only fields
 * that both have. */
#include "base/status.h"
#include "check.h"

typedef struct first {
  uint32_t struct_bytes, a;
} first;

typedef struct second {
  uint32_t struct_bytes, a, b, c;
} second;

static cuplug_error error;

static int give(void *to, uint32_t bytes) {
  const second from = {99, 1, 2, 3};
  return cuplug__struct_give(to, &from, bytes, sizeof(first), "thing", &error);
}

static void check_give(void) {
  struct {
    first known;
    uint32_t behind;
  } old = {{sizeof(first), 0}, 7};
  second same = {.struct_bytes = sizeof same}, newer = {.struct_bytes = sizeof newer, .c = 7};
  CHECK(!give(&old, sizeof(second)));
  CHECK(old.known.struct_bytes == sizeof(first) && old.known.a == 1 && old.behind == 7);
  CHECK(!give(&same, sizeof(second)) && same.struct_bytes == sizeof same && same.c == 3);
  CHECK(!give(&newer, sizeof(first)) && newer.struct_bytes == sizeof(first));
  CHECK(newer.a == 1 && newer.b == 0 && newer.c == 7);
  same.struct_bytes = 0, same.a = 5;
  CHECK(give(&same, sizeof(second)) == CUPLUG_ERROR_VALUE && same.a == 5);
  CHECK_TEXT(error.message, "struct_bytes: got 0, expected sizeof(thing) (at least 8)");
}

static int take(void *to, uint32_t bytes, const void *from) {
  return cuplug__struct_take(to, bytes, sizeof(first), from, "thing", &error);
}

static void check_take(void) {
  const first old = {sizeof old, 1};
  second newer = {.struct_bytes = sizeof newer, .a = 1};
  second seen = {9, 9, 9, 9};
  first less;
  CHECK(!take(&seen, sizeof seen, &old) && seen.a == 1 && seen.b == 0 && seen.c == 0);
  CHECK(!take(&less, sizeof less, &newer) && less.a == 1);
  newer.c = 1;
  CHECK(take(&less, sizeof less, &newer) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "thing: got a nonzero field after byte 8, expected zeros (this version "
                            "of the library does not know it)");
  newer.struct_bytes = 4;
  CHECK(take(&seen, sizeof seen, &newer) == CUPLUG_ERROR_VALUE);
}

int main(void) {
  check_give();
  check_take();
  return n_failed != 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One operator whose overloads a test chooses, and its bound calls. */
#ifndef BOUND_CALLS_H
#define BOUND_CALLS_H

#include "check.h"
#include "registry/plugin.h"

#include <stdlib.h>

static cuplug_overload rows[2];
static cuplug__callable overloads[2];
static cuplug_operator op = {.name = "op", .overloads = overloads, .loaded = 1};
static cuplug_frame frame;
static cuplug_error error;

static void use(const char *first, const char *second, uint32_t flags) {
  const char *texts[] = {first, second};
  free(op.rows);
  op.rows = NULL, op.n_overloads = second ? 2 : 1;
  for (uint32_t k = 0; k < op.n_overloads; k++) {
    rows[k].flags = flags;
    rows[k].host_entry = rows[k].cuda_entry = "";
    cuplug_free_signature(rows[k].parsed);
    if (cuplug_parse_signature(texts[k], &rows[k].parsed, NULL, &error))
      fprintf(stderr, "%s\n", error.message), n_failed++;
    overloads[k] = (cuplug__callable){0};
    cuplug__make_overload(&overloads[k], &rows[k]);
  }
  CHECK(!cuplug__overloads_make(&op, &error));
}

/* An array of a dtype (a cuplug_type_id) on the host. Its shape ends with a negative number. */
static char memory[1 << 16];
static cuplug_argument array(uint32_t type, int64_t *shape) {
  cuplug_argument a = {.kind = CUPLUG_ARGUMENT_ARRAY};
  a.tensor.data = memory;
  a.tensor.device.type = CUPLUG_CPU;
  a.tensor.dtype = (cuplug_dtype){(uint8_t)(type >> 24), (uint8_t)(type >> 16), (uint16_t)type};
  while (shape[a.tensor.ndim] >= 0) a.tensor.ndim++;
  a.tensor.shape = shape;
  return a;
}
#define ARRAY(type, ...) array(CUPLUG_##type, (int64_t[]){__VA_ARGS__ - 1})
#define SIZES(...) __VA_ARGS__,

static int bind(cuplug_argument *args, uint32_t n) {
  return cuplug_bind(&op, args, n, &frame, &error);
}

__attribute__((unused)) static void refused(cuplug_argument *args, uint32_t n, int status,
                                            const char *message) {
  CHECK(bind(args, n) == status);
  CHECK_TEXT(error.message, message);
  CHECK(cuplug_bind(&op, args, n, &frame, NULL) == status);
}

#endif

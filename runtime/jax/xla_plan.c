/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of attributes to arguments. They come from our own tracing or from a stored program,
 * so they are checked. */
#include "jax/xla_plan.h"

#include "base/core.h"

#include <runtime/xla.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t this_process;

void cuplug_xla_begin(uint64_t process) { atomic_store(&this_process, process); }

uint32_t cuplug__xla_dtype(int32_t number) {
  switch (number) {
#define X(theirs, ours) \
  case theirs:          \
    return ours;
    CUPLUG__XLA_DTYPES(X)
#undef X
  }
  return 0;
}

/* ---- Numbers, in the machine's byte order: the lowest byte is first -------------------------- */

static uint64_t read_bits(const void *value, uint32_t bits) {
  uint64_t x = 0;
  memcpy(&x, value, bits / 8);
  return x;
}

static int64_t read_signed(const void *value, uint32_t bits) {
  return (int64_t)(read_bits(value, bits) << (64 - bits)) >> (64 - bits);
}

static double read_floating(const void *value, uint32_t bits) {
  float narrow;
  double wide;
  memcpy(&narrow, value, sizeof narrow);
  if (bits == 32) return (double)narrow;
  memcpy(&wide, value, sizeof wide);
  return wide;
}

static cuplug_argument read_complex(const void *value, uint32_t bits) {
  const char *parts = value;
  return cuplug_complex(read_floating(parts, bits / 2), read_floating(parts + bits / 16, bits / 2));
}

int cuplug__xla_read_number(int32_t dtype, const void *value, cuplug_argument *argument,
                            cuplug_error *error) {
  const uint32_t id = cuplug__xla_dtype(dtype), bits = id >> 16 & 255;
  switch (id) {
  case CUPLUG_BOOL:
    return *argument = cuplug_bool(read_bits(value, bits) != 0), CUPLUG_OK;
  case CUPLUG_INT8:
  case CUPLUG_INT16:
  case CUPLUG_INT32:
  case CUPLUG_INT64:
    return *argument = cuplug_int(read_signed(value, bits)), CUPLUG_OK;
  case CUPLUG_UINT8:
  case CUPLUG_UINT16:
  case CUPLUG_UINT32:
  case CUPLUG_UINT64:
    return *argument = cuplug_uint(read_bits(value, bits)), CUPLUG_OK;
  case CUPLUG_FLOAT32:
  case CUPLUG_FLOAT64:
    return *argument = cuplug_float(read_floating(value, bits)), CUPLUG_OK;
  case CUPLUG_COMPLEX64:
  case CUPLUG_COMPLEX128:
    return *argument = read_complex(value, bits), CUPLUG_OK;
  }
  return core->fail(error, CUPLUG_ERROR_TYPE,
                    "got a number of XLA's type %d, expected a dtype of cuplug", dtype);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

/* The unread rest. */
typedef struct reader {
  const cuplug__xla_attributes *attributes;
  int64_t next_value; /* attributes are sorted by name, so values are consecutive */
  char *texts;        /* memory for strings */
  uint32_t n_numbers;
  cuplug__xla_plan *plan;
  cuplug_error *error;
} reader;

static int damaged(cuplug_error *error, const char *what) {
  return core->fail(error, CUPLUG_ERROR_VALUE, "cuplug: a call in an XLA program is damaged: %s",
                    what);
}

static int is_called(const cuplug__xla_span *name, const char *wanted) {
  return name->n == strlen(wanted) && !memcmp(name->text, wanted, name->n);
}

/* Returns the value of an attribute of a kind; NULL if absent. */
static const void *find(const cuplug__xla_attributes *a, const char *name, int32_t kind) {
  for (int64_t k = 0; k < a->n; k++)
    if (is_called(a->names[k], name)) return a->kinds[k] == kind ? a->values[k] : NULL;
  return NULL;
}

static uint64_t find_number(const cuplug__xla_attributes *a, const char *name) {
  const cuplug__xla_scalar *x = find(a, name, CUPLUG__XLA_SCALAR);
  const uint32_t id = x ? cuplug__xla_dtype(x->dtype) : 0;
  return id == CUPLUG_INT64 || id == CUPLUG_UINT64 ? read_bits(x->value, 64) : 0;
}

static int find_operator(const cuplug__xla_attributes *a, cuplug_operator **op,
                         cuplug_error *error) {
  char text[2 * CUPLUG_MAX_NAME + 2];
  const cuplug__xla_span *name = find(a, "operator", CUPLUG__XLA_STRING);
  const uint64_t address = find_number(a, "address");
  if (address && find_number(a, "process") == atomic_load(&this_process)) {
    *op = (cuplug_operator *)(uintptr_t)address;
    return CUPLUG_OK;
  }
  if (address)
    return core->fail(error, CUPLUG_ERROR_NOT_FOUND,
                      "cuplug: got a program with an operator that another process created from "
                      "source, expected one of a plugin, which is found by its name");
  if (!name || name->n >= sizeof text) return damaged(error, "it names no operator");
  memcpy(text, name->text, name->n);
  text[name->n] = 0;
  return cuplug_find(text, op, error);
}

static uint64_t bytes_of_texts(const cuplug__xla_attributes *a) {
  uint64_t bytes = 0;
  for (int64_t k = 0; k < a->n; k++)
    if (a->kinds[k] == CUPLUG__XLA_STRING) bytes += ((const cuplug__xla_span *)a->values[k])->n + 1;
  return bytes;
}

static void read_text(reader *r, const cuplug__xla_span *span, cuplug_argument *argument) {
  memcpy(r->texts, span->text, span->n);
  r->texts[span->n] = 0;
  *argument = cuplug_string(r->texts);
  r->texts += span->n + 1;
}

static int read_numbers(reader *r, const cuplug__xla_array *x, cuplug_argument *argument) {
  cuplug_argument *items = &r->plan->numbers[r->n_numbers];
  const uint32_t id = cuplug__xla_dtype(x->dtype), n_bytes = (id >> 16 & 255) / 8;
  if (x->n > CUPLUG_MAX_ITEMS - r->n_numbers)
    return damaged(r->error, "its lists have too many numbers");
  for (size_t k = 0; k < x->n; k++) {
    const char *value = (const char *)x->values + k * n_bytes;
    int status = cuplug__xla_read_number(x->dtype, value, &items[k], r->error);
    if (status) return status;
  }
  r->n_numbers += (uint32_t)x->n;
  *argument = cuplug_list_argument(items, (uint32_t)x->n);
  return CUPLUG_OK;
}

static int read_value(reader *r, cuplug_argument *argument) {
  const cuplug__xla_attributes *a = r->attributes;
  const cuplug__xla_scalar *scalar;
  while (r->next_value < a->n && (a->names[r->next_value]->n != strlen("value00") ||
                                  memcmp(a->names[r->next_value]->text, "value", 5)))
    r->next_value++;
  if (r->next_value >= a->n) return damaged(r->error, "a value is missing");
  const int64_t k = r->next_value++;
  switch (a->kinds[k]) {
  case CUPLUG__XLA_STRING:
    return read_text(r, a->values[k], argument), CUPLUG_OK;
  case CUPLUG__XLA_ARRAY:
    return read_numbers(r, a->values[k], argument);
  case CUPLUG__XLA_SCALAR:
    scalar = a->values[k];
    return cuplug__xla_read_number(scalar->dtype, scalar->value, argument, r->error);
  }
  return damaged(r->error, "a value is of no kind that is known");
}

static int read_complex_value(reader *r, cuplug_argument *argument) {
  int status = read_value(r, argument);
  if (status) return status;
  const cuplug_argument *parts = argument->list.items;
  if (argument->kind != CUPLUG_ARGUMENT_LIST || argument->list.n != 2 ||
      parts->kind != CUPLUG_ARGUMENT_FLOAT)
    return damaged(r->error, "a complex value has other than two parts");
  *argument = cuplug_complex(parts[0].scalar.f, parts[1].scalar.f);
  return CUPLUG_OK;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static int add_operand(reader *r, int is_item, int is_scalar, uint32_t number) {
  cuplug__xla_plan *p = r->plan;
  if (p->n_operands == CUPLUG_MAX_ARGUMENTS) return damaged(r->error, "it has too many operands");
  p->places[p->n_operands++] =
      (cuplug__xla_place){(uint8_t)is_item, (uint8_t)is_scalar, (uint8_t)number};
  return CUPLUG_OK;
}

/* `text` is after the bracket, and is moved past the closing one. */
static int read_list(reader *r, const char **text, const char *end, uint32_t number) {
  cuplug__xla_plan *p = r->plan;
  const uint32_t first = p->n_items;
  p->first_items[number] = first;
  p->lists |= 1ull << number;
  for (; *text < end && **text == 'a'; ++*text) {
    int status = add_operand(r, 1, 0, p->n_items++);
    if (status) return status;
  }
  if (*text == end || *(*text)++ != ']') return damaged(r->error, "a list has no end");
  p->args[number] = cuplug_list_argument(NULL, p->n_items - first);
  return CUPLUG_OK;
}

/* Reads one argument, and moves `text` past it. */
static int read_argument(reader *r, const char **text, const char *end) {
  const uint32_t number = r->plan->n_args++;
  cuplug_argument *argument = &r->plan->args[number];
  *argument = cuplug_absent();
  switch (*(*text)++) {
  case 'a':
    argument->kind = CUPLUG_ARGUMENT_ARRAY;
    return add_operand(r, 0, 0, number);
  case 't':
    return add_operand(r, 0, 1, number);
  case 'v':
    return read_value(r, argument);
  case 'c':
    return read_complex_value(r, argument);
  case '[':
    return read_list(r, text, end, number);
  case 'e':
    return *argument = cuplug_list_argument(NULL, 0), CUPLUG_OK;
  case 'n':
    return *argument = cuplug_none(), CUPLUG_OK;
  case '-':
    return CUPLUG_OK;
  }
  return damaged(r->error, "an argument is of no kind that is known");
}

static int read_arguments(reader *r) {
  const cuplug__xla_span *all = find(r->attributes, "arguments", CUPLUG__XLA_STRING);
  if (!all) return damaged(r->error, "it says nothing of its arguments");
  const char *text = all->text, *end = text + all->n;
  int status = CUPLUG_OK;
  while (text < end && !status)
    status = r->plan->n_args < CUPLUG_MAX_ARGUMENTS
                 ? read_argument(r, &text, end)
                 : damaged(r->error, "it has too many arguments");
  return status;
}

static int read_row(reader *r) {
  const uint64_t row = find_number(r->attributes, "overload");
  r->plan->row = (uint32_t)row;
  return row > cuplug_operator_n_overloads(r->plan->op)
             ? damaged(r->error, "its operator has no such row")
             : CUPLUG_OK;
}

int cuplug__xla_make_plan(const cuplug__xla_attributes *attributes, cuplug__xla_plan **plan,
                          cuplug_error *error) {
  cuplug__clear(error);
  *plan = calloc(1, sizeof **plan + bytes_of_texts(attributes));
  if (!*plan) return core->no_memory(error, "reading the attributes of a call");
  cuplug__xla_scratch_init(&(*plan)->scratch);
  reader r = {.attributes = attributes, .texts = (*plan)->texts, .plan = *plan, .error = error};
  int status = find_operator(attributes, &(*plan)->op, error);
  if (!status) status = read_row(&r);
  if (!status) status = read_arguments(&r);
  if (!status) return CUPLUG_OK;
  cuplug__xla_free_plan(*plan);
  *plan = NULL;
  return status;
}

void cuplug__xla_free_plan(void *plan) {
  cuplug__xla_scratch_free(&((cuplug__xla_plan *)plan)->scratch);
  free(plan);
}

/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Impossible arrays, from callers that are mistaken or lie: a message for each. */
#include "bound_calls.h"

#define SIGNATURE "op(x: float32[...]) -> float32[...]"

static void check_dimensions(uint32_t flags) {
  static const struct {
    int32_t ndim;
    const char *sentence;
  } cases[] = {
      {-1, "op: x: got float32 of -1 dimensions, expected 0 to 64 dimensions and their sizes"},
      {65, "op: x: got float32 of 65 dimensions, expected 0 to 64 dimensions and their sizes"},
      {1000, "op: x: got float32 of 1000 dimensions, expected 0 to 64 dimensions and their sizes"},
      {INT32_MAX, "op: x: got float32 of 2147483647 dimensions, expected 0 to 64 dimensions and "
                  "their sizes"},
      {INT32_MIN, "op: x: got float32 of -2147483648 dimensions, expected 0 to 64 dimensions and "
                  "their sizes"},
  };
  use(SIGNATURE, NULL, flags);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    cuplug_argument x = ARRAY(FLOAT32, SIZES(4)), out = ARRAY(FLOAT32, SIZES(4));
    out.tensor.data = memory + 64;
    CHECK(!bind(&x, 1)); /* also with a cached match */
    out.tensor.ndim = x.tensor.ndim = cases[k].ndim;
    CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
    CHECK(strstr(error.message, "dimensions, expected (4,)"));
    refused(&x, 1, CUPLUG_ERROR_VALUE, cases[k].sentence);
  }
}

/* If no array is expected, it is only reported. */
static void check_elsewhere(void) {
  cuplug_argument args[2] = {ARRAY(FLOAT32, SIZES(4)), ARRAY(FLOAT32, SIZES(4))};
  args[1].tensor.ndim = 1000;
  use("op(x: float32[n], k: int)", NULL, 0);
  refused(args, 2, CUPLUG_ERROR_TYPE,
          "op: k: got float32 of 1000 dimensions, expected a scalar of dtype int64");
  use("op(x: float32[n], k: int)", "op(x: float32[n], k: float, s: int)", 0);
  CHECK(bind(args, 2) == CUPLUG_ERROR_TYPE);
  CHECK(strstr(error.message, "float32 of 1000 dimensions"));
  use("op(x: float32[n], ys: float32[n][])", NULL, 0);
  cuplug_argument items[2] = {args[0], args[1]};
  args[1] = cuplug_list_argument(items, 2);
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: ys: item 1: got float32 of 1000 dimensions, expected 0 to 64 dimensions and their "
          "sizes");
}

static void check_no_shape(void) {
  cuplug_argument x = ARRAY(FLOAT32, SIZES(4)), out = ARRAY(FLOAT32, SIZES(4));
  use(SIGNATURE, NULL, 0);
  CHECK(!bind(&x, 1));
  out.tensor.data = memory + 64;
  out.tensor.shape = x.tensor.shape = NULL;
  CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
  CHECK(strstr(error.message, "without a shape"));
  refused(&x, 1, CUPLUG_ERROR_VALUE,
          "op: x: got float32 of 1 dimensions without a shape, expected 0 to 64 dimensions and "
          "their sizes");
  x.tensor.ndim = 0;
  CHECK(!bind(&x, 1));
}

/* Their products and sums would wrap around to valid values. */
static void check_strides(uint32_t flags) {
  static int64_t strides[][2] = {{INT64_MAX, 1},           {INT64_MIN, 1},
                                 {INT64_MAX / 2 + 1, 1},   {INT64_MAX / 12, INT64_MAX / 12},
                                 {-INT64_MAX / 12, 1},     {1, INT64_MIN / 2},
                                 {(int64_t)1 << 60, -5000}};
  use("op(x: float32[m, n]) -> float32[m, n]", NULL, flags);
  for (size_t k = 0; k < sizeof strides / sizeof *strides; k++) {
    cuplug_argument x = ARRAY(FLOAT32, SIZES(3, 4)), out = ARRAY(FLOAT32, SIZES(3, 4));
    out.tensor.data = memory + 64;
    CHECK(!bind(&x, 1));
    out.tensor.strides = x.tensor.strides = strides[k];
    CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
    CHECK(bind(&x, 1) == CUPLUG_ERROR_VALUE);
    CHECK(strstr(error.message, "op: x: got strides ("));
    CHECK(strstr(error.message, "for shape (3, 4), expected elements within 2^62 bytes"));
  }
  cuplug_argument x = ARRAY(FLOAT32, SIZES(0, 4));
  x.tensor.strides = strides[0]; /* it has no elements to reach */
  CHECK(!bind(&x, 1));
}

static void check_offsets(void) {
  cuplug_argument x = ARRAY(FLOAT32, SIZES(4));
  use(SIGNATURE, NULL, 0);
  CHECK(!bind(&x, 1));
  x.tensor.byte_offset = UINT64_MAX - 63;
  refused(&x, 1, CUPLUG_ERROR_VALUE,
          "op: x: got a byte offset of 18446744073709551552, expected one that stays within the "
          "address space");
  x.tensor.data = NULL;
  x.tensor.byte_offset = 64;
  refused(&x, 1, CUPLUG_ERROR_VALUE, "op: x: got a null pointer, expected an array with memory");
}

/* If sizes are too large to multiply, one 0 still means an array without elements. */
static void check_products(void) {
  use(SIGNATURE, NULL, 0);
  cuplug_argument x = ARRAY(FLOAT32, SIZES(INT64_MAX, INT64_MAX, 0));
  x.tensor.data = NULL;
  CHECK(!bind(&x, 1));
  x = ARRAY(FLOAT32, SIZES(1LL << 32, 1LL << 31));
  CHECK(bind(&x, 1) == CUPLUG_ERROR_VALUE);
  CHECK(strstr(error.message, "expected less than 2^63 bytes"));
}

/* In either order. */
static void check_outputs_apart(void) {
  use("op(x: float32[n]) -> (float32[n], float32[n])", NULL, 0);
  cuplug_argument x = ARRAY(FLOAT32, SIZES(4)), out = ARRAY(FLOAT32, SIZES(4));
  for (uint32_t first = 0; first < 2; first++) {
    CHECK(!bind(&x, 1));
    out.tensor.data = memory + 64;
    CHECK(!cuplug_set_output(&frame, first, &out, &error));
    out.tensor.data = memory + 76;
    CHECK(cuplug_set_output(&frame, !first, &out, &error) == CUPLUG_ERROR_VALUE);
    CHECK_TEXT(error.message,
               "op: out: its memory overlaps another output; pass an array of its own");
    out.tensor.data = memory + 80;
    CHECK(!cuplug_set_output(&frame, !first, &out, &error));
  }
}

/* One element, repeated zero times. */
static void check_copy_of_nothing(void) {
  use("op(x: float32[...], y: float32[...]) -> float32[...]", NULL, 0);
  cuplug_argument args[2] = {ARRAY(FLOAT32, SIZES(1)), ARRAY(FLOAT32, SIZES(0))};
  float copy[1] = {7};
  CHECK(!bind(args, 2) && frame.copy_mask == 1);
  cuplug_copy_input(&frame, 0, copy);
  CHECK(copy[0] == 7);
}

int main(void) {
  const uint32_t flags[] = {0, CUPLUG_OVERLOAD_TAKES_STRIDES};
  for (int k = 0; k < 2; k++) {
    check_dimensions(flags[k]);
    check_strides(flags[k]);
  }
  check_elsewhere();
  check_no_shape();
  check_offsets();
  check_products();
  check_outputs_apart();
  check_copy_of_nothing();
  return n_failed != 0;
}

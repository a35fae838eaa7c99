/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments matched with signatures: shapes and dtypes of outputs, a message for each mismatch. */
#include "arguments/bind.h"
#include "bound_calls.h"

#include <math.h>

static void check_gather(void) {
  use("gather(source: T[m, *row], index: I[*n], mode: 'raise' | 'wrap' = 'raise') -> T[*n, *row] "
      "where T: any, I: int32 | int64",
      NULL, 0);
  cuplug_argument args[4] = {ARRAY(FLOAT32, SIZES(5, 3, 2)), ARRAY(INT32, SIZES(4, 7)),
                             cuplug_string("wrap"), cuplug_int(1)};
  CHECK(!bind(args, 3));
  CHECK(frame.n_tensors == 3 && frame.n_inputs == 2 && frame.n_scalars == 1);
  cuplug_tensor *out = &frame.tensors[2];
  CHECK(out->ndim == 4 && out->shape[0] == 4 && out->shape[1] == 7 && out->shape[2] == 3 &&
        out->shape[3] == 2);
  CHECK(cuplug_type(out) == CUPLUG_FLOAT32 && frame.scalars[0].i == 1);
  CHECK(!bind(args, 2) && frame.scalars[0].i == 0);
  args[0] = ARRAY(BFLOAT16, SIZES(5));
  args[1] = ARRAY(INT64, );
  CHECK(!bind(args, 2) && frame.tensors[2].ndim == 0);
  refused(args, 4, CUPLUG_ERROR_TYPE, "gather: got 4 arguments, expected at most 3");
  refused(args, 1, CUPLUG_ERROR_TYPE,
          "gather: index: got nothing, expected I[*n] with I: int32 | int64");
  args[2] = cuplug_string("rise");
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "gather: mode: got the string \"rise\", expected \"raise\" or \"wrap\"");
  args[2] = cuplug_int(1);
  refused(args, 3, CUPLUG_ERROR_TYPE,
          "gather: mode: got the integer 1, expected \"raise\" or \"wrap\"");
  args[1] = ARRAY(FLOAT32, SIZES(3));
  refused(args, 2, CUPLUG_ERROR_TYPE,
          "gather: index: got float32[3], expected I[*n] with I: int32 | int64");
  args[1] = ARRAY(INT32, SIZES(3));
  args[0] = ARRAY(FLOAT32, );
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "gather: source: got float32[], expected T[m, *row] with T: any dtype");
  args[0] = (cuplug_argument){.kind = CUPLUG_ARGUMENT_NONE};
  refused(args, 2, CUPLUG_ERROR_TYPE,
          "gather: source: got None, expected T[m, *row] with T: any dtype");
  args[0] = (cuplug_argument){.kind = CUPLUG_ARGUMENT_OTHER, .scalar.s = "list"};
  refused(args, 2, CUPLUG_ERROR_TYPE,
          "gather: source: got list, expected T[m, *row] with T: any dtype");
}

static void check_names(void) {
  use("op(x: T[n, 3], y: T[n], z: float32[*k], w: float32[*k] = None) -> (T[n], float32[*k]) where "
      "T: float32 | float64",
      NULL, 0);
  cuplug_argument args[4] = {ARRAY(FLOAT64, SIZES(5, 3)), ARRAY(FLOAT64, SIZES(5)),
                             ARRAY(FLOAT32, SIZES(2, 2)), ARRAY(FLOAT32, SIZES(2, 2))};
  CHECK(!bind(args, 4) && frame.n_tensors == 6);
  CHECK(!bind(args, 3) && frame.tensors[3].ndim == -1 && !frame.tensors[3].data);
  CHECK(cuplug_type(&frame.tensors[4]) == CUPLUG_FLOAT64 && frame.tensors[5].ndim == 2);
  args[3] = ARRAY(FLOAT32, SIZES(2, 3));
  refused(args, 4, CUPLUG_ERROR_VALUE,
          "op: w: dimensions *k: got (2, 3), expected (2, 2) (as in z)");
  args[1] = ARRAY(FLOAT64, SIZES(4));
  refused(args, 3, CUPLUG_ERROR_VALUE, "op: y: dimension n: got 4, expected 5 (as in x)");
  args[1] = ARRAY(FLOAT32, SIZES(5));
  refused(args, 3, CUPLUG_ERROR_TYPE, "op: y: got float32[5], expected float64 (T, as in x)");
  args[0] = ARRAY(FLOAT64, SIZES(5, 4));
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: got float64[5, 4], expected T[n, 3] with T: float32 | float64");
}

/* An array that must be like an earlier one is compared only with that array. */
static void check_repeated(void) {
  use("op(x: T[n], y: T[n], z: T[n]) -> T[n] where T: any", NULL, 0);
  CHECK(!memcmp(overloads[0].like, (uint8_t[]){0, 0, 0, 0}, 4));
  cuplug_argument args[3] = {ARRAY(FLOAT32, SIZES(5)), ARRAY(FLOAT32, SIZES(5)),
                             ARRAY(FLOAT32, SIZES(5))};
  CHECK(!bind(args, 3) && frame.copy_mask == 0);
  int64_t backwards[] = {-1};
  args[2].tensor.strides = backwards;
  CHECK(!bind(args, 3) && frame.copy_mask == 4);
  args[2].tensor.data = NULL;
  refused(args, 3, CUPLUG_ERROR_VALUE, "op: z: got a null pointer, expected an array with memory");
  args[2] = ARRAY(FLOAT32, SIZES(5));
  args[2].tensor.device = (cuplug_device){CUPLUG_CUDA, 0};
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: z: got an array on cuda:0, expected the host (as x); move one to the other");
  args[2] = ARRAY(FLOAT32, SIZES(5));
  args[2].flags = CUPLUG_BYTE_SWAPPED;
  refused(args, 3, CUPLUG_ERROR_TYPE,
          "op: z: got byte-swapped float32[5], expected native byte order");
  args[2] = ARRAY(INT32, SIZES(5));
  refused(args, 3, CUPLUG_ERROR_TYPE, "op: z: got int32[5], expected float32 (T, as in x)");
  args[2] = ARRAY(FLOAT32, SIZES(4));
  refused(args, 3, CUPLUG_ERROR_VALUE, "op: z: dimension n: got 4, expected 5 (as in x)");
  use("op(x: T[n], y: U[n], z: T[n, 2], w: T[n, 3]) where T: any, U: any", NULL, 0);
  CHECK(!memcmp(overloads[0].like, (uint8_t[]){0, 1, 2, 3}, 4));
  use("op(x: T[...], y: T[...] = None, s: int = 0, z: T[...] = None) -> T[...] where T: any", NULL,
      0);
  CHECK(!memcmp(overloads[0].like, (uint8_t[]){0, 0, 0, 0}, 4));
  use("op(x: float32[2] = None, y: float32[2] = None) -> (float32[2], float32[2, 2])", NULL, 0);
  CHECK(!memcmp(overloads[0].like, (uint8_t[]){0, 1, 2, 3}, 4));
}

static void check_overlaps(void) {
  use("op(inout y: float32[3], z: float32[3], w: float32[n] = None)", NULL, 0);
  cuplug_argument args[3] = {
      ARRAY(FLOAT32, SIZES(3)), ARRAY(FLOAT32, SIZES(3)), {.kind = CUPLUG_ARGUMENT_NONE}};
  args[1].tensor.data = memory + 12;
  CHECK(!bind(args, 3) && frame.tensors[2].ndim == -1);
  args[1].tensor.data = memory + 8;
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: y: it is changed in place and overlaps z; pass a copy of one of them");
  use("op(inout x: float32[n], inout y: float32[3], z: float32[3])", NULL, 0);
  args[2] = ARRAY(FLOAT32, SIZES(3));
  args[2].tensor.data = memory + 24;
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: it is changed in place and overlaps y; pass a copy of one of them");
  int64_t apart[] = {-1}, inside[] = {2};
  args[0].tensor.data = memory + 36;
  args[0].tensor.byte_offset = 8;
  args[0].tensor.strides = apart;
  use("op(inout x: float32[n], inout y: float32[3], z: float32[3])", NULL,
      CUPLUG_OVERLOAD_TAKES_STRIDES);
  CHECK(!bind(args, 3));
  args[0].tensor.byte_offset = 0;
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: it is changed in place and overlaps z; pass a copy of one of them");
  args[0].tensor.data = memory;
  args[0].tensor.strides = inside;
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: it is changed in place and overlaps y; pass a copy of one of them");
}

static void check_shared_elements(void) {
  const char *sentence =
      "op: x: got an array whose elements share memory, expected one with memory for each (it is "
      "changed in place)";
  use("op(inout x: float32[m, n])", NULL, CUPLUG_OVERLOAD_TAKES_STRIDES);
  int64_t once[] = {0, 1}, rows[] = {2, -1}, back[] = {-4, 1}, apart[] = {1, 3};
  cuplug_argument args[1] = {ARRAY(FLOAT32, SIZES(3, 4))};
  args[0].tensor.data = memory + 64;
  args[0].tensor.strides = once;
  refused(args, 1, CUPLUG_ERROR_VALUE, sentence);
  args[0].tensor.strides = rows;
  refused(args, 1, CUPLUG_ERROR_VALUE, sentence);
  args[0].tensor.strides = back;
  CHECK(!bind(args, 1));
  args[0].tensor.strides = apart;
  CHECK(!bind(args, 1));
  args[0] = ARRAY(FLOAT32, SIZES(1, 4));
  args[0].tensor.strides = once;
  CHECK(!bind(args, 1));
  args[0] = ARRAY(FLOAT32, SIZES(3, 0));
  args[0].tensor.strides = once;
  CHECK(!bind(args, 1));
}

static void check_loop(void) {
  use("op(x: float32[...], y: float32[..., 2]) -> float32[2, ...]", NULL, 0);
  cuplug_argument args[2] = {ARRAY(FLOAT32, SIZES(4, 1, 3)), ARRAY(FLOAT32, SIZES(5, 3, 2))};
  CHECK(!bind(args, 2) && frame.copy_mask == 3);
  int64_t shape[CUPLUG_MAX_NDIM];
  CHECK(cuplug_required_shape(&frame, 0, shape) == 3 && shape[0] == 4 && shape[1] == 5);
  CHECK(cuplug_required_shape(&frame, 1, shape) == 4 && shape[0] == 4 && shape[3] == 2);
  CHECK(frame.tensors[2].ndim == 4 && frame.tensors[2].shape[0] == 2);
  float x[12], copy[4 * 5 * 3];
  for (int i = 0; i < 12; i++) x[i] = (float)i;
  frame.tensors[0].data = x;
  cuplug_copy_input(&frame, 0, copy);
  for (int i = 0; i < 60; i++) CHECK(copy[i] == x[i / 15 * 3 + i % 3]);
  args[0] = ARRAY(FLOAT32, SIZES(4, 5, 3));
  CHECK(!bind(args, 2) && frame.copy_mask == 2);
  args[0] = ARRAY(FLOAT32, SIZES(4, 2, 3));
  refused(
      args, 2, CUPLUG_ERROR_VALUE,
      "op: y: dimensions ...: got size 5, expected 1 or 2 to be broadcast with the other arrays");
  use("op(x: float32[...], y: float32[..., 2]) -> float32[2, ...]", NULL,
      CUPLUG_OVERLOAD_TAKES_STRIDES);
  args[0] = ARRAY(FLOAT32, SIZES(4, 1, 3));
  CHECK(!bind(args, 2) && frame.copy_mask == 0);
  CHECK(frame.tensors[0].ndim == 3 && frame.tensors[0].strides[1] == 0);
  CHECK(frame.tensors[1].ndim == 4 && frame.tensors[1].strides[0] == 0 &&
        frame.tensors[1].strides[1] == 6 && frame.tensors[1].strides[3] == 1);
  CHECK(!frame.tensors[2].strides); /* contiguous, until it runs */
  cuplug__write_strides(&frame);
  CHECK(frame.tensors[2].strides[3] == 1);
  use("op(inout x: float32[...], y: float32[...])", NULL, 0);
  args[1] = ARRAY(FLOAT32, SIZES(4, 5, 3));
  args[1].tensor.data = memory + 1024;
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: x: got shape (4, 1, 3), expected (4, 5, 3) (the broadcast shape, as it is changed "
          "in place)");
}

static void check_inout(void) {
  use("op(inout x: float32[n], y: float32[n], a: float32)", NULL, 0);
  cuplug_argument args[3] = {ARRAY(FLOAT32, SIZES(4)), ARRAY(FLOAT32, SIZES(4)), cuplug_float(2)};
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: it is changed in place and overlaps y; pass a copy of one of them");
  args[1].tensor.data = memory + 16;
  CHECK(!bind(args, 3) && frame.scalars[0].f == 2);
  args[0].flags = CUPLUG_READ_ONLY;
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: got a read-only array, expected a writable one (it is changed in place)");
  args[0].flags = CUPLUG_MISALIGNED;
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: got a misaligned array, expected an aligned one (it is changed in place)");
  args[0].flags = 0;
  args[0].tensor.strides = (int64_t[]){2};
  refused(args, 3, CUPLUG_ERROR_VALUE,
          "op: x: got an array that is not C-contiguous, expected a C-contiguous one (it is "
          "changed in place)");
  args[0].tensor.strides = NULL;
  args[1].tensor.strides = (int64_t[]){-1};
  args[1].tensor.data = memory + 1024;
  CHECK(!bind(args, 3) && frame.copy_mask == 2);
  args[1].flags = CUPLUG_READ_ONLY;
  CHECK(!bind(args, 3));
  args[1].flags = CUPLUG_BYTE_SWAPPED;
  refused(args, 3, CUPLUG_ERROR_TYPE,
          "op: y: got byte-swapped float32[4], expected native byte order");
}

static void check_devices(void) {
  use("op(x: float32[n], y: float32[n])", NULL, 0);
  cuplug_argument args[2] = {ARRAY(FLOAT32, SIZES(4)), ARRAY(FLOAT32, SIZES(4))};
  args[1].tensor.device = (cuplug_device){CUPLUG_CUDA, 1};
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: y: got an array on cuda:1, expected the host (as x); move one to the other");
  args[0].tensor.device = (cuplug_device){CUPLUG_CUDA, 0};
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: y: got an array on cuda:1, expected cuda:0 (as x); move one to the other");
  args[0].tensor.device = (cuplug_device){CUPLUG_CUDA_MANAGED, 1};
  CHECK(!bind(args, 2) && frame.device.type == CUPLUG_CUDA && frame.device.id == 1);
  args[0].tensor.device = (cuplug_device){10, 0};
  refused(args, 2, CUPLUG_ERROR_TYPE,
          "op: x: got an array on a device of DLPack type 10, expected the host or a CUDA device");
  args[0].tensor.device = args[1].tensor.device = (cuplug_device){CUPLUG_CUDA_HOST, 0};
  CHECK(!bind(args, 2) && frame.device.type == 0 && frame.home.type == CUPLUG_CPU);
}

static void check_sizes(void) {
  use("op(x: float32[n]) -> float32[n, n]", NULL, 0);
  cuplug_argument args[1] = {ARRAY(FLOAT32, SIZES(3000000000))};
  CHECK(!bind(args, 1) || strstr(error.message, "2^63"));
  refused(args, 1, CUPLUG_ERROR_VALUE,
          "op: the output's shape (3000000000, 3000000000) needs 2^63 bytes or more");
  args[0].tensor.shape = (int64_t[]){-5};
  refused(args, 1, CUPLUG_ERROR_VALUE, "op: x: got shape (-5,), expected sizes of at least 0");
  args[0].tensor.shape = (int64_t[]){INT64_MAX};
  refused(args, 1, CUPLUG_ERROR_VALUE,
          "op: x: got shape (9223372036854775807,), expected less than 2^63 bytes");
  args[0].tensor.shape = (int64_t[]){0};
  args[0].tensor.data = NULL;
  CHECK(!bind(args, 1));
  args[0].tensor.shape = (int64_t[]){1};
  refused(args, 1, CUPLUG_ERROR_VALUE, "op: x: got a null pointer, expected an array with memory");
  use("op(x: float32[*n]) -> float32[*n, *n]", NULL, 0);
  int64_t many[41];
  for (int k = 0; k < 40; k++) many[k] = 1;
  many[40] = -1;
  args[0] = array(CUPLUG_FLOAT32, many);
  refused(args, 1, CUPLUG_ERROR_VALUE, "op: the output would have more than 64 dimensions");
}

static void check_scalars(void) {
  use("op(x: T[n], a: T) where T: any", NULL, 0);
  cuplug_argument args[2] = {ARRAY(INT8, SIZES(4)), cuplug_int(300)};
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: a: got the integer 300, expected a value in the range of int8");
  args[1] = cuplug_float(1.5);
  refused(args, 2, CUPLUG_ERROR_TYPE, "op: a: got the float 1.5, expected a scalar of dtype int8");
  args[1] = cuplug_int(-128);
  CHECK(!bind(args, 2) && frame.scalars[0].i == -128);
  args[0] = ARRAY(UINT8, SIZES(4));
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: a: got the integer -128, expected a value in the range of uint8");
  args[0] = ARRAY(FLOAT16, SIZES(4));
  CHECK(!bind(args, 2) && frame.scalars[0].f == -128.0);
  args[1] = cuplug_float(1e6);
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: a: got the float 1000000, expected a value in the range of float16");
  args[1] = cuplug_float(INFINITY);
  CHECK(!bind(args, 2) && isinf(frame.scalars[0].f));
  args[1] = cuplug_float(NAN);
  CHECK(!bind(args, 2) && isnan(frame.scalars[0].f));
  args[0] = ARRAY(COMPLEX64, SIZES(4));
  args[1] = (cuplug_argument){.kind = CUPLUG_ARGUMENT_COMPLEX, .scalar.c = {1, -2}};
  CHECK(!bind(args, 2) && frame.scalars[0].c[1] == -2);
  args[0] = ARRAY(FLOAT64, SIZES(4));
  refused(args, 2, CUPLUG_ERROR_TYPE,
          "op: a: got the complex number 1-2j, expected a scalar of dtype float64");
  args[0] = ARRAY(UINT64, SIZES(4));
  args[1] = (cuplug_argument){.kind = CUPLUG_ARGUMENT_UINT, .scalar.u = UINT64_MAX};
  CHECK(!bind(args, 2) && frame.scalars[0].u == UINT64_MAX);
  args[0] = ARRAY(INT64, SIZES(4));
  CHECK(bind(args, 2) == CUPLUG_ERROR_VALUE);
  args[1] = (cuplug_argument){.kind = CUPLUG_ARGUMENT_HUGE_INT, .scalar.f = 0x1p70};
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "op: a: got an integer beyond 64 bits, expected a value in the range of int64");
  args[0] = ARRAY(BOOL, SIZES(4));
  args[1] = cuplug_int(1);
  refused(args, 2, CUPLUG_ERROR_TYPE, "op: a: got the integer 1, expected a scalar of dtype bool");
}

static void check_overloads(void) {
  use("op(x: float32[n]) -> float32[n]", "op(x: int32[n], k: int) -> int32[n]", 0);
  cuplug_argument args[2] = {ARRAY(INT32, SIZES(4)), cuplug_int(3)};
  CHECK(!bind(args, 2) && frame.row == 1);
  args[0] = ARRAY(FLOAT32, SIZES(4));
  CHECK(!bind(args, 1) && frame.row == 0);
  args[0] = ARRAY(INT32, SIZES(4));
  refused(args, 1, CUPLUG_ERROR_TYPE,
          "op: k: got nothing, expected a scalar of dtype int64 (the closest of 2 signatures: "
          "op(x: int32[n], k: int) -> int32[n])");
}

static void check_outputs(void) {
  use("op(x: float32[n]) -> (float32[n], float32[?])", NULL, 0);
  cuplug_argument x = ARRAY(FLOAT32, SIZES(4)), out = ARRAY(FLOAT32, SIZES(4));
  CHECK(!bind(&x, 1));
  CHECK(frame.tensors[2].shape[0] == -1);
  CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message,
             "op: out: got the memory of x, expected an array of its own; if the entry reads each "
             "element before it writes it, declare CUPLUG_IN_PLACE");
  out.tensor.data = memory + 16;
  CHECK(!cuplug_set_output(&frame, 0, &out, &error) && frame.tensors[1].data == memory + 16);
  CHECK(cuplug_set_output(&frame, 1, &out, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message,
             "op: out: got an array, expected none: this output's size is known only "
             "after the run");
  CHECK(cuplug_set_output(&frame, 2, &out, &error) == CUPLUG_ERROR_TYPE);
  out.flags = CUPLUG_READ_ONLY;
  CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "op: out: got a read-only array, expected a writable one");
  out = ARRAY(FLOAT32, SIZES(5));
  CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "op: out: got float32[5], expected (4,)");
  out = ARRAY(FLOAT64, SIZES(4));
  CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_TYPE);
  CHECK_TEXT(error.message, "op: out: got float64[4], expected float32");
}

/* Overloads that take strides only on a GPU receive them for arrays there, and NULL for others. */
static void check_strides_on_cuda(void) {
  use("op(x: float32[...], y: float32[...]) -> float32[...]", NULL,
      CUPLUG_OVERLOAD_CUDA_TAKES_STRIDES);
  int64_t turned[] = {1, 3};
  cuplug_argument args[2] = {ARRAY(FLOAT32, SIZES(3, 4)), ARRAY(FLOAT32, SIZES(4))};
  cuplug_argument out = ARRAY(FLOAT32, SIZES(3, 4));
  args[0].tensor.strides = out.tensor.strides = turned;
  out.tensor.data = memory + 1024;
  CHECK(!bind(args, 2) && frame.copy_mask == 3);
  CHECK(cuplug_set_output(&frame, 0, &out, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message,
             "op: out: got an array that is not C-contiguous, expected a C-contiguous one");
  args[0].tensor.device.type = args[1].tensor.device.type = out.tensor.device.type = CUPLUG_CUDA;
  for (int k = 0; k < 3; k++) { /* also with the match of earlier calls */
    CHECK(!bind(args, 2) && frame.copy_mask == 0);
    CHECK(frame.tensors[0].strides[1] == 3 && !frame.tensors[2].strides);
    CHECK(frame.tensors[1].strides[0] == 0 && frame.tensors[1].strides[1] == 1);
    CHECK(!cuplug_set_output(&frame, 0, &out, &error) && frame.tensors[2].strides == turned);
  }
  args[0].tensor.strides = NULL;
  args[1] = args[0];
  for (int k = 0; k < 3; k++)
    CHECK(!bind(args, 2) && !frame.tensors[0].strides && !frame.tensors[1].strides);
}

int main(void) {
  check_gather();
  check_names();
  check_repeated();
  check_overlaps();
  check_shared_elements();
  check_loop();
  check_inout();
  check_devices();
  check_sizes();
  check_scalars();
  check_overloads();
  check_outputs();
  check_strides_on_cuda();
  return n_failed != 0;
}

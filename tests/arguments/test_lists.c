/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of any length and of mixed shapes: matched, compared, freed, and received by entries. */
#include "arguments/bind.h"
#include "bound_calls.h"

#define ADAM "(inout p: T[*s][each], g: T[*s][each], w: float32[n] = None) where T: floating"
#define N 1000

static cuplug_argument items[2][N];
static int64_t shapes[N][2];
static float values[2][N][6];

/* Two lists whose items have 0 to 2 dimensions and separate memory. */
static void make_lists(void) {
  for (int k = 0; k < N; k++) {
    shapes[k][0] = k % 3, shapes[k][1] = 1 + k % 2;
    for (int list = 0; list < 2; list++) {
      cuplug_tensor x = cuplug_make_tensor(values[list][k], CUPLUG_FLOAT32, k % 3, shapes[k]);
      items[list][k] = cuplug_array(&x);
    }
  }
}

static cuplug_argument list(int number, uint32_t n) {
  return cuplug_list_argument(items[number], n);
}

static void free_blocks(void) {
  cuplug_free_blocks(frame.blocks);
  frame.blocks = NULL;
}

static void check_each(void) {
  use("adam" ADAM, NULL, 0);
  const uint32_t lengths[] = {1, 2, 63, 64, N};
  for (int k = 0; k < 5; k++) {
    cuplug_argument args[3] = {list(0, lengths[k]), list(1, lengths[k]), ARRAY(FLOAT32, SIZES(3))};
    CHECK(!bind(args, 3) && frame.n_inputs == 1 && frame.n_tensors == 1);
    CHECK(frame.n_apart == 2 * lengths[k] && frame.apart[0].data == values[0][0]);
    const cuplug_items *g = &frame.scalars[1].list;
    CHECK(g->n == lengths[k] && g->items == frame.apart + lengths[k]);
    CHECK(frame.apart[2 * lengths[k] - 1].data == values[1][lengths[k] - 1]);
    CHECK(!frame.apart[0].strides);
    free_blocks();
  }
}

static void check_refusals(void) {
  cuplug_argument args[3] = {list(0, N), list(1, N - 1)};
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "adam: g: got a list of 999 arrays, expected 1000 (as p, item by item)");
  args[1] = list(1, N);
  const cuplug_argument kept = items[1][500];
  int64_t other[2] = {7, 7};
  items[1][500].tensor.shape = other;
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "adam: g: item 500: dimensions *s: got (7, 7), expected (2, 1) (as in p)");
  items[1][500] = kept;
  items[1][500].tensor.data = values[0][17];
  refused(
      args, 2, CUPLUG_ERROR_VALUE,
      "adam: p: item 17: it is changed in place and overlaps g: item 500; pass a copy of one of "
      "them");
  items[1][500] = items[1][500 - 3]; /* inputs may share memory */
  items[1][500].tensor.shape = shapes[500];
  CHECK(!bind(args, 2));
  free_blocks();
  items[1][500] = kept;
  items[0][3].flags = CUPLUG_READ_ONLY;
  refused(
      args, 2, CUPLUG_ERROR_VALUE,
      "adam: p: item 3: got a read-only array, expected a writable one (it is changed in place)");
  items[0][3].flags = 0;
  items[0][9].kind = CUPLUG_ARGUMENT_NONE;
  refused(args, 2, CUPLUG_ERROR_TYPE, "adam: p: item 9: got None, expected T[*s] with T: floating");
  items[0][9].kind = CUPLUG_ARGUMENT_ARRAY;
  args[0] = list(0, 0), args[1] = list(1, 0);
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "adam: p: got an empty list, expected at least one array, which determines T[*s] with T: "
          "floating");
}

/* A list after it determines what an empty one cannot, however many arrays there are. */
static void check_empty(void) {
  use("f(xs: T[*s][], ys: T[*s][]) -> T[*s] where T: floating", NULL, 0);
  cuplug_argument args[2] = {list(0, 0), list(1, 1)};
  CHECK(!bind(args, 2) && frame.n_tensors == 2);
  CHECK(frame.tensors[1].ndim == items[1][0].tensor.ndim);
  CHECK(frame.scalars[0].list.n == 0 && frame.scalars[1].list.n == 1);
  args[1] = list(1, 0);
  refused(args, 2, CUPLUG_ERROR_VALUE,
          "f: xs: got an empty list, expected at least one array, which determines T[*s] with T: "
          "floating");
}

/* Memory for the first overload is released if the second one matches. */
static void check_overloads(void) {
  use("adam(inout p: float64[*s][each], g: float64[*s][each])",
      "adam(inout p: float32[*s][each], g: float32[*s][each])", CUPLUG_OVERLOAD_TAKES_STRIDES);
  cuplug_argument args[2] = {list(0, N), list(1, N)};
  CHECK(!bind(args, 2) && frame.row == 1 && frame.n_apart == 2 * N);
  CHECK(frame.apart[2].strides[0] == shapes[2][1] && frame.apart[2].strides[1] == 1);
  free_blocks();
  cuplug_tensor outputs[1];
  int64_t sizes[1][CUPLUG_MAX_NDIM];
  uint32_t row, n_outputs = 1;
  CHECK(!cuplug_infer(&op, args, 2, &row, outputs, sizes, &n_outputs, &error) && row == 1);
}

static void check_names(void) {
  use("f(w: float32[k], xs: float32[n, k][each], ys: float32[n][each], zs: float32[k + 1][]) -> "
      "float32[len(xs), k]",
      NULL, 0);
  int64_t first[2] = {5, 3}, second[2] = {2, 3}, wrong[2] = {2, 4}, four[1] = {4};
  cuplug_argument xs[2] = {ARRAY(FLOAT32, SIZES(5, 3)), ARRAY(FLOAT32, SIZES(2, 3))};
  cuplug_argument ys[2] = {ARRAY(FLOAT32, SIZES(5)), ARRAY(FLOAT32, SIZES(2))};
  cuplug_argument zs[1] = {ARRAY(FLOAT32, SIZES(4))};
  xs[0].tensor.shape = ys[0].tensor.shape = first;
  xs[1].tensor.shape = ys[1].tensor.shape = second;
  zs[0].tensor.shape = four;
  cuplug_argument args[4] = {ARRAY(FLOAT32, SIZES(3)), cuplug_list_argument(xs, 2),
                             cuplug_list_argument(ys, 2), cuplug_list_argument(zs, 1)};
  CHECK(!bind(args, 4) && frame.n_apart == 5 && frame.tensors[1].shape[0] == 2);
  CHECK(frame.tensors[1].shape[1] == 3);
  free_blocks();
  xs[1].tensor.shape = wrong;
  refused(args, 4, CUPLUG_ERROR_VALUE, "f: xs: item 1: dimension k: got 4, expected 3 (as in w)");
  xs[1].tensor.shape = second, ys[1].tensor.shape = first;
  refused(args, 4, CUPLUG_ERROR_VALUE, "f: ys: item 1: dimension n: got 5, expected 2 (as in xs)");
  ys[1].tensor.shape = second, zs[0].tensor.shape = first;
  refused(args, 4, CUPLUG_ERROR_VALUE, "f: zs: item 0: size k + 1: got 5, expected 4 (k = 3)");
}

static void check_numbers(void) {
  use("f(xs: int[], ys: float[]) -> float64[2]", NULL, 0);
  static cuplug_argument numbers[N];
  for (int k = 0; k < N; k++) numbers[k] = cuplug_int(k);
  cuplug_argument args[2] = {cuplug_list_argument(numbers, N), cuplug_list_argument(numbers, 256)};
  CHECK(!bind(args, 2));
  const int64_t *xs = frame.scalars[0].list.items;
  const double *ys = frame.scalars[1].list.items;
  CHECK(xs[N - 1] == N - 1 && ys[255] == 255 && frame.n_items == 256 && frame.blocks);
  free_blocks();
}

static int double_items(const cuplug_call *call) {
  const cuplug_items list = call->scalars[0].list;
  const cuplug_tensor *xs = list.items;
  for (int64_t k = 0; k < list.n; k++)
    for (int64_t i = 0; i < cuplug_n_elements(&xs[k]); i++) ((float *)xs[k].data)[i] *= 2;
  return call->n_tensors ? CUPLUG_ERROR_PLUGIN : CUPLUG_OK;
}

static void check_calls(void) {
  use("twice(inout xs: float32[*s][each])", NULL, 0);
  overloads[0].host = double_items;
  overloads[0].prefers_host = 1;
  for (int k = 0; k < N; k++) values[0][k][0] = (float)k;
  const cuplug_argument args[1] = {list(0, N)};
  CHECK(!cuplug_invoke(&op, args, 1, NULL, &error));
  for (int k = 0; k < N; k++) CHECK(values[0][k][0] == (float)(2 * k));
  int64_t strides[2] = {1, 2};
  items[0][5].tensor.strides = strides; /* of a shape (2, 2) */
  shapes[5][1] = 2;
  CHECK(cuplug_invoke(&op, args, 1, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(
      error.message,
      "twice: xs: item 5: got an array that is not C-contiguous, expected a C-contiguous one "
      "(it is changed in place)");
  use("read(xs: float32[*s][each])", NULL, 0);
  overloads[0].host = double_items;
  overloads[0].prefers_host = 1;
  CHECK(cuplug_invoke(&op, args, 1, NULL, &error) == CUPLUG_ERROR_VALUE);
  CHECK_TEXT(error.message, "op: got a list with strided or misaligned arrays, expected "
                            "C-contiguous copies of them");
}

int main(void) {
  make_lists();
  check_each();
  check_refusals();
  check_empty();
  check_overloads();
  check_names();
  check_numbers();
  check_calls();
  for (int k = 0; k < 2; k++) free(op.rows), op.rows = NULL, cuplug_free_signature(rows[k].parsed);
  return n_failed != 0;
}

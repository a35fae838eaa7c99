/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are moved in buckets, as with many threads, and in their order, as with few: the
 * results are equal, for any order of a loop's ranges. */
#include "indexing/buckets.c"
#include "indexing/rows.c"
#undef LEAST
#include "indexing/scatter.c"

#include "check.h"

#include <stdlib.h>

#define N_BLOCKS 3

static int n_threads;
static void *blocks[N_BLOCKS];
static int n_blocks;

static int threads(const cuplug_call *call) {
  (void)call;
  return n_threads;
}

static void *workspace(const cuplug_call *call, uint64_t bytes) {
  (void)call;
  return blocks[n_blocks++] = malloc(bytes);
}

static int fail(const cuplug_call *call, int status, int cuda_code, const char *text) {
  (void)call, (void)cuda_code, (void)text;
  return status;
}

/* The last range first. */
static int parallel(const cuplug_call *call, int64_t n, int64_t grain, cuplug_body *body,
                    void *context) {
  int status = CUPLUG_OK;
  (void)call;
  for (int64_t begin = (n - 1) / grain * grain; begin >= 0 && !status; begin -= grain)
    status = body(context, begin, n - begin < grain ? n : begin + grain);
  return status;
}

static const cuplug_services services = {.struct_bytes = sizeof services,
                                         .fail = fail,
                                         .workspace = workspace,
                                         .parallel = parallel,
                                         .threads = threads};

/* Indices of rows, many of them the same, some negative. */
static void draw(int64_t *indices, int64_t n, int64_t m) {
  uint64_t state = 88172645463325252u; /* G. Marsaglia, Xorshift RNGs, 2003 */
  for (int64_t i = 0; i < n; i++) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    const int64_t row = (int64_t)(state % (uint64_t)(i % 3 ? m : m / 50 + 1));
    indices[i] = state >> 62 ? row : row - m;
  }
}

/* Puts values into m rows of `width` numbers. Returns the number of allocated blocks. */
static int put_values(int32_t *x, int64_t m, int64_t width, const int64_t *indices,
                      const int32_t *values, int64_t n, int64_t n_good) {
  int64_t x_shape[] = {m, width}, values_shape[] = {n, width};
  const cuplug_dtype int32 = {0, 32, 1}, int64 = {0, 64, 1};
  cuplug_tensor t[] = {{.data = x, .ndim = 2, .dtype = int32, .shape = x_shape},
                       {.data = (void *)indices, .ndim = 1, .dtype = int64, .shape = values_shape},
                       {.data = (void *)values, .ndim = 2, .dtype = int32, .shape = values_shape}};
  const cuplug_call call = {.struct_bytes = sizeof call, .tensors = t, .services = &services};
  n_blocks = 0;
  CHECK(put_host(&call) == (n_good < n ? CUPLUG_ERROR_INDEX : CUPLUG_OK));
  for (int k = 0; k < n_blocks; k++) free(blocks[k]);
  return n_blocks;
}

static void test_sizes(int64_t m, int64_t width, int64_t n, int is_sorted) {
  int64_t *indices = malloc((size_t)n * sizeof *indices);
  int32_t *values = malloc((size_t)(n * width) * sizeof *values);
  int32_t *few = calloc((size_t)(m * width), sizeof *few);
  int32_t *many = calloc((size_t)(m * width), sizeof *many);
  draw(indices, n, m);
  for (int64_t i = 0; i < n * width; i++) values[i] = (int32_t)i + 1;
  n_threads = MANY - 1;
  CHECK(!put_values(few, m, width, indices, values, n, n));
  n_threads = MANY;
  CHECK(put_values(many, m, width, indices, values, n, n) == (is_sorted ? N_BLOCKS : 0));
  CHECK(!memcmp(few, many, (size_t)(m * width) * sizeof *few));
  indices[n / 2] = m;
  put_values(many, m, width, indices, values, n, n / 2);
  free(indices);
  free(values);
  free(few);
  free(many);
}

int main(void) {
  test_sizes(FROM, 1, FROM, 1);
  test_sizes(FROM - 1, 1, FROM, 0);
  test_sizes(FROM, 1, FROM - 1, 0);
  test_sizes(100003, 1, 5 * CHUNK + 7, 1);
  test_sizes((1 << CACHED_BITS) * FEW_BUCKETS - 1, 1, FROM + 1, 1);
  test_sizes((1 << CACHED_BITS) * FEW_BUCKETS + 1, 1, FROM + 1, 1);
  test_sizes(70001, 3, 40000, 1);
  test_sizes(70001, NARROW, 5000, 0);
  return n_failed != 0;
}

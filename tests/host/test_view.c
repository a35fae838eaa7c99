/* sanitizers: address,undefined | thread */
/* ldflags: -ldl -pthread */
/* SPDX-License-Identifier: Apache-2.0 */
/* Strided arrays read and written as bytes in C order, compared with single elements: random
 * shapes, permuted, reversed, with gaps, broadcast, and ranges that begin and end anywhere. */
#include "base/layout.h"
#include "check.h"
#include "host/copies.h"
#include "host/view.h"

#include <stdlib.h>

#define N_DIMS 5
#define MAX_BYTES (1 << 20)

static uint64_t state = 1;

/* Numbers below n, by a linear congruential generator (constants: Knuth, MMIX). */
UNSEEN static int64_t below(int64_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (int64_t)((state >> 33) % (uint64_t)n);
}

typedef struct array {
  cuplug_tensor x;
  int64_t shape[N_DIMS], strides[N_DIMS];
  char *memory;
  uint64_t bytes, memory_bytes;
} array;

/* Dimensions are in memory in any order, some with gaps between, reversed, or repeated. */
UNSEEN static void make_array(array *a, int64_t largest) {
  static const uint16_t bits[] = {8, 16, 32, 64, 128, 8, 32};
  int32_t order[N_DIMS];
  int64_t n = 1, low = 0;
  *a = (array){.x = {.ndim = 1 + (int32_t)below(N_DIMS), .shape = a->shape, .strides = a->strides}};
  a->x.dtype = (cuplug_dtype){.code = 1, .bits = bits[below(7)], .lanes = 1};
  const int64_t element = a->x.dtype.bits / 8;
  for (int32_t k = 0; k < a->x.ndim; k++) {
    const int32_t at = (int32_t)below(k + 1);
    order[k] = order[at];
    order[at] = k;
  }
  a->bytes = (uint64_t)element;
  for (int32_t k = 0; k < a->x.ndim; k++) {
    const int32_t d = order[k];
    const int64_t most = largest / (int64_t)a->bytes;
    int64_t size = 1 + below(most < 150 ? most + 1 : 150);
    if (size > most) size = most;
    a->shape[d] = size;
    a->bytes *= (uint64_t)size;
    a->strides[d] = below(5) ? n : 0;
    if (a->strides[d]) n *= size;
    if (!below(4)) n += below(3);
    if (!below(4)) {
      a->strides[d] = -a->strides[d];
      low += a->strides[d] * (size - 1);
    }
  }
  a->memory_bytes = (uint64_t)(n * element);
  a->memory = malloc(a->memory_bytes);
  CHECK(a->memory);
  for (int64_t i = 0; i < n * element; i++) a->memory[i] = (char)below(251);
  a->x.data = a->memory - low * element;
}

/* The position of byte `at` of C order in the array's memory. */
UNSEEN static uint64_t place_of(const array *a, uint64_t at) {
  const int64_t element = a->x.dtype.bits / 8;
  int64_t rest = (int64_t)at / element, place = (char *)a->x.data - a->memory;
  for (int32_t d = a->x.ndim - 1; d >= 0; rest /= a->shape[d--])
    place += rest % a->shape[d] * a->strides[d] * element;
  return (uint64_t)place + at % (uint64_t)element;
}

UNSEEN static char *in_order(const array *a) {
  char *bytes = malloc(a->bytes);
  CHECK(bytes);
  for (uint64_t at = 0; at < a->bytes; at++) bytes[at] = a->memory[place_of(a, at)];
  return bytes;
}

static void check_range(const array *a, const cuplug__view *view, const char *wanted,
                        uint64_t first, uint64_t bytes) {
  char *to = malloc(bytes + 2);
  CHECK(to);
  to[0] = to[bytes + 1] = 77;
  cuplug__view_copy(view, 0, first, bytes, to + 1);
  CHECK(!memcmp(to + 1, wanted + first, bytes));
  CHECK(to[0] == 77 && to[bytes + 1] == 77);
  CHECK(first + bytes <= a->bytes);
  free(to);
}

/* Random bytes, and their destination. */
UNSEEN static void make_written(const array *a, uint64_t first, uint64_t bytes, char *from,
                                char *wanted) {
  memcpy(wanted, a->memory, a->memory_bytes);
  for (uint64_t i = 0; i < bytes; i++) {
    from[i] = (char)below(251);
    wanted[place_of(a, first + i)] = from[i];
  }
}

/* By the calling thread, or by the workers. If elements share memory, the last is written last
 * by one thread. */
static void check_written(const array *a, const cuplug__view *view, uint64_t first, uint64_t bytes,
                          int by_threads) {
  cuplug__host_copy copy;
  char *kept = malloc(a->memory_bytes), *wanted = malloc(a->memory_bytes),
       *from = malloc(bytes + 1);
  CHECK(kept && wanted && from);
  memcpy(kept, a->memory, a->memory_bytes);
  make_written(a, first, bytes, from, wanted);
  if (by_threads) {
    cuplug__host_copy_begin(&copy, 1, view, first, bytes, from, CUPLUG__MAX_COPY_THREADS);
    cuplug__host_copy_end(&copy);
  } else {
    cuplug__view_copy(view, 1, first, bytes, from);
  }
  CHECK(!memcmp(a->memory, wanted, a->memory_bytes));
  memcpy(a->memory, kept, a->memory_bytes);
  free(kept);
  free(wanted);
  free(from);
}

static void check_ranges(void) {
  array a;
  cuplug__view view;
  make_array(&a, MAX_BYTES / 8);
  char *wanted = in_order(&a);
  cuplug__view_array(&view, &a.x);
  check_range(&a, &view, wanted, 0, a.bytes);
  for (int i = 0; i < 4; i++) {
    const uint64_t first = (uint64_t)below((int64_t)a.bytes);
    const uint64_t bytes = (uint64_t)below((int64_t)(a.bytes - first) + 1);
    check_range(&a, &view, wanted, first, bytes);
    check_written(&a, &view, first, bytes, 0);
  }
  free(wanted);
  free(a.memory);
}

static void check_by_threads(void) {
  array a;
  cuplug__view view;
  cuplug__host_copy copy;
  make_array(&a, MAX_BYTES);
  char *wanted = in_order(&a);
  const uint64_t first = (uint64_t)below((int64_t)a.bytes), bytes = a.bytes - first;
  char *to = malloc(bytes + 1);
  CHECK(to);
  cuplug__view_array(&view, &a.x);
  cuplug__host_copy_begin(&copy, 0, &view, first, bytes, to, CUPLUG__MAX_COPY_THREADS);
  cuplug__host_copy_end(&copy);
  CHECK(!memcmp(to, wanted + first, bytes));
  if (!cuplug__shares_elements(&a.x)) check_written(&a, &view, first, bytes, 1);
  free(to);
  free(wanted);
  free(a.memory);
}

/* Rows of elements `step` elements apart, which are adjacent, or reversed, across rows. */
static void check_across(int64_t n_rows, int64_t row, int64_t step, uint16_t bits) {
  const int64_t element = bits / 8, across = n_rows * llabs(step) + 1;
  const int64_t low = step < 0 ? step * (n_rows - 1) : 0;
  cuplug__view view;
  array a = {.x = {.ndim = 2, .dtype = {1, bits, 1}, .shape = a.shape, .strides = a.strides}};
  a.shape[0] = n_rows, a.shape[1] = row;
  a.strides[0] = step, a.strides[1] = across;
  a.bytes = (uint64_t)(n_rows * row * element);
  a.memory_bytes = (uint64_t)(row * across * element);
  a.memory = malloc(a.memory_bytes);
  CHECK(a.memory);
  for (uint64_t i = 0; i < a.memory_bytes; i++) a.memory[i] = (char)below(251);
  a.x.data = a.memory - low * element;
  char *wanted = in_order(&a);
  cuplug__view_array(&view, &a.x);
  check_range(&a, &view, wanted, 0, a.bytes);
  check_range(&a, &view, wanted, a.bytes / 3, a.bytes / 2);
  free(wanted);
  free(a.memory);
}

/* Rows as short as squares, as long as tiles, and ones of which a cache holds only a few. */
static void check_transposed(void) {
  static const int64_t n_rows[] = {2, 4, 9, 70}, rows[] = {2, 5, 8, 17, 64, 131, 1021, 1024};
  static const int64_t steps[] = {1, -1, 2};
  for (uint16_t bits = 8; bits <= 128; bits *= 2)
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 8; j++)
        for (int k = 0; k < 3; k++) check_across(n_rows[i], rows[j], steps[k], bits);
}

/* Transposed arrays are copied best by whole rows that share lines. */
static void check_pieces(void) {
  const int64_t shape[] = {6, 1000}, transposed[] = {1, 6}, rows[] = {1000, 1};
  cuplug_tensor x = {.ndim = 2, .dtype = {2, 32, 1}, .shape = (int64_t *)shape};
  cuplug__view view;
  x.strides = (int64_t *)transposed;
  cuplug__view_array(&view, &x);
  CHECK(cuplug__view_piece(&view) == 16 * 1000 * 4);
  CHECK(!cuplug__view_is_transposed(&view)); /* a line has elements of each row */
  const int64_t far[] = {1, 100};
  x.strides = (int64_t *)far;
  cuplug__view_array(&view, &x);
  CHECK(cuplug__view_piece(&view) == 16 * 1000 * 4);
  CHECK(cuplug__view_is_transposed(&view));
  const int64_t long_rows[] = {6, 1 << 23};
  x.shape = (int64_t *)long_rows; /* 512 MiB that share lines */
  cuplug__view_array(&view, &x);
  CHECK(cuplug__view_piece(&view) == 1);
  x.shape = (int64_t *)shape;
  x.strides = (int64_t *)rows;
  cuplug__view_array(&view, &x);
  CHECK(cuplug__view_piece(&view) == 1);
}

int main(void) {
  for (int i = 0; i < 200; i++) check_ranges();
  for (int i = 0; i < 30; i++) check_by_threads();
  check_transposed();
  check_pieces();
  return n_failed != 0;
}

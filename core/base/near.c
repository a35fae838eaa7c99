/* SPDX-License-Identifier: Apache-2.0 */
#include "base/near.h"

#include "base/dtype.h"

#include <string.h>

#define MAX_NAME 64

static int least(int a, int b) { return a < b ? a : b; }

int cuplug__edit_distance(const char *a, const char *b, int limit) {
  size_t n_a = strlen(a), n_b = strlen(b);
  int rows[3][MAX_NAME + 1]; /* of the lengths i, i - 1 and i - 2 of a, in turns */
  if (n_a > MAX_NAME || n_b > MAX_NAME) return limit + 1;
  for (size_t j = 0; j <= n_b; j++) rows[0][j] = (int)j;
  for (size_t i = 1; i <= n_a; i++) {
    int *row = rows[i % 3], *before = rows[(i + 2) % 3], *two_before = rows[(i + 1) % 3];
    row[0] = (int)i;
    for (size_t j = 1; j <= n_b; j++) {
      row[j] = least(before[j - 1] + (a[i - 1] != b[j - 1]), least(before[j], row[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = least(row[j], two_before[j - 2] + 1);
    }
  }
  return rows[n_a % 3][n_b];
}

int cuplug__name_distance(const char *asked, const char *name) {
  size_t n_asked = strlen(asked), n_name = strlen(name);
  size_t n = n_asked < n_name ? n_asked : n_name;
  if (n >= 3 && !strncmp(asked, name, n)) return 1;
  int limit = n_asked < 5 ? 1 : 1 + (int)n_asked / 3;
  int changes = cuplug__edit_distance(asked, name, limit);
  return changes <= limit && (size_t)changes < n_asked ? changes : -1;
}

/* Names of dtypes in other languages. */
static const char *const other_names[][2] = {
    {"half", "float16"},     {"single", "float32"},    {"double", "float64"}, {"bf16", "bfloat16"},
    {"f16", "float16"},      {"f32", "float32"},       {"f64", "float64"},    {"byte", "uint8"},
    {"char", "int8"},        {"short", "int16"},       {"long", "int64"},     {"i8", "int8"},
    {"i16", "int16"},        {"i32", "int32"},         {"i64", "int64"},      {"u8", "uint8"},
    {"u16", "uint16"},       {"u32", "uint32"},        {"u64", "uint64"},     {"boolean", "bool"},
    {"cfloat", "complex64"}, {"cdouble", "complex128"}};

const char *cuplug__near_dtype(const char *name) {
  const char *nearest = NULL;
  int best = MAX_NAME;
  for (size_t k = 0; k < sizeof other_names / sizeof *other_names; k++)
    if (!strcmp(name, other_names[k][0])) return other_names[k][1];
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++) {
    const int far = cuplug__name_distance(name, cuplug_dtype_name(k));
    if (far >= 0 && far < best) best = far, nearest = cuplug_dtype_name(k);
  }
  return nearest;
}

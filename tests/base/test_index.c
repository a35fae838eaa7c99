/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers are found by their hashes, in the order in which they were added, for any number of them
 * and any number of equal hashes. */
#include "base/hash.h"
#include "check.h"

#define N 5000

/* Hashes with few different positions, also at the end of the table, and equal hashes. */
static uint64_t hash_of(size_t k) { return k % 3 ? UINT64_MAX - k % 7 : (uint64_t)k << 32; }

static size_t count(const cuplug__index *index, uint64_t hash, size_t *last) {
  size_t n = 0, at = 0, number;
  while (cuplug__index_next(index, hash, &at, &number)) {
    CHECK(!n || number > *last);
    CHECK(hash_of(number) == hash);
    *last = number;
    n++;
  }
  return n;
}

int main(void) {
  cuplug__index index = {0};
  size_t last = 0, wanted = 0;
  CHECK(count(&index, 1, &last) == 0);
  for (size_t k = 0; k < N; k++) {
    CHECK(cuplug__index_add(&index, hash_of(k), k));
    CHECK(count(&index, hash_of(k), &last) > 0 && last == k);
  }
  for (size_t k = 0; k < N; k++) wanted += hash_of(k) == UINT64_MAX - 1;
  CHECK(count(&index, UINT64_MAX - 1, &last) == wanted);
  CHECK(count(&index, 12345, &last) == 0);
  CHECK(cuplug__hash_text("ab") != cuplug__hash_text("ba"));
  CHECK(cuplug__hash_text("ab") == cuplug__hash(0, "ab", 2));
  cuplug__index_end(&index);
  CHECK(!index.room && count(&index, 1, &last) == 0);
  return n_failed != 0;
}

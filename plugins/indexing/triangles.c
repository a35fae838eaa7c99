/* SPDX-License-Identifier: Apache-2.0 */
/* tril(x, k), triu(x, k): matrices with zeros above diagonal k, or below. Diagonal 0 begins at the
 * first element, k > 0 further to the right.
 *   x T[..., r, c]; out the same
 * Any dtype that has a zero; elements are moved as bytes. Bytes moved: the kept part of x, out
 * once. */
#include "indexing/triangles.h"

#include "elements.h"
#include "indexing/blocks.h"

#include <string.h>

CUPLUG_ENTRY int tril_cuda(const cuplug_call *call);
CUPLUG_ENTRY int triu_cuda(const cuplug_call *call);

typedef struct job {
  triangles t;
  const char *x;
  int64_t bytes;
} job;

/* Elements of one row, of which those before `edge` are kept, or those from there on. */
static void fill_row(const job *j, char *to, const char *from, int64_t n, int64_t edge) {
  const size_t before = (size_t)((edge < 0 ? 0 : blocks_min(edge, n)) * j->bytes);
  const size_t all = (size_t)(n * j->bytes), after = all - before;
  if (j->t.is_upper) {
    memset(to, 0, before);
    cuplug_prefetch_ahead(from + before, after);
    memcpy(to + before, from + before, after);
  } else {
    cuplug_prefetch_ahead(from, before);
    memcpy(to, from, before);
    memset(to + before, 0, after);
  }
}

static void fill(const void *context, char *to, int64_t first, int64_t n) {
  const job *j = context;
  const int64_t size = j->t.size;
  int64_t row = first / size % j->t.n_rows, column = first % size;
  const char *from = j->x + first * j->bytes;
  for (int64_t m; n > 0; n -= m) {
    m = blocks_min(n, size - column);
    fill_row(j, to, from, m, row + j->t.past - column);
    to += m * j->bytes, from += m * j->bytes;
    column = 0;
    if (++row == j->t.n_rows) row = 0;
  }
}

static int fill_all(const cuplug_call *call, int is_upper) {
  const cuplug_tensor *x = &call->tensors[0];
  const job j = {triangles_of(call, is_upper), x->data, cuplug_element_bytes(x)};
  return j.t.n ? blocks_run(call, &j, fill, j.t.n, j.bytes) : CUPLUG_OK;
}

CUPLUG_ENTRY int tril_host(const cuplug_call *call) { return fill_all(call, 0); }
CUPLUG_ENTRY int triu_host(const cuplug_call *call) { return fill_all(call, 1); }

#define PROPERTIES CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_LINEAR(x)

CUPLUG_OPERATOR(tril_cuda, tril_host,
                "tril(x: T[..., r, c], k: int = 0) -> T[..., r, c] where T: " ELEMENTS_WITH_ZERO,
                "Matrices with zeros above diagonal k." PROPERTIES CUPLUG_GRADIENT(tril));
CUPLUG_OPERATOR(triu_cuda, triu_host,
                "triu(x: T[..., r, c], k: int = 0) -> T[..., r, c] where T: " ELEMENTS_WITH_ZERO,
                "Matrices with zeros below diagonal k." PROPERTIES CUPLUG_GRADIENT(triu));

/* SPDX-License-Identifier: Apache-2.0 */
/* Along an axis of m elements, in lines:
 *
 * cumulative_sum(x, axis, include_initial): out[j] = x[0] + ... + x[j]; x T[*s], out T[*s]. With
 *   include_initial, 0 comes first, and the axis has m + 1 elements.
 * cumulative_prod(x, axis, include_initial): the same for products; 1 comes first.
 * cumulative_sum_backward(grad, axis, include_initial): the gradient of cumulative_sum:
 *   out[j] = grad[j] + ... + grad[m - 1], where grad has m elements, without its first one if
 *   include_initial is true.
 *
 * T: integers of 32 and 64 bits, which wrap around, floating and complex dtypes. float16 and
 * bfloat16 are computed as float32, and on the host float32 as float64, so that each result is
 * rounded once. Bytes moved: each element in and out once; for long lines on the host in twice,
 * except for integers with one thread.
 *
 * out[0] is x[0] itself, and not combined with 0 or 1, which would change -0 and infinities.
 *
 * Long lines are split into chunks by their length. The values of chunks are computed, and each
 * chunk is then scanned from the value of the chunks before it. The bits are therefore the same for
 * any number of threads or GPU blocks. On the host, a chunk whose own sum or product leaves the
 * range of its dtype is read again from the value before it: infinities, NaNs and zeros are those
 * of a sequential scan. On a GPU, they may also result from the order. */
#include "scan/loops.h"

#include <cuplug/nontemporal.h>

CUPLUG_ENTRY int cumulative_sum_cuda(const cuplug_call *call);
CUPLUG_ENTRY int cumulative_sum_backward_cuda(const cuplug_call *call);
CUPLUG_ENTRY int cumulative_prod_cuda(const cuplug_call *call);

#define CHUNK 65808     /* elements that one thread scans; neighbors share no cache set */
#define SHORT 64        /* elements of a line that needs no chunks */
#define ROWS_AHEAD 8    /* rows of columns that are prefetched */
#define LEAST (1 << 14) /* elements that are worth a thread */

/* Chunks from c on, and their totals; and the functions below: sums of chunks, sums of the chunks
 * before, scans of chunks, scans of blocks of columns. */
#define SCAN(name, stored, computed, load, store, join, identity)                               \
  ELEMENTS_INLINE void go_through_##name(const job *j, int64_t c, int count, int stores) {      \
    chunk chunks[AT_ONCE];                                                                      \
    computed sums[AT_ONCE];                                                                     \
    int64_t n = j->each;                                                                        \
    for (int k = 0; k < count; k++) {                                                           \
      chunks[k] = chunk_of(j, c + k);                                                           \
      n = smaller(n, chunks[k].n);                                                              \
      const int is_first = c + k < j->lines.n_lines;                                            \
      if (stores && j->lines.has_initial && is_first)                                           \
        ((stored *)j->to)[chunks[k].to - j->lines.step] = store(identity);                      \
      if (n == 0) continue;                                                                     \
      sums[k] = load(((const stored *)j->from)[chunks[k].from]);                                \
      if (stores && !is_first) sums[k] = join(*(computed *)&j->sums[c + k], sums[k]);           \
      if (stores) ((stored *)j->to)[chunks[k].to] = store(sums[k]);                             \
    }                                                                                           \
    if (n == 0) return;                                                                         \
    go_on_##name(j, chunks, count, 1, n, stores, sums);                                         \
    for (int k = 0; k < count; k++) {                                                           \
      go_on_##name(j, chunks + k, 1, n, chunks[k].n, stores, sums + k);                         \
      if (!stores) *(computed *)&j->sums[c + k] = sums[k];                                      \
    }                                                                                           \
  }                                                                                             \
  ELEMENTS_INLINE int go_through_all_##name(const job *j, int64_t c, int64_t end, int stores) { \
    for (; j->at_once > 1 && c + AT_ONCE <= end; c += AT_ONCE)                                  \
      go_through_##name(j, c, AT_ONCE, stores);                                                 \
    for (; j->at_once > 1 && c + 2 <= end; c += 2) go_through_##name(j, c, 2, stores);          \
    for (; c < end; c++) go_through_##name(j, c, 1, stores);                                    \
    return CUPLUG_OK;                                                                           \
  }                                                                                             \
  static int sum_chunks_##name(void *context, int64_t begin, int64_t end) {                     \
    return go_through_all_##name(context, begin, end, 0);                                       \
  }                                                                                             \
  static void sum_before_##name(const job *j) {                                                 \
    for (int64_t line = 0; line < j->lines.n_lines; line++) {                                   \
      const int64_t n_lines = j->lines.n_lines;                                                 \
      computed sum = *(computed *)&j->sums[line];                                               \
      for (int64_t c = line + n_lines; c < n_lines * j->n_chunks; c += n_lines) {               \
        const computed own = *(computed *)&j->sums[c];                                          \
        *(computed *)&j->sums[c] = sum;                                                         \
        const chunk lost = chunk_of(j, c);                                                      \
        if ((computed)0.5 != 0 && is_lost(sum, own, identity))                                  \
          go_on_##name(j, &lost, 1, 0, lost.n, 0, &sum);                                        \
        else                                                                                    \
          sum = join(sum, own);                                                                 \
      }                                                                                         \
    }                                                                                           \
  }                                                                                             \
  static int scan_chunks_##name(void *context, int64_t begin, int64_t end) {                    \
    return go_through_all_##name(context, begin, end, 1);                                       \
  }                                                                                             \
  static int scan_rows_##name(void *context, int64_t begin, int64_t end) {                      \
    const job *j = context;                                                                     \
    go_along_all_##name(&j->lines, (const stored *)j->from + begin * j->lines.in.m,             \
                        (stored *)j->to + begin * j->lines.out.m, end - begin, identity);       \
    return CUPLUG_OK;                                                                           \
  }                                                                                             \
  static int scan_columns_##name(void *context, int64_t begin, int64_t end) {                   \
    const job *j = context;                                                                     \
    for (int64_t b = begin; b < end; b++) {                                                     \
      const int64_t column = b % j->n_blocks * j->columns, width = j->lines.in.width;           \
      const int64_t n = smaller(j->columns, width - column), step = j->lines.step;              \
      const int64_t line = b / j->n_blocks * width + column;                                    \
      const stored *restrict from = (const stored *)j->from + scan_from(&j->lines, line);       \
      stored *restrict to = (stored *)j->to + scan_to(&j->lines, line);                         \
      const int64_t ahead = ROWS_AHEAD * step * (int64_t)sizeof *from;                          \
      computed sums[COLUMNS];                                                                   \
      for (int64_t k = 0; k < n && j->lines.has_initial; k++) to[k - step] = store(identity);   \
      for (int64_t k = 0; k < n && j->lines.n; k++) to[k] = store(sums[k] = load(from[k]));     \
      for (int64_t i = 1, r; i < j->lines.n; i += r) {                                          \
        r = n == step ? smaller(COLUMNS / n, j->lines.n - i) : 1;                               \
        cuplug_prefetch(from + i * step, (size_t)(n * r) * sizeof *from, ahead);                \
        go_down_##name(sums, from + i * step, to + i * step, n, r);                             \
      }                                                                                         \
    }                                                                                           \
    return CUPLUG_OK;                                                                           \
  }

#define FOR_DTYPES(X, kind, identity)                                                         \
  X(kind##_32, uint32_t, uint32_t, , , kind##_of, identity)                                   \
  X(kind##_64, uint64_t, uint64_t, , , kind##_of, identity)                                   \
  X(kind##_float16, uint16_t, float, cuplug_float16_load, cuplug_float16_store, kind##_of,    \
    identity)                                                                                 \
  X(kind##_bfloat16, uint16_t, float, cuplug_bfloat16_load, cuplug_bfloat16_store, kind##_of, \
    identity)                                                                                 \
  X(kind##_float32, float, double, , , kind##_of, identity)                                   \
  X(kind##_float64, double, double, , , kind##_of, identity)                                  \
  X(kind##_complex64, float complex, float complex, , , kind##_of_complex64, identity)        \
  X(kind##_complex128, double complex, double complex, , , kind##_of_complex128, identity)

#define sum_of(a, b) ((a) + (b))
#define prod_of(a, b) ((a) * (b))
#define sum_of_complex64 sum_of
#define sum_of_complex128 sum_of
/* Written out, as on GPUs, since C's product checks for infinities. */
#define PRODUCT(name, part)                                                    \
  static inline part complex prod_of_##name(part complex a, part complex b) {  \
    const part x = __real__ a, y = __imag__ a, u = __real__ b, v = __imag__ b; \
    part complex product;                                                      \
    __real__ product = x * u - y * v;                                          \
    __imag__ product = x * v + y * u;                                          \
    return product;                                                            \
  }
PRODUCT(complex64, float)
PRODUCT(complex128, double)

/* 16-bit floats are computed as `single`. */
#define FOR_KINDS(kind)                                                      \
  PLAIN(kind##_32, uint32_t, uint32_t, kind##_of)                            \
  PLAIN(kind##_64, uint64_t, uint64_t, kind##_of)                            \
  ROWS(kind##_single, float, float, kind##_of)                               \
  HALVES(kind##_float16, float16, kind##_single, kind##_of)                  \
  HALVES(kind##_bfloat16, bfloat16, kind##_single, kind##_of)                \
  PLAIN(kind##_float32, float, double, kind##_of)                            \
  PLAIN(kind##_float64, double, double, kind##_of)                           \
  PLAIN(kind##_complex64, float complex, float complex, kind##_of_complex64) \
  PLAIN(kind##_complex128, double complex, double complex, kind##_of_complex128)

FOR_KINDS(sum)
FOR_KINDS(prod)
FOR_DTYPES(SCAN, sum, 0)
FOR_DTYPES(SCAN, prod, 1)

typedef struct functions {
  cuplug_body *sum_chunks, *scan_chunks, *scan_rows, *scan_columns;
  void (*sum_before)(const job *j);
} functions;

#define FUNCTIONS(name, ...) \
  {sum_chunks_##name, scan_chunks_##name, scan_rows_##name, scan_columns_##name, sum_before_##name},

static const functions SUMS[] = {FOR_DTYPES(FUNCTIONS, sum, 0)};
static const functions PRODUCTS[] = {FOR_DTYPES(FUNCTIONS, prod, 1)};

/* The position of a dtype in these arrays. */
static int number_of(const cuplug_tensor *x) {
  if (elements_are_whole(x)) return x->dtype.bits == 64;
  if (elements_are_complex(x)) return x->dtype.bits == 128 ? 7 : 6;
  return x->dtype.bits == 64                 ? 5
         : x->dtype.bits == 32               ? 4
         : cuplug_type(x) == CUPLUG_BFLOAT16 ? 3
                                             : 2;
}

/* Columns of a block: fewer if threads would be idle, but at least two cache lines of a row. */
static int64_t columns_of(const cuplug_call *call, const scan_lines *lines) {
  const int64_t least = 2 * CUPLUG_LINE_BYTES / cuplug_element_bytes(&call->tensors[0]);
  const int64_t n_threads = cuplug_n_threads(call), width = lines->in.width;
  int64_t columns = COLUMNS;
  if (n_threads == 1 || lines->n * lines->n_lines < 2 * LEAST) return columns;
  while (columns > least && (width - 1) / columns + 1 < 2 * n_threads / lines->in.n_outer)
    columns /= 2;
  return columns;
}

static int scan(const cuplug_call *call, const functions *all, int is_backward) {
  const functions *f = &all[number_of(&call->tensors[0])];
  job j = {.lines = scan_lines_of(call, is_backward),
           .from = call->tensors[0].data,
           .to = call->outputs[0].data,
           .n_chunks = 1,
           .at_once = 1};
  const int64_t n_lines = j.lines.n_lines, n = j.lines.n, width = j.lines.in.width;
  const int is_half = call->tensors[0].dtype.bits == 16;
  if (width >= (is_half ? 2 : 8)) {
    j.columns = columns_of(call, &j.lines);
    const int64_t each = n * smaller(width, j.columns) + 1;
    j.n_blocks = (width - 1) / j.columns + 1;
    return cuplug_parallel(call, j.lines.in.n_outer * j.n_blocks, 1 + LEAST / each, f->scan_columns,
                           &j);
  }
  if (width == 1 && n > 0 && j.lines.out.m <= SHORT && j.lines.in.m <= SHORT)
    return cuplug_parallel(call, n_lines, 1 + LEAST / n, f->scan_rows, &j);
  const int is_whole = elements_are_whole(&call->tensors[0]);
  /* The latency of integers is so short that processing chunks consecutively is faster. */
  if (width > 1 || !is_whole) j.at_once = AT_ONCE;
  /* Their bits do not depend on the split, so one thread need not split them. */
  const int is_cut = n > CHUNK && (!is_whole || cuplug_n_threads(call) > 1);
  j.each = is_cut ? CHUNK : n;
  if (is_cut) {
    j.n_chunks = (n + CHUNK - 1) / CHUNK;
    j.sums = cuplug_workspace(call, (uint64_t)(n_lines * j.n_chunks) * sizeof *j.sums);
    if (!j.sums) return CUPLUG_ERROR_MEMORY;
    const int status = cuplug_parallel(call, n_lines * j.n_chunks, j.at_once, f->sum_chunks, &j);
    if (status) return status;
    f->sum_before(&j);
  }
  return cuplug_parallel(call, n_lines * j.n_chunks, j.at_once + LEAST / (n + 1), f->scan_chunks,
                         &j);
}

CUPLUG_ENTRY int cumulative_sum_host(const cuplug_call *call) { return scan(call, SUMS, 0); }
CUPLUG_ENTRY int cumulative_sum_backward_host(const cuplug_call *call) {
  return scan(call, SUMS, 1);
}
CUPLUG_ENTRY int cumulative_prod_host(const cuplug_call *call) { return scan(call, PRODUCTS, 0); }

#define NUMBERS "int32 | int64 | uint32 | uint64 | floating | complex"
#define SIZES(s, sign)                                                                  \
  "[*" s "[:axis % len(" s ")], " s "[axis % len(" s ")] " sign " include_initial, *" s \
  "[axis % len(" s ") + 1:]]"
#define FORWARD(name)                                                          \
  name "(x: T[*s], axis: int = -1, include_initial: bool = False) -> T" SIZES( \
      "s", "+") " where T: " NUMBERS ", -len(s) <= axis < len(s)"

CUPLUG_OPERATOR(cumulative_sum_cuda, cumulative_sum_host, FORWARD("cumulative_sum"),
                "Sums of the elements up to each element along an axis." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(cumulative_sum_backward)
                        CUPLUG_LINEAR(x));
CUPLUG_OPERATOR(
    cumulative_sum_backward_cuda, cumulative_sum_backward_host,
    "cumulative_sum_backward(grad: T[*g], axis: int = -1, include_initial: bool = "
    "False) -> T" SIZES("g", "-") " where T: floating | complex, "
                                  "-len(g) <= axis < len(g)",
    "The gradient of cumulative_sum: sums of grad from each element to the end." CUPLUG_ALONG(axis)
        CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC CUPLUG_GRADIENT(cumulative_sum)
            CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(cumulative_prod_cuda, cumulative_prod_host, FORWARD("cumulative_prod"),
                "Products of the elements up to each element along an axis." CUPLUG_ALONG(axis)
                    CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
                        CUPLUG_GRADIENT(cumulative_prod_backward));

/* An array without dimensions is its own sum. It has no axis that could have an additional element.
 */
#define ALONE(name, x, dtypes)                                                               \
  name "(" x ": T[], axis: int = -1, include_initial: bool = False) -> T[] where T: " dtypes \
       ", -1 <= axis < 1, include_initial == 0"

CUPLUG_OPERATOR(cumulative_sum_cuda, cumulative_sum_host, ALONE("cumulative_sum", "x", NUMBERS),
                "The same for an array without dimensions." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
                    CUPLUG_GRADIENT(cumulative_sum_backward) CUPLUG_LINEAR(x));
CUPLUG_OPERATOR(cumulative_sum_backward_cuda, cumulative_sum_backward_host,
                ALONE("cumulative_sum_backward", "grad", "floating | complex"),
                "The same for an array without dimensions." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
                    CUPLUG_GRADIENT(cumulative_sum) CUPLUG_LINEAR(grad));
CUPLUG_OPERATOR(cumulative_prod_cuda, cumulative_prod_host, ALONE("cumulative_prod", "x", NUMBERS),
                "The same for an array without dimensions." CUPLUG_NONBLOCKING CUPLUG_DETERMINISTIC
                    CUPLUG_GRADIENT(cumulative_prod_backward));
CUPLUG_PLUGIN(scan, "1.0.0");

/* SPDX-License-Identifier: Apache-2.0 */
/* gather(source, index, mode): out[i, ...] = source[index[i], ...], NumPy's take along axis 0.
 *
 *   source  T[m, *row]     any dtype; moved as bytes
 *   index   I[*n]          int32 or int64
 *   mode    "raise"        -m <= index < m, negative ones count from the end; else IndexError
 *           "wrap"         index modulo m
 *           "clip"         the nearest of 0 ... m - 1
 *   out     T[*n, *row]
 *
 * From an empty axis (m = 0) nothing can be taken: IndexError, unless index is empty too. Of
 * several bad indices the host names the first; a GPU names one of them. Bytes moved: index once;
 * the chosen rows of source once; out once. */
#include <cuplug/format.h>
#include <cuplug/plugin.h>

#include <stdatomic.h>
#include <string.h>

CUPLUG_ENTRY int gather_cuda(const cuplug_call *call);

#define AHEAD 128           /* rows asked for before they are copied */
#define CACHED (1 << 20)    /* bytes of a source whose rows need not be asked for */
#define PARALLEL_FROM 32768 /* elements; below, waking threads costs more than they save */
#define GRAIN 4096          /* elements */

enum { RAISE, WRAP, CLIP };

typedef struct job {
  const char *source;
  const void *index;
  char *out;
  int64_t m, n, row_bytes, mode;
  int index_is_64;
} job;

/* What the threads of a call share. */
typedef struct shared_job {
  const job *job;
  _Atomic int64_t first_bad; /* position of the first bad index that was met so far, or n */
} shared_job;

static inline int64_t index_at(const job *j, int64_t i) {
  return j->index_is_64 ? ((const int64_t *)j->index)[i] : ((const int32_t *)j->index)[i];
}

/* The row that an index means, or -1 for none. */
static inline int64_t resolve(const job *j, int64_t index) {
  const int64_t m = j->m;
  if (j->mode == RAISE) {
    index += index < 0 ? m : 0;
    return (uint64_t)index < (uint64_t)m ? index : -1;
  }
  if (j->mode == CLIP) return index < 0 ? 0 : index < m ? index : m - 1;
  index %= m;
  return index < 0 ? index + m : index;
}

#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Copies rows [begin, end) of `bytes` each. Returns the position of the first bad index, or `end`.
 * `ahead`: the memory of the rows that come so much later is asked for, so that many loads are
 * under way at once; to ask for memory that is not there does nothing. */
ALWAYS_INLINE int64_t copy_rows(job j, int64_t begin, int64_t end, int64_t bytes, int64_t ahead) {
  for (int64_t i = begin; i < end; i++) {
    if (ahead)
      __builtin_prefetch((const char *)((uintptr_t)j.source +
                                        (uintptr_t)(resolve(&j, index_at(&j, i + ahead)) * bytes)),
                         0, 2);
    const int64_t row = resolve(&j, index_at(&j, i));
    if (row < 0) return i;
    memcpy(j.out + i * bytes, j.source + row * bytes, (size_t)bytes);
  }
  return end;
}

/* Of the rows asked for, the last are for whoever copies the range after this one. */
ALWAYS_INLINE int64_t copy_range(job j, int64_t begin, int64_t end, int64_t bytes) {
  int64_t last = j.m * bytes > CACHED ? j.n - AHEAD : begin;
  last = last < begin ? begin : last < end ? last : end;
  const int64_t stopped = copy_rows(j, begin, last, bytes, AHEAD);
  return stopped < last ? stopped : copy_rows(j, last, end, bytes, 0);
}

/* In each branch the compiler knows what index_at and resolve ask for: the loops do not ask. */
ALWAYS_INLINE int64_t gather_rows(job j, int64_t begin, int64_t end, int64_t bytes) {
  if (j.mode != RAISE) return copy_range(j, begin, end, bytes);
  if (j.index_is_64) return copy_range(j, begin, end, bytes);
  return copy_range(j, begin, end, bytes);
}

static int64_t gather_range(const job *j, int64_t begin, int64_t end) {
  switch (j->row_bytes) {
  case 1:
    return gather_rows(*j, begin, end, 1);
  case 2:
    return gather_rows(*j, begin, end, 2);
  case 4:
    return gather_rows(*j, begin, end, 4);
  case 8:
    return gather_rows(*j, begin, end, 8);
  case 16:
    return gather_rows(*j, begin, end, 16);
  default:
    return gather_rows(*j, begin, end, j->row_bytes);
  }
}

/* Whether later ranges have bad indices does not matter once there is one. */
static int gather_body(void *context, int64_t begin, int64_t end) {
  shared_job *s = context;
  int64_t first = atomic_load_explicit(&s->first_bad, memory_order_relaxed);
  if (begin >= first) return CUPLUG_OK;
  const int64_t stopped = gather_range(s->job, begin, end);
  while (stopped < end && stopped < first &&
         !atomic_compare_exchange_weak_explicit(&s->first_bad, &first, stopped,
                                                memory_order_relaxed, memory_order_relaxed))
    ;
  return CUPLUG_OK;
}

/* Gathers all, in parallel where it pays. `bad` becomes the position of the first bad index, or n.
 */
static int gather_all(const cuplug_call *call, const job *j, int64_t *bad) {
  shared_job shared = {j, j->n};
  const int status = j->n < PARALLEL_FROM
                         ? gather_body(&shared, 0, j->n)
                         : cuplug_parallel(call, j->n, GRAIN, gather_body, &shared);
  *bad = shared.first_bad;
  return status;
}

static int64_t row_bytes(const cuplug_tensor *source) {
  int64_t bytes = cuplug_element_bytes(source);
  for (int32_t k = 1; k < source->ndim; k++) bytes *= source->shape[k];
  return bytes;
}

CUPLUG_ENTRY int gather_host(const cuplug_call *call) {
  const cuplug_tensor *source = &call->tensors[0], *index = &call->tensors[1];
  const job j = {.source = source->data,
                 .index = index->data,
                 .out = call->tensors[2].data,
                 .m = source->shape[0],
                 .n = cuplug_n_elements(index),
                 .row_bytes = row_bytes(source),
                 .mode = call->scalars[0].i,
                 .index_is_64 = cuplug_type(index) == CUPLUG_INT64};
  if (j.n == 0) return CUPLUG_OK;
  if (j.m == 0)
    return cuplug_fail(call, CUPLUG_ERROR_INDEX,
                       "source: seen an empty axis 0, wanted at least one row to take from");
  int64_t bad;
  const int status = gather_all(call, &j, &bad);
  if (status || bad == j.n) return status;
  return cuplug_failf(call, CUPLUG_ERROR_INDEX,
                      "index: index %lld at position %lld is out of bounds for size %lld",
                      (long long)index_at(&j, bad), (long long)bad, (long long)j.m);
}

CUPLUG_OPERATOR(
    gather_cuda, gather_host,
    "gather(source: T[m, *row], index: I[*n], "
    "mode: \"raise\" | \"wrap\" | \"clip\" = \"raise\") -> T[*n, *row] "
    "where T: any, I: int32 | int64",
    "Rows of source at the given indices: NumPy's take along axis 0." CUPLUG_NEVER_WAITS);
CUPLUG_PLUGIN(gather, "1.0.0");

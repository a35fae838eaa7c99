/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of reductions and scans lie on the host: in the arrays, or gathered in blocks.
 * What stands before it is listed in reduction.h. */
#define CUPLUG_BLOCK(k, name, type) type name[BLOCK + LANES] __attribute__((aligned(64)));
typedef struct cuplug_blocks {
  CUPLUG_EACH_INPUT(CUPLUG_BLOCK)
} cuplug_blocks;

/* What a range of items shares. */
typedef struct cuplug_task {
  const cuplug_loop_call *call;
  cuplug_numbers given;
  int is_flat[N_INPUTS]; /* along the loop that is walked: the reduced one by rows, else the kept */
  int is_packed[N_INPUTS]; /* by columns: rows of outputs lie side by side */
  cuplug_blocks blocks;
} cuplug_task;

static int64_t end_of(const cuplug_loop_call *call, int64_t part) {
  return cuplug_least(call->reduced->n, (part + 1) * call->part);
}

static void start_task(cuplug_task *task, const cuplug_loop_call *call) {
  const cuplug_loop *kept = call->loop, *reduced = call->reduced;
  task->call = call;
  task->given = cuplug_read(call->scalars);
  for (int k = 0; k < N_INPUTS; k++) {
    task->is_flat[k] = cuplug_is_flat(call->by_columns ? kept : reduced, k);
    task->is_packed[k] =
        task->is_flat[k] && reduced->ndim == 1 && reduced->strides[0][k] == kept->n;
  }
}

/* ---- By rows: the elements of one output after the other ---------------------------------------
 */

static inline cuplug_places row_places(cuplug_task *task, const int64_t *offsets, int64_t begin,
                                       int64_t n) {
  const cuplug_loop_call *call = task->call;
  cuplug_places p;
#define CUPLUG_PLACE(k, name, type)                                                           \
  {                                                                                           \
    const type *data = (const type *)call->data[k] + offsets[k];                              \
    if (task->is_flat[k]) CUPLUG_ASK_FOR(data + begin + n, n);                                \
    p.name = task->is_flat[k]                                                                 \
                 ? data + begin                                                               \
                 : cuplug_gather_##type(task->blocks.name, data, call->reduced, k, begin, n); \
  }
  CUPLUG_EACH_INPUT(CUPLUG_PLACE)
#undef CUPLUG_PLACE
  return p;
}

/* The element of the reduced loop where a row begins, in each input. */
static inline void row_offsets(const cuplug_loop_call *call, int64_t output, int64_t *offsets) {
  for (int k = 0; k < N_INPUTS; k++) offsets[k] = cuplug_offset(call->loop, k, output);
}

/* ---- By columns: one element of each of many outputs, then the next ----------------------------
 */

/* Element r of an output, and the one that is asked for while that is read: AHEAD rows below, or,
 * at the end of a part, of the outputs beside. */
enum { AHEAD = 2 };
static inline int64_t row_ahead(const cuplug_loop_call *call, int64_t r, int64_t *begin,
                                int64_t m) {
  const int64_t first = r / call->part * call->part;
  const int64_t end = cuplug_least(call->reduced->n, first + call->part);
  if (r + AHEAD < end) return r + AHEAD;
  *begin += m;
  return cuplug_least(first + (r + AHEAD - end), end - 1);
}

/* `rows` elements of each of m outputs from `begin` on, the first ones with number r. */
static inline cuplug_places column_places(cuplug_task *task, int64_t begin, int64_t m, int64_t r,
                                          int64_t rows) {
  const cuplug_loop_call *call = task->call;
  cuplug_places p;
  int64_t begin_ahead = begin;
  const int64_t r_ahead = row_ahead(call, r, &begin_ahead, m);
#define CUPLUG_PLACE(k, name, type)                                                               \
  {                                                                                               \
    const type *data = (const type *)call->data[k];                                               \
    p.name = data + begin + cuplug_offset(call->reduced, k, r);                                   \
    if (task->is_flat[k] && !(task->is_packed[k] && m == call->loop->n))                          \
      CUPLUG_ASK_FOR(data + begin_ahead + cuplug_offset(call->reduced, k, r_ahead), m);           \
    if (!(rows == 1 ? task->is_flat[k] : task->is_packed[k])) {                                   \
      for (int64_t j = 0; j < rows; j++)                                                          \
        cuplug_gather_##type(task->blocks.name + j * m,                                           \
                             data + cuplug_offset(call->reduced, k, r + j), call->loop, k, begin, \
                             m);                                                                  \
      p.name = task->blocks.name;                                                                 \
    }                                                                                             \
  }
  CUPLUG_EACH_INPUT(CUPLUG_PLACE)
#undef CUPLUG_PLACE
  return p;
}

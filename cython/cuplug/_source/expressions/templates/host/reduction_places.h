/* SPDX-License-Identifier: Apache-2.0 */
/* Where the elements of reductions and scans lie on the host: in the arrays, or gathered in blocks.
 * What stands before it is listed in reduction.h. */
enum { LEAST_RUN = 64 }; /* outputs; fewer ones side by side are gathered */
enum { ROUND = 16 };     /* halves that become floats together: the last of a block are filled up */
#define CUPLUG_BLOCK(k, name, type) \
  cuplug_held_##type name[BLOCK + LANES + ROUND] __attribute__((aligned(64)));
typedef struct cuplug_blocks {
  CUPLUG_EACH_INPUT(CUPLUG_BLOCK)
} cuplug_blocks;
typedef CUPLUG_VALUES(BLOCK) cuplug_values;

/* What is too large for small stacks: besides, by columns, the numbers of elements. */
typedef struct cuplug_room {
  cuplug_blocks blocks;
  cuplug_values values, more;
  int64_t numbers[COUNTS ? BLOCK : 1];
} cuplug_room;

/* What a range of items shares. */
typedef struct cuplug_task {
  const cuplug_loop_call *call;
  cuplug_numbers given;
  int is_flat[N_INPUTS]; /* along the loop that is walked: the reduced one by rows, else the kept */
  int is_packed[N_INPUTS]; /* by columns: rows of outputs lie side by side */
  int uses_blocks;         /* not all are read where they lie: BLOCK + LANES at a time at most */
  int64_t run;             /* by columns: outputs whose elements lie together where it is flat */
  int64_t apart; /* from row to row, where that is the same in all inputs, and flat; or 0 */
  cuplug_room *room;
} cuplug_task;

static int64_t end_of(const cuplug_loop_call *call, int64_t part) {
  return cuplug_min_i64(call->reduced->n, (part + 1) * call->part);
}

/* Outputs side by side whose elements are so in all inputs: all of them, or those of the last
 * dimension, where these are enough. */
static int64_t run_of(const cuplug_loop *kept) {
  const int last = kept->ndim - 1;
  int is_flat = 1, is_flat_in_last = last >= 0 && kept->sizes[last] >= LEAST_RUN;
  for (int k = 0; k < N_INPUTS; k++) {
    is_flat &= cuplug_is_flat(kept, k);
    is_flat_in_last = is_flat_in_last && kept->strides[last][k] == 1;
  }
  return is_flat || !is_flat_in_last ? kept->n : kept->sizes[last];
}

#define CUPLUG_OR_CONVERTED(k, name, type) | CUPLUG_IS_CONVERTED_##type
enum { HAS_HALVES = 0 CUPLUG_EACH_INPUT(CUPLUG_OR_CONVERTED) };

static void start_task(cuplug_task *task, const cuplug_loop_call *call) {
  const cuplug_loop *kept = call->loop, *reduced = call->reduced;
  task->call = call;
  task->room = call->room;
  task->given = cuplug_read(call->scalars);
  task->run = call->by_columns ? run_of(kept) : 0;
  task->uses_blocks = HAS_HALVES;
  task->apart = call->by_columns && reduced->ndim == 1 ? reduced->strides[0][0] : 0;
  for (int k = 0; k < N_INPUTS; k++) {
    const int is_in_runs = call->by_columns && task->run != kept->n;
    task->is_flat[k] = is_in_runs || cuplug_is_flat(call->by_columns ? kept : reduced, k);
    task->is_packed[k] =
        task->is_flat[k] && reduced->ndim == 1 && reduced->strides[0][k] == task->run;
    task->uses_blocks |= !task->is_flat[k];
    if (!task->is_flat[k]) task->apart = 0;
    if (task->apart && task->apart != reduced->strides[0][k]) task->apart = 0;
  }
}

/* ---- By rows: the elements of one output after the other ---------------------------------------
 */

static inline cuplug_places row_places(cuplug_task *task, const int64_t *offsets, int64_t begin,
                                       int64_t n) {
  const cuplug_loop_call *call = task->call;
  cuplug_places p;
#define CUPLUG_PLACE(k, name, type)                                                     \
  {                                                                                     \
    const type *data = (const type *)call->data[k] + offsets[k];                        \
    cuplug_held_##type *block = task->room->blocks.name;                                \
    if (HAS_CHOICES && task->is_flat[k]) CUPLUG_ASK_FOR(data + begin + n, n);           \
    p.name = task->is_flat[k]                                                           \
                 ? cuplug_beside_##type(call, block, data + begin, n)                   \
                 : cuplug_gather_##type(call, block, data, call->reduced, k, begin, n); \
  }
  CUPLUG_EACH_INPUT(CUPLUG_PLACE)
#undef CUPLUG_PLACE
  return p;
}

/* The element of the reduced loop where a row begins, in each input. */
static inline void row_offsets(const cuplug_loop_call *call, int64_t output, int64_t *offsets) {
  for (int k = 0; k < N_INPUTS; k++) offsets[k] = cuplug_offset(call->loop, k, output);
}

/* The same of the output behind the last one. */
static inline void next_row(const cuplug_loop_call *call, int64_t output, int64_t *offsets) {
  if (call->loop->ndim > 1) row_offsets(call, output, offsets);
  for (int k = 0; call->loop->ndim == 1 && k < N_INPUTS; k++)
    offsets[k] += call->loop->strides[0][k];
}

/* ---- By columns: one element of each of many outputs, then the next ----------------------------
 */

/* Some outputs side by side: the first one, how many, and where their elements are. */
typedef struct cuplug_columns {
  int64_t begin, m, offsets[N_INPUTS];
} cuplug_columns;

/* How far it is to what is asked for while row r of them is read: AHEAD rows below, or, at the end
 * of a part, in the outputs beside. */
enum { AHEAD = 2 };
static inline int64_t row_ahead(const cuplug_loop_call *call, int64_t r, int64_t *beside) {
  const int64_t first = r / call->part * call->part;
  const int64_t end = cuplug_min_i64(call->reduced->n, first + call->part);
  *beside = r + AHEAD >= end;
  return *beside ? cuplug_min_i64(first + (r + AHEAD - end), end - 1) : r + AHEAD;
}

/* `rows` elements of each of them, the first ones with number r. */
static inline cuplug_places column_places(cuplug_task *task, const cuplug_columns *c, int64_t r,
                                          int64_t rows) {
  const cuplug_loop_call *call = task->call;
  const int64_t m = c->m;
  cuplug_places p;
  int64_t beside;
  const int64_t r_ahead = row_ahead(call, r, &beside);
#define CUPLUG_PLACE(k, name, type)                                                                \
  {                                                                                                \
    const type *data = (const type *)call->data[k];                                                \
    const type *here = data + c->offsets[k] + cuplug_offset(call->reduced, k, r);                  \
    cuplug_held_##type *block = task->room->blocks.name;                                           \
    const int is_beside = rows == 1 ? task->is_flat[k] : task->is_packed[k];                       \
    if (task->is_flat[k] && !(task->is_packed[k] && m == task->run))                               \
      CUPLUG_ASK_FOR(data + c->offsets[k] + cuplug_offset(call->reduced, k, r_ahead) + beside * m, \
                     m);                                                                           \
    p.name = is_beside ? cuplug_beside_##type(call, block, here, rows * m) : block;                \
    for (int64_t j = 0; !is_beside && j < rows; j++)                                               \
      cuplug_gather_##type(call, block + j * m, data + cuplug_offset(call->reduced, k, r + j),     \
                           call->loop, k, c->begin, m);                                            \
  }
  CUPLUG_EACH_INPUT(CUPLUG_PLACE)
#undef CUPLUG_PLACE
  return p;
}

/* Where the elements of those outputs lie in memory, which are flat, the first ones with number r.
 */
#define CUPLUG_STORED(k, name, type) const type *name;
typedef struct cuplug_stored {
  CUPLUG_EACH_INPUT(CUPLUG_STORED)
} cuplug_stored;
static inline cuplug_stored stored_places(const cuplug_task *task, const cuplug_columns *c,
                                          int64_t r) {
  const cuplug_loop_call *call = task->call;
  cuplug_stored p;
#define CUPLUG_PLACE(k, name, type) \
  p.name = (const type *)call->data[k] + c->offsets[k] + r * task->apart;
  CUPLUG_EACH_INPUT(CUPLUG_PLACE)
#undef CUPLUG_PLACE
  return p;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The positions of the elements of reductions and scans on the host: in the arrays, or gathered in
 * blocks. reduction.h lists the definitions that it requires. */
enum { LEAST_RUN = 64 }; /* outputs; fewer adjacent ones are gathered */
/* 16-bit floats that are converted together: the last group of a block is filled up */
enum { ROUND = 16 };
#define CUPLUG_BLOCK(k, name, type) \
  cuplug_held_##type name[BLOCK + LANES + ROUND] __attribute__((aligned(64)));
typedef struct cuplug_blocks {
  CUPLUG_EACH_INPUT(CUPLUG_BLOCK)
} cuplug_blocks;
typedef CUPLUG_VALUES(BLOCK) cuplug_values;

/* Memory that is too large for small stacks, including, by columns, the numbers of elements. */
typedef struct cuplug_room {
  cuplug_blocks blocks;
  cuplug_values values, more;
  int64_t numbers[COUNTS ? BLOCK : 1];
} cuplug_room;

/* Data shared by a range of items. */
typedef struct cuplug_task {
  const cuplug_loop_call *call;
  cuplug_numbers given;
  /* along the inner loop: the reduced one by rows, the kept one by columns */
  int is_flat[N_INPUTS];
  int is_packed[N_INPUTS]; /* by columns: rows of outputs are adjacent */
  int uses_blocks;         /* some are gathered: at most BLOCK + LANES at a time */
  int64_t run;             /* by columns: outputs whose elements are adjacent, if flat */
  /* distance between rows, if it is the same in all inputs, and they are flat; else 0 */
  int64_t apart;
  cuplug_room *room;
} cuplug_task;

static int64_t end_of(const cuplug_loop_call *call, int64_t part) {
  return cuplug_min_i64(call->reduced->n, (part + 1) * call->part);
}

/* Returns the number of adjacent outputs whose elements are adjacent in all inputs: all outputs, or
 * all in the last dimension, if there are enough. */
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

/* ---- By rows: the elements of one output after the other ------------------------------------ */

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

/* The first element of a row in each input. */
static inline void row_offsets(const cuplug_loop_call *call, int64_t output, int64_t *offsets) {
  for (int k = 0; k < N_INPUTS; k++) offsets[k] = cuplug_offset(call->loop, k, output);
}

/* The same for the next output. */
static inline void next_row(const cuplug_loop_call *call, int64_t output, int64_t *offsets) {
  if (call->loop->ndim > 1) row_offsets(call, output, offsets);
  for (int k = 0; call->loop->ndim == 1 && k < N_INPUTS; k++)
    offsets[k] += call->loop->strides[0][k];
}

/* ---- By columns: one element of each of many outputs, then the next -------------------------- */

/* Some adjacent outputs: the first one, their number, and the positions of their elements. */
typedef struct cuplug_columns {
  int64_t begin, m, offsets[N_INPUTS];
} cuplug_columns;

/* The row to prefetch while row r is read: AHEAD rows below or, at the end of a part, in the next
 * outputs. */
enum { AHEAD = 2 };
static inline int64_t row_ahead(const cuplug_loop_call *call, int64_t r, int64_t *beside) {
  const int64_t first = r / call->part * call->part;
  const int64_t end = cuplug_min_i64(call->reduced->n, first + call->part);
  *beside = r + AHEAD >= end;
  return *beside ? cuplug_min_i64(first + (r + AHEAD - end), end - 1) : r + AHEAD;
}

/* `rows` elements of each of them, the first with number r. */
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

/* The positions in memory of the elements of flat outputs, the first with number r. */
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

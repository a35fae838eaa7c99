/* SPDX-License-Identifier: Apache-2.0 */
#include "entry/elements.h"

#include "host/move.h"
#include "host/team.h"

#include <cuplug/halves.h>
#include <cuplug/nontemporal.h>
#include <cuplug/walk.h>

/* Elements; below, threads cost more than they save. Less than in the stock operators: an
 * expression may take much longer for each. */
#define PARALLEL_FROM 65536
#define GRAIN 8192        /* elements of a thread's range: a multiple of all blocks */
#define GRAIN_BYTES 32768 /* of an array, where there are no blocks */
#define WHOLE (1ll << 40) /* more elements than there are */
#define BLOCK_BYTES 8192  /* of all blocks: they lie on a thread's stack, and in the first cache */
#define ROW_FROM 256      /* shorter rows are put together in blocks */
#define ALIGNMENT 64      /* bytes, of blocks */

typedef struct operand {
  char *data;
  int64_t ahead;                                           /* bytes to what is asked for; or 0 */
  int64_t bytes;                                           /* of an element in memory */
  int64_t code_bytes;                                      /* of an element as the code has it */
  void (*load)(float *to, const uint16_t *from, size_t n); /* NULL: the code reads what is stored */
  void (*store)(uint16_t *to, const float *from, size_t n);
  int8_t is_read, is_written;
  int8_t is_raw;      /* the code reads it wherever it likes */
  int8_t is_together; /* the elements of each block lie together in memory */
  int8_t is_still;    /* one element for the whole loop */
  int8_t is_of_row;   /* the code takes one element for a row */
  int8_t is_past;     /* so large that it is stored past the caches */
  int8_t has_block;   /* the code may not meet it where it lies */
} operand;

typedef struct elements {
  const cuplug_loop_call *call;
  const cuplug_loop *loop;
  cuplug_loop_part *code;
  uint32_t n_arrays;
  int wants_groups;
  int is_by_rows; /* blocks end where rows do */
  int is_past;    /* an output is */
  int has_halves; /* elements are converted */
  int64_t room;   /* elements of a block: a power of two */
  int64_t step;   /* blocks end at multiples of it, counted from `lead` before the first element */
  int64_t grain;  /* elements of a thread's range */
  int64_t lead;
  operand of[CUPLUG_MAX_LOOP_ARRAYS];
} elements;

/* Where the loop stands: the indices, and the place of each array in elements. */
typedef struct place {
  int64_t at[CUPLUG_MAX_NDIM];
  int64_t offsets[CUPLUG_MAX_LOOP_ARRAYS];
} place;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of array k along the last dimension; 0 without dimensions. */
static int64_t last_stride(const cuplug_loop *loop, uint32_t k) {
  return loop->ndim ? loop->strides[loop->ndim - 1][k] : 0;
}

/* ---- Blocks <-> memory ----------------------------------------------------------------------- */

/* Moves m elements of array k from a place on between a block and memory, row by row. */
static void move_rows(const elements *e, uint32_t k, const place *start, char *block, int64_t m,
                      int is_write) {
  const cuplug_loop *loop = e->loop;
  const operand *x = &e->of[k];
  const int last = loop->ndim - 1;
  int64_t at[CUPLUG_MAX_NDIM];
  if (last < 0) {
    memcpy(is_write ? x->data : block, is_write ? block : x->data, (size_t)x->bytes);
    return;
  }
  memcpy(at, start->at, (size_t)loop->ndim * sizeof(*at));
  const int64_t step = last_stride(loop, k);
  int64_t offset = start->offsets[k];
  for (int64_t done = 0, n; done < m; done += n) {
    char *data = x->data + offset * x->bytes, *to = block + done * x->bytes;
    n = least(m - done, loop->sizes[last] - at[last]);
    if (is_write)
      cuplug__move(data, step * x->bytes, to, x->bytes, n, x->bytes);
    else
      cuplug__move(to, x->bytes, data, step * x->bytes, n, x->bytes);
    at[last] += n;
    offset += n * step;
    for (int d = last; d > 0 && at[d] == loop->sizes[d]; d--) {
      at[d] = 0;
      at[d - 1]++;
      offset += loop->strides[d - 1][k] - loop->sizes[d] * loop->strides[d][k];
    }
  }
}

/* ---- One block ------------------------------------------------------------------------------- */

/* What a thread has: a block of each array that needs one, and one of stored halves. */
typedef struct work {
  place place;
  void *at[CUPLUG_MAX_LOOP_ARRAYS];
  char *blocks[CUPLUG_MAX_LOOP_ARRAYS];
  uint16_t *halves;
} work;

static void locate(const elements *e, place *p, int64_t n) {
  const cuplug_loop *loop = e->loop;
  for (int d = loop->ndim - 1; d >= 0; d--) {
    const int64_t rest = d ? n / loop->sizes[d] : 0;
    p->at[d] = n - rest * loop->sizes[d];
    n = rest;
  }
  for (uint32_t k = 0; k < e->n_arrays; k++) {
    p->offsets[k] = 0;
    for (int d = 0; d < loop->ndim; d++) p->offsets[k] += p->at[d] * e->loop->strides[d][k];
  }
}

/* How many elements the next block has. */
static int64_t length(const elements *e, const place *p, int64_t begin, int64_t to) {
  const int last = e->loop->ndim - 1;
  int64_t m = least(to - begin, e->step - ((begin + e->lead) & (e->step - 1)));
  if (e->is_by_rows && last >= 0) m = least(m, e->loop->sizes[last] - p->at[last]);
  if (e->wants_groups && m > CUPLUG_GROUP) m -= m % CUPLUG_GROUP;
  return m;
}

/* Where the elements of a block lie together in memory; NULL where they do not. */
static char *direct(const elements *e, uint32_t k, const place *p) {
  const operand *x = &e->of[k];
  return x->is_together ? x->data + p->offsets[k] * x->bytes : NULL;
}

static void read_block(const elements *e, work *w, uint32_t k, int64_t m) {
  const operand *x = &e->of[k];
  char *block = w->blocks[k], *together = direct(e, k, &w->place);
  if (x->load) {
    if (!together) {
      together = (char *)w->halves;
      move_rows(e, k, &w->place, together, m, 0);
    }
    x->load((float *)(void *)block, (const uint16_t *)(const void *)together, (size_t)m);
  } else {
    move_rows(e, k, &w->place, block, m, 0);
  }
}

static void write_block(const elements *e, work *w, uint32_t k, int64_t m) {
  const operand *x = &e->of[k];
  char *block = w->blocks[k], *together = direct(e, k, &w->place);
  if (x->store) {
    char *to = together && !x->is_past ? together : (char *)w->halves;
    x->store((uint16_t *)(void *)to, (const float *)(const void *)block, (size_t)m);
    if (to == together) return;
    block = to;
  }
  if (x->is_past)
    cuplug_copy_nontemporal(together, block, (size_t)(m * x->bytes));
  else
    move_rows(e, k, &w->place, block, m, 1);
}

/* Fills a block up to whole groups with copies of its last element, which the code can take. */
static void fill_up(char *block, int64_t m, int64_t end, int64_t bytes) {
  cuplug__move(block + m * bytes, bytes, block + (m - 1) * bytes, 0, end - m, bytes);
}

/* Points the code at its elements: m of them, or whole groups up to `end`. */
static void take(const elements *e, work *w, int64_t m, int64_t end) {
  for (uint32_t k = 0; k < e->n_arrays; k++) {
    const operand *x = &e->of[k];
    char *together = direct(e, k, &w->place);
    w->at[k] = x->is_raw      ? x->data
               : x->is_of_row ? x->data + w->place.offsets[k] * x->bytes
                              : w->blocks[k];
    if (x->is_still || x->is_raw || x->is_of_row) continue;
    if (x->ahead) cuplug_prefetch(together, (size_t)(m * x->bytes), x->ahead);
    if (together && end == m && !x->load && !x->is_past) {
      w->at[k] = together;
    } else if (x->is_read) {
      read_block(e, w, k, m);
      fill_up(w->blocks[k], m, end, x->code_bytes);
    }
  }
}

static void run_blocks(const elements *e, work *w, int64_t from, int64_t to) {
  cuplug_loop_call own = *e->call;
  own.data = w->at;
  for (int64_t begin = from, m; begin < to; begin += m) {
    locate(e, &w->place, begin);
    m = length(e, &w->place, begin, to);
    const int64_t n_groups = (m + CUPLUG_GROUP - 1) / CUPLUG_GROUP;
    const int64_t end = e->wants_groups ? n_groups * CUPLUG_GROUP : m;
    take(e, w, m, end);
    e->code(&own, begin, begin + end);
    for (uint32_t k = 0; k < e->n_arrays; k++)
      if (e->of[k].is_written && w->at[k] == w->blocks[k]) write_block(e, w, k, m);
  }
  if (e->is_past) cuplug_nontemporal_fence();
}

/* ---- Threads --------------------------------------------------------------------------------- */

static int64_t room_bytes(const elements *e, uint32_t k) {
  return e->of[k].has_block ? e->room * e->of[k].code_bytes + ALIGNMENT : 0;
}

static char *aligned(char *x) { return x + (-(uintptr_t)x & (ALIGNMENT - 1)); }

static int run_range(void *context, int64_t from, int64_t to) {
  const elements *e = context;
  int64_t bytes = ALIGNMENT + (e->has_halves ? e->room * 2 : 0);
  for (uint32_t k = 0; k < e->n_arrays; k++) bytes += room_bytes(e, k);
  char memory[bytes], *next = memory;
  const int64_t n_still = least(e->room, to - from + CUPLUG_GROUP);
  work w;
  for (uint32_t k = 0; k < e->n_arrays; next += room_bytes(e, k++)) {
    const operand *x = &e->of[k];
    w.blocks[k] = aligned(next);
    if (!x->is_still) continue;
    if (x->load)
      x->load((float *)(void *)w.blocks[k], (const uint16_t *)(const void *)x->data, 1);
    else
      memcpy(w.blocks[k], x->data, (size_t)x->bytes);
    fill_up(w.blocks[k], 1, n_still, x->code_bytes);
  }
  w.halves = (uint16_t *)(void *)aligned(next);
  run_blocks(e, &w, from, to);
  return CUPLUG_OK;
}

/* ---- What is known before the loop begins -----------------------------------------------------
 */

/* Along how many dimensions an array is broadcast. */
static int n_still(const cuplug_loop *loop, uint32_t k) {
  int n = 0;
  for (int d = 0; d < loop->ndim; d++) n += loop->strides[d][k] == 0;
  return n;
}

static int is_still(const cuplug_loop *loop, uint32_t k) {
  return loop->ndim > 0 && n_still(loop, k) == loop->ndim;
}

static int is_half_type(const cuplug_tensor *t) {
  const uint32_t type = cuplug_type(t);
  return type == CUPLUG_FLOAT16 || type == CUPLUG_BFLOAT16;
}

uint64_t cuplug__elements_still(const cuplug_loop *loop, const cuplug_tensor *tensors,
                                const cuplug__roles *roles) {
  uint64_t found = 0;
  if (loop->n < PARALLEL_FROM || loop->ndim < 2 || loop->sizes[loop->ndim - 1] < ROW_FROM) return 0;
  for (uint32_t k = 0; k < roles->n_inputs; k++) {
    const int is_plain = !((roles->inout | roles->raw) >> k & 1) && !is_half_type(&tensors[k]);
    if (is_plain && !last_stride(loop, k) && !is_still(loop, k)) found |= 1ull << k;
  }
  return found;
}

static void describe(elements *e, uint32_t k, const cuplug_tensor *t, const cuplug__roles *roles) {
  operand *x = &e->of[k];
  const uint32_t type = cuplug_type(t);
  const int is_output = k >= roles->n_inputs;
  x->is_raw = roles->raw >> k & 1;
  x->is_of_row = roles->still >> k & 1;
  const int is_half = !x->is_raw && !roles->is_of_bits && is_half_type(t);
  x->data = e->call->data[k];
  x->bytes = cuplug_element_bytes(t);
  x->code_bytes = is_half ? (int64_t)sizeof(float) : x->bytes;
  x->load = type == CUPLUG_FLOAT16 ? cuplug_float16_load_block : cuplug_bfloat16_load_block;
  x->store = type == CUPLUG_FLOAT16 ? cuplug_float16_store_block : cuplug_bfloat16_store_block;
  if (!is_half) x->load = NULL, x->store = NULL;
  x->is_read = !is_output;
  x->is_written = is_output || roles->inout >> k & 1;
  x->is_still = !x->is_written && is_still(e->loop, k);
  const int flat = cuplug__loop_is_together(e->loop, k);
  x->is_together = flat || (e->is_by_rows && last_stride(e->loop, k) == 1);
  x->is_past = is_output && flat && e->loop->n >= CUPLUG_NONTEMPORAL_FROM / x->bytes;
  e->is_past |= x->is_past;
  e->has_halves |= is_half;
  if (x->is_past) e->lead = (uintptr_t)x->data % CUPLUG_LINE_BYTES / (uint64_t)x->bytes;
}

/* What a processor does not foresee: behind a row, the one below it, and what lies ahead where
 * stores go past the caches. */
static int64_t ahead_of(const elements *e, uint32_t k) {
  const cuplug_loop *loop = e->loop;
  const operand *x = &e->of[k];
  if (!x->is_read || !x->is_together) return 0;
  if (cuplug__loop_is_together(loop, k)) return e->is_past && !x->load ? CUPLUG_AHEAD_BYTES : 0;
  return loop->strides[loop->ndim - 2][k] * x->bytes;
}

/* Blocks of a size that serves all arrays: larger ones where a block costs more, by the code or by
 * arrays that are broadcast. */
static void choose_blocks(elements *e, int is_dear) {
  int64_t widest = 1, widest_stored = 1, n_blocks = 0;
  int needs_blocks = e->is_past;
  for (uint32_t k = 0; k < e->n_arrays; k++) {
    const operand *x = &e->of[k];
    if (x->code_bytes > widest) widest = x->code_bytes;
    if (x->bytes > widest_stored) widest_stored = x->bytes;
    e->of[k].has_block = 0;
    e->of[k].ahead = 0;
    if (x->is_of_row) continue;
    needs_blocks |= x->load || !x->is_together;
    e->of[k].has_block =
        !x->is_raw && (e->wants_groups || x->load || !x->is_together || x->is_still || x->is_past);
    n_blocks += e->of[k].has_block;
    e->of[k].ahead = ahead_of(e, k);
    is_dear |= !x->is_still && n_still(e->loop, k);
  }
  e->room = CUPLUG_GROUP;
  while (e->room < GRAIN && 2 * e->room * widest * n_blocks <= BLOCK_BYTES) e->room *= 2;
  e->step = needs_blocks ? e->room : WHOLE;
  e->grain = needs_blocks || widest > GRAIN_BYTES / GRAIN ? GRAIN : GRAIN_BYTES / widest;
  const int64_t past = is_dear ? e->room : CUPLUG_NONTEMPORAL_BLOCK / widest_stored;
  if (e->is_past) e->step = least(e->room, past > CUPLUG_GROUP ? past : CUPLUG_GROUP);
}

void cuplug__elements_run(const cuplug_loop_call *call, cuplug_loop_part *code,
                          const cuplug_tensor *tensors, const cuplug__roles *roles,
                          int wants_groups) {
  const cuplug_loop *loop = call->loop;
  elements e;
  e.call = call, e.loop = loop, e.code = code;
  e.n_arrays = loop->n_arrays;
  e.wants_groups = wants_groups;
  e.is_by_rows = loop->ndim < 2 || loop->sizes[loop->ndim - 1] >= ROW_FROM;
  e.is_past = e.has_halves = 0;
  e.lead = 0;
  /* The first bound is for compilers, which do not know that a signature has no more. */
  for (uint32_t k = 0; k < CUPLUG_MAX_LOOP_ARRAYS && k < e.n_arrays; k++)
    describe(&e, k, &tensors[k], roles);
  choose_blocks(&e, roles->is_dear);
  if (loop->n < PARALLEL_FROM || cuplug__team_threads() == 1)
    run_range(&e, 0, loop->n);
  else
    (void)cuplug__team_run(loop->n, e.grain, run_range, &e);
}

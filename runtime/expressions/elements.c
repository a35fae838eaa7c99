/* SPDX-License-Identifier: Apache-2.0 */
#include "expressions/elements.h"

#include "base/core.h"

#include <cuplug/halves.h>
#include <cuplug/nontemporal.h>
#include <cuplug/walk.h>
#include <stdlib.h>

/* Elements; below, threads cost more than they save. Less than in the stock operators: an
 * expression may take much longer for each. */
#define PARALLEL_FROM 65536
#define GRAIN 8192        /* elements of a thread's range: a multiple of all blocks */
#define GRAIN_BYTES 32768 /* of an array, if there are no blocks */
#define WHOLE (1ll << 40) /* more elements than there are */
#define BLOCK_BYTES 8192  /* of all blocks: on a thread's stack, and in the first-level cache */
#define ROW_FROM 256      /* shorter rows are combined in blocks */
#define ALIGNMENT 64      /* bytes, of blocks */

typedef struct operand {
  cuplug__view view;  /* in the order of the loop */
  int64_t ahead;      /* distance in bytes of prefetches; or 0 */
  int64_t bytes;      /* of an element in memory */
  int64_t code_bytes; /* of an element in the code */
  /* Conversions; NULL: the code reads the stored elements. */
  void (*load)(float *to, const uint16_t *from, size_t n);
  void (*store)(uint16_t *to, const float *from, size_t n);
  int8_t is_read, is_written;
  int8_t is_raw;         /* the code reads it at any index */
  int8_t is_together;    /* the elements of each block are contiguous */
  int8_t is_still;       /* one element for the whole loop */
  int8_t is_of_row;      /* the code takes one element for a row */
  int8_t is_nontemporal; /* so large that stores bypass the caches */
  int8_t has_block;      /* the code may not read or write it in place */
} operand;

typedef struct elements {
  const cuplug_loop_call *call;
  const cuplug_loop *loop;
  cuplug_loop_part *code;
  uint32_t n_arrays;
  int wants_groups;
  int is_nontemporal; /* an output is */
  int has_halves;     /* elements are converted */
  int64_t row;        /* elements of a row, where blocks end where rows do; or 0 */
  int64_t room;       /* elements of a block: a power of two */
  int64_t step;  /* blocks end at multiples of it, counted from `lead` before the first element */
  int64_t grain; /* elements of a thread's range */
  int64_t lead;
  operand *of;
} elements;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Of array k along the last dimension; 0 without dimensions. */
static int64_t last_stride(const cuplug_loop *loop, uint32_t k) {
  return loop->ndim ? loop->strides[loop->ndim - 1][k] : 0;
}

/* ---- One block ------------------------------------------------------------------------------- */

/* The memory of a thread: a block of each array that needs one, and one of 16-bit floats. */
typedef struct work {
  void *at[CUPLUG_MAX_LOOP_ARRAYS];
  char *blocks[CUPLUG_MAX_LOOP_ARRAYS];
  uint16_t *halves;
} work;

/* The number of elements in the next block. */
static int64_t length(const elements *e, int64_t begin, int64_t to) {
  int64_t m = least(to - begin, e->step - ((begin + e->lead) & (e->step - 1)));
  if (e->row) m = least(m, e->row - begin % e->row);
  if (e->wants_groups && m > CUPLUG_GROUP) m -= m % CUPLUG_GROUP;
  return m;
}

static uint64_t first_byte(const operand *x, int64_t begin) { return (uint64_t)(begin * x->bytes); }

/* The contiguous elements of a block in memory; NULL if they are not contiguous. */
static char *direct(const operand *x, int64_t begin) {
  return x->is_together ? core->view_place(&x->view, first_byte(x, begin)) : NULL;
}

static void read_block(const work *w, const operand *x, char *block, int64_t begin, int64_t m) {
  char *together = x->load ? direct(x, begin) : NULL;
  char *to = x->load ? (char *)w->halves : block;
  if (!together) core->view_copy(&x->view, 0, first_byte(x, begin), first_byte(x, m), to);
  if (x->load)
    x->load((float *)(void *)block, (const uint16_t *)(const void *)(together ? together : to),
            (size_t)m);
}

static void write_block(const work *w, const operand *x, char *block, int64_t begin, int64_t m) {
  char *together = direct(x, begin);
  if (x->store) {
    char *to = together && !x->is_nontemporal ? together : (char *)w->halves;
    x->store((uint16_t *)(void *)to, (const float *)(const void *)block, (size_t)m);
    if (to == together) return;
    block = to;
  }
  if (x->is_nontemporal)
    cuplug_copy_nontemporal(together, block, (size_t)(m * x->bytes));
  else
    core->view_copy(&x->view, 1, first_byte(x, begin), first_byte(x, m), block);
}

/* Fills a block up to whole groups with copies of its last element, which the code can take. */
static void fill_up(char *block, int64_t m, int64_t end, int64_t bytes) {
  core->move(block + m * bytes, bytes, block + (m - 1) * bytes, 0, end - m, bytes);
}

/* Points the code at its elements: m of them, or whole groups up to `end`. */
static void take(const elements *e, work *w, int64_t begin, int64_t m, int64_t end) {
  for (uint32_t k = 0; k < e->n_arrays; k++) {
    const operand *x = &e->of[k];
    w->at[k] = x->is_raw      ? x->view.data
               : x->is_of_row ? core->view_place(&x->view, first_byte(x, begin))
                              : w->blocks[k];
    if (x->is_still || x->is_raw || x->is_of_row) continue;
    char *together = direct(x, begin);
    if (x->ahead) cuplug_prefetch(together, (size_t)(m * x->bytes), x->ahead);
    if (together && end == m && !x->load && !x->is_nontemporal) {
      w->at[k] = together;
    } else if (x->is_read) {
      read_block(w, x, w->blocks[k], begin, m);
      fill_up(w->blocks[k], m, end, x->code_bytes);
    }
  }
}

static void run_blocks(const elements *e, work *w, int64_t from, int64_t to) {
  cuplug_loop_call own = *e->call;
  own.data = w->at;
  for (int64_t begin = from, m; begin < to; begin += m) {
    m = length(e, begin, to);
    const int64_t n_groups = (m + CUPLUG_GROUP - 1) / CUPLUG_GROUP;
    const int64_t end = e->wants_groups ? n_groups * CUPLUG_GROUP : m;
    take(e, w, begin, m, end);
    e->code(&own, begin, begin + end);
    for (uint32_t k = 0; k < e->n_arrays; k++)
      if (e->of[k].is_written && w->at[k] == w->blocks[k])
        write_block(w, &e->of[k], w->blocks[k], begin, m);
  }
  if (e->is_nontemporal) cuplug_nontemporal_fence();
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
      x->load((float *)(void *)w.blocks[k], (const uint16_t *)(const void *)x->view.data, 1);
    else
      memcpy(w.blocks[k], x->view.data, (size_t)x->bytes);
    fill_up(w.blocks[k], 1, n_still, x->code_bytes);
  }
  w.halves = (uint16_t *)(void *)aligned(next);
  run_blocks(e, &w, from, to);
  return CUPLUG_OK;
}

/* ---- Before the loop begins ------------------------------------------------------------------ */

/* The number of dimensions along which an array is broadcast. */
static int n_still(const cuplug_loop *loop, uint32_t k) {
  int n = 0;
  for (int d = 0; d < loop->ndim; d++) n += loop->strides[d][k] == 0;
  return n;
}

static int is_half_type(const cuplug_tensor *t) {
  const uint32_t type = cuplug_type(t);
  return type == CUPLUG_FLOAT16 || type == CUPLUG_BFLOAT16;
}

uint64_t cuplug__row_constant_inputs(const cuplug_loop *loop, const cuplug_tensor *tensors,
                                     const cuplug__roles *roles) {
  uint64_t found = 0;
  if (loop->n < PARALLEL_FROM || loop->ndim < 2 || loop->sizes[loop->ndim - 1] < ROW_FROM) return 0;
  for (uint32_t k = 0; k < roles->n_inputs; k++) {
    const int is_plain = !((roles->inout | roles->raw) >> k & 1) && !is_half_type(&tensors[k]);
    if (is_plain && !last_stride(loop, k) && n_still(loop, k) < loop->ndim) found |= 1ull << k;
  }
  return found;
}

static void describe(elements *e, uint32_t k, const cuplug_tensor *t, const cuplug__roles *roles) {
  operand *x = &e->of[k];
  const uint32_t type = cuplug_type(t);
  const int is_output = k >= roles->n_inputs;
  x->is_raw = roles->raw >> k & 1;
  x->is_of_row = roles->still >> k & 1;
  const int is_half = !x->is_raw && !roles->takes_raw_halves && is_half_type(t);
  x->bytes = cuplug_element_bytes(t);
  core->view_bytes(&x->view, e->call->data[k], (uint64_t)x->bytes);
  for (int d = e->loop->ndim - 1; d >= 0; d--)
    core->view_add(&x->view, e->loop->sizes[d], e->loop->strides[d][k] * x->bytes);
  x->code_bytes = is_half ? (int64_t)sizeof(float) : x->bytes;
  x->load = type == CUPLUG_FLOAT16 ? cuplug_float16_load_block : cuplug_bfloat16_load_block;
  x->store = type == CUPLUG_FLOAT16 ? cuplug_float16_store_block : cuplug_bfloat16_store_block;
  if (!is_half) x->load = NULL, x->store = NULL;
  x->is_read = !is_output;
  x->is_written = is_output || roles->inout >> k & 1;
  x->is_still = !x->is_written && e->loop->ndim > 0 && n_still(e->loop, k) == e->loop->ndim;
  const int flat = cuplug__view_is_contiguous(&x->view);
  x->is_together = flat || (e->row && last_stride(e->loop, k) == 1);
  x->is_nontemporal = is_output && flat && e->loop->n >= CUPLUG_NONTEMPORAL_FROM / x->bytes;
  e->is_nontemporal |= x->is_nontemporal;
  e->has_halves |= is_half;
  if (x->is_nontemporal) e->lead = (uintptr_t)x->view.data % CUPLUG_LINE_BYTES / (uint64_t)x->bytes;
}

/* Addresses that a processor does not prefetch: after a row, the one below it, and, for stores that
 * bypass the cache, the elements ahead. */
static int64_t ahead_of(const elements *e, uint32_t k) {
  const operand *x = &e->of[k];
  if (!x->is_read || !x->is_together) return 0;
  if (cuplug__view_is_contiguous(&x->view))
    return e->is_nontemporal && !x->load ? CUPLUG_AHEAD_BYTES : 0;
  return e->loop->strides[e->loop->ndim - 2][k] * x->bytes;
}

/* The size of blocks for all arrays: larger if arrays that are broadcast make a block expensive. */
static void choose_blocks(elements *e) {
  int64_t widest = 1, widest_stored = 1, n_blocks = 0;
  int is_expensive = 0;
  int needs_blocks = e->is_nontemporal;
  for (uint32_t k = 0; k < e->n_arrays; k++) {
    const operand *x = &e->of[k];
    if (x->code_bytes > widest) widest = x->code_bytes;
    if (x->bytes > widest_stored) widest_stored = x->bytes;
    e->of[k].has_block = 0;
    e->of[k].ahead = 0;
    if (x->is_of_row) continue;
    needs_blocks |= x->load || !x->is_together;
    e->of[k].has_block = !x->is_raw && (e->wants_groups || x->load || !x->is_together ||
                                        x->is_still || x->is_nontemporal);
    n_blocks += e->of[k].has_block;
    e->of[k].ahead = ahead_of(e, k);
    is_expensive |= !x->is_still && n_still(e->loop, k);
  }
  e->room = CUPLUG_GROUP;
  while (e->room < GRAIN && 2 * e->room * widest * n_blocks <= BLOCK_BYTES) e->room *= 2;
  e->step = needs_blocks ? e->room : WHOLE;
  e->grain = needs_blocks || widest > GRAIN_BYTES / GRAIN ? GRAIN : GRAIN_BYTES / widest;
  const int64_t past = is_expensive ? e->room : CUPLUG_NONTEMPORAL_BLOCK / widest_stored;
  if (e->is_nontemporal) e->step = least(e->room, past > CUPLUG_GROUP ? past : CUPLUG_GROUP);
}

static void run(const cuplug_loop_call *call, cuplug_loop_part *code, const cuplug_tensor *tensors,
                const cuplug__roles *roles, int wants_groups, operand *of) {
  const cuplug_loop *loop = call->loop;
  elements e = {.call = call,
                .loop = loop,
                .code = code,
                .n_arrays = loop->n_arrays,
                .wants_groups = wants_groups,
                .of = of};
  if (loop->ndim > 1 && loop->sizes[loop->ndim - 1] >= ROW_FROM)
    e.row = loop->sizes[loop->ndim - 1];
  for (uint32_t k = 0; k < e.n_arrays; k++) describe(&e, k, &tensors[k], roles);
  choose_blocks(&e);
  if (loop->n < PARALLEL_FROM || core->team_threads() == 1)
    run_range(&e, 0, loop->n);
  else
    (void)core->team_run(loop->n, e.grain, run_range, &e);
}

int cuplug__elements_run(const cuplug_loop_call *call, cuplug_loop_part *code,
                         const cuplug_tensor *tensors, const cuplug__roles *roles, int wants_groups,
                         cuplug_error *error) {
  operand few[8]; /* an operand has a kilobyte, and stacks may be small */
  const uint32_t n = call->loop->n_arrays;
  operand *of = n <= sizeof few / sizeof *few ? few : malloc(n * sizeof *of);
  if (!of) return core->no_memory(error, "an element-wise call");
  run(call, code, tensors, roles, wants_groups, of);
  if (of != few) free(of);
  return CUPLUG_OK;
}

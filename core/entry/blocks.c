/* SPDX-License-Identifier: Apache-2.0 */
#include "entry/blocks.h"

#include "arguments/bind.h"
#include "arguments/shapes.h"
#include "base/layout.h"
#include "entry/entry.h"
#include "host/thread_pool.h"
#include "host/view.h"

#include <cuplug/nontemporal.h>
#include <cuplug/walk.h>

#define MAX_ARRAYS 8        /* a view has a kilobyte, and stacks may be small */
#define PARALLEL_FROM 65536 /* elements; below, threads cost more than they save */
#define GRAIN 8192          /* elements of a thread's range: a multiple of all blocks */
#define BLOCK_BYTES 8192    /* of all copied blocks: on the stack, in the first-level cache */
#define SMALLEST 64         /* elements of a block */
#define ROW_FROM 256        /* elements of rows at which blocks end */
_Static_assert(MAX_ARRAYS *SMALLEST * sizeof(double _Complex) <= BLOCK_BYTES, "all have room");

typedef struct array {
  cuplug__view view; /* in the order of the loop */
  int64_t bytes;     /* of an element */
  int64_t ahead;     /* distance in bytes of the row below, which is prefetched; or 0 */
  int is_output, is_written;
  int is_together;    /* the elements of each block are contiguous */
  int is_nontemporal; /* so large that stores bypass the caches */
} array;

/* The state that the threads share. */
typedef struct blocks {
  const cuplug__run *run; /* its error is the error of the first block that failed */
  atomic_flag has_failed;
  int64_t row;  /* elements of a row, at whose end a block ends; or 0 */
  int64_t room; /* elements of a block: a power of two */
  int64_t lead; /* blocks end at multiples of it, counted from `lead` before the first element */
  int64_t room_bytes; /* of an array's block */
  uint32_t n_arrays;
  array of[MAX_ARRAYS];
} blocks;

/* ---- Which calls ----------------------------------------------------------------------------- */

/* Transposed arrays are copied in tiles: rows of their elements share lines of the cache. */
static int can_be_moved(const cuplug_tensor *x) {
  const uint32_t is_complex = x->dtype.code == CUPLUG_COMPLEX64 >> 24;
  const uintptr_t alignment = (uintptr_t)cuplug_element_bytes(x) >> is_complex;
  cuplug__view view;
  if (!x->data || (uintptr_t)x->data & (alignment - 1)) return 0;
  cuplug__view_array(&view, x);
  return !cuplug__view_is_transposed(&view);
}

int cuplug__can_run_in_blocks(const cuplug_frame *f) {
  const cuplug_overload *row = f->op->overloads[f->row].row;
  if (!(row->flags & CUPLUG_OVERLOAD_NONBLOCKING) || !*row->host_entry ||
      f->signature->optional_outputs || f->n_tensors > MAX_ARRAYS || !cuplug__is_elementwise(f))
    return 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (f->copy_mask >> k & 1 && !can_be_moved(&f->tensors[k])) return 0;
  return 1;
}

/* ---- A thread's range ------------------------------------------------------------------------ */

static uint64_t first_byte(const array *x, int64_t begin) { return (uint64_t)(begin * x->bytes); }

static char *place(const array *x, int64_t begin) {
  return cuplug__view_place(&x->view, first_byte(x, begin));
}

static int has_block(const array *x) { return !x->is_together || x->is_nontemporal; }

static int64_t length(const blocks *b, int64_t begin, int64_t to) {
  int64_t m = b->room - ((begin + b->lead) & (b->room - 1));
  if (b->row && m > b->row - begin % b->row) m = b->row - begin % b->row;
  return m < to - begin ? m : to - begin;
}

/* The entry's arrays: their own memory, or copies in `memory`. */
static void read_block(const blocks *b, cuplug_tensor *tensors, int64_t begin, char *memory) {
  for (uint32_t k = 0; k < b->n_arrays; k++) {
    const array *x = &b->of[k];
    tensors[k].data = has_block(x) ? memory : place(x, begin);
    const uint64_t bytes = first_byte(x, *tensors->shape);
    if (x->ahead) cuplug_prefetch(tensors[k].data, bytes, x->ahead);
    if (!has_block(x)) continue;
    memory += b->room_bytes;
    if (!x->is_output) cuplug__view_copy(&x->view, 0, first_byte(x, begin), bytes, tensors[k].data);
  }
}

static void write_block(const blocks *b, const cuplug_tensor *tensors, int64_t begin) {
  for (uint32_t k = 0; k < b->n_arrays; k++) {
    const array *x = &b->of[k];
    const uint64_t bytes = first_byte(x, *tensors->shape);
    if (x->is_nontemporal)
      cuplug_copy_nontemporal(place(x, begin), tensors[k].data, bytes);
    else if (x->is_written && has_block(x))
      cuplug__view_copy(&x->view, 1, first_byte(x, begin), bytes, tensors[k].data);
  }
}

static int run_range(void *context, int64_t from, int64_t to) {
  blocks *b = context;
  const cuplug_tensor *tensors = b->run->tensors;
  _Alignas(64) char memory[BLOCK_BYTES];
  int64_t m;
  cuplug_error error;
  cuplug_tensor own[MAX_ARRAYS];
  cuplug__run run = {.frame = b->run->frame,
                     .overload = b->run->overload,
                     .error = &error,
                     .device = b->run->device,
                     .tensors = own,
                     .is_failing = ATOMIC_FLAG_INIT};
  for (uint32_t k = 0; k < b->n_arrays; k++)
    own[k] = (cuplug_tensor){
        .device = tensors[k].device, .ndim = 1, .dtype = tensors[k].dtype, .shape = &m};
  for (int64_t begin = from; begin < to; begin += m) {
    m = length(b, begin, to);
    read_block(b, own, begin, memory);
    cuplug__clear(&error);
    const int status = cuplug__call_entry(&run);
    if (status && !atomic_flag_test_and_set(&b->has_failed)) *b->run->error = error;
    if (status) return status;
    write_block(b, own, begin);
  }
  cuplug_nontemporal_fence();
  return CUPLUG_OK;
}

/* ---- All blocks ------------------------------------------------------------------------------ */

static void describe(blocks *b, uint32_t k, const cuplug_loop *loop) {
  const cuplug_tensor *t = &b->run->tensors[k];
  const int last = loop->ndim - 1;
  array *x = &b->of[k];
  x->bytes = cuplug_element_bytes(t);
  cuplug__view_bytes(&x->view, t->data, (uint64_t)x->bytes);
  for (int d = last; d >= 0; d--)
    cuplug__view_add(&x->view, loop->sizes[d], loop->strides[d][k] * x->bytes);
  const int is_contiguous = cuplug__view_is_contiguous(&x->view);
  x->is_output = k >= b->run->frame->n_inputs;
  x->is_written = cuplug__is_written(b->run, k);
  x->is_together = is_contiguous || (b->row && loop->strides[last][k] == 1);
  const int has_gaps = x->is_together && !is_contiguous;
  x->ahead = has_gaps && !x->is_output ? loop->strides[last - 1][k] * x->bytes : 0;
  x->is_nontemporal =
      x->is_output && is_contiguous && loop->n >= CUPLUG_NONTEMPORAL_FROM / x->bytes;
  if (x->is_nontemporal) b->lead = (uintptr_t)t->data % CUPLUG_LINE_BYTES / (uint64_t)x->bytes;
}

int cuplug__call_for_blocks(cuplug__run *run) {
  cuplug_frame *f = run->frame;
  cuplug_loop loop;
  blocks b; /* not cleared: it has kilobytes */
  int64_t widest = 1, n_blocks = 0;
  cuplug__broadcast_inputs(f);
  cuplug__write_strides(f);
  const int32_t ndim = f->tensors[0].ndim;
  long long strides[ndim + 1][CUPLUG_MAX_LOOP_ARRAYS];
  cuplug__loop_start(&loop, f->n_tensors, strides);
  for (int32_t d = 0; d < ndim; d++) cuplug__loop_add(&loop, f->tensors, d, 0);
  cuplug__loop_collapse(&loop, 1);
  const int64_t row = loop.ndim > 1 ? loop.sizes[loop.ndim - 1] : 0;
  b.run = run;
  atomic_flag_clear(&b.has_failed);
  b.n_arrays = f->n_tensors;
  b.row = row >= ROW_FROM ? row : 0;
  b.lead = 0;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    describe(&b, k, &loop);
    n_blocks += has_block(&b.of[k]);
    if (b.of[k].bytes > widest) widest = b.of[k].bytes;
  }
  b.room = SMALLEST;
  while (b.room < GRAIN && 2 * b.room * widest * n_blocks <= BLOCK_BYTES) b.room *= 2;
  b.room_bytes = b.room * widest;
  const int status =
      cuplug__team_run(loop.n, loop.n < PARALLEL_FROM ? loop.n : GRAIN, run_range, &b);
  return status ? run->error->status : CUPLUG_OK;
}

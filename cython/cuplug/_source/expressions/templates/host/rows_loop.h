/* SPDX-License-Identifier: Apache-2.0 */
/* All rows of a call. Included after rows.h and `cuplug_row`. */
enum { CUPLUG_ROWS_FROM = 32768, CUPLUG_ROWS_GRAIN = 8192 }; /* elements: see strided_blocks.h */

/* Copies inputs that are not contiguous, and converts 16-bit floats, to the row's memory. Values
 * that rows share are still there from the previous row. */
static void cuplug_place_row(const cuplug_loop_call *call, cuplug_row_call *row, int64_t number,
                             int is_first) {
  char *own = (char *)(row->room + 1);
  for (int k = 0; k < N_ARRAYS; k++)
    row->data[k] = (char *)call->data[k] + cuplug_offset(call->loop, k, number) * BYTES[k];
#define CUPLUG_PLACE_AT(k, name, stored, held, kind)                         \
  {                                                                          \
    const int64_t step = row->steps[k], count = FIXED >> k & 1 ? 1 : row->n; \
    const stored *from = (const stored *)row->data[k];                       \
    held *const to = (void *)own;                                            \
    const int is_there = CUPLUG_IS_##kind && (step == 1 || count == 1);      \
    if (!is_there && (is_first || before[k] != row->data[k])) {              \
      CUPLUG_BRING_##kind(to, from, step, count);                            \
      before[k] = row->data[k];                                              \
    }                                                                        \
    row->places.name = is_there ? (const void *)from : to;                   \
    own += sizeof(held) * cuplug_room_of(row->n);                            \
  }
  const char **const before = row->before;
  CUPLUG_EACH_INPUT(CUPLUG_PLACE_AT)
  row->kept = own;
}

static void cuplug_rows_in_room(const cuplug_loop_call *call, long long from, long long to) {
  cuplug_row_call row;
  row.given = cuplug_read(call->scalars);
  row.n = call->reduced->n;
  row.steps = call->reduced->strides[0];
  row.room = call->room;
  for (long long number = from; number < to; number++) {
    cuplug_place_row(call, &row, number, number == from);
    cuplug_row(&row);
  }
}

static void cuplug_rows(const cuplug_loop_call *call, long long from, long long to) {
  const int64_t n = cuplug_room_of(call->reduced->n);
  call->with_room(call, sizeof(cuplug_room) + (HELD_BYTES + KEPT_BYTES) * n, cuplug_rows_in_room,
                  from, to);
}

void cuplug_function(const cuplug_loop_call *call) {
  const int64_t n_rows = call->loop->n, n = call->reduced->n + (call->reduced->n == 0);
  if (n_rows < 2 || n_rows < CUPLUG_ROWS_FROM / n)
    cuplug_rows(call, 0, n_rows);
  else
    call->parallel(call, cuplug_rows, n_rows, CUPLUG_ROWS_GRAIN / n + (n > CUPLUG_ROWS_GRAIN));
}

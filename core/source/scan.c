/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of scans that are compiled from expressions. Lines lie along one axis; they are cut
 * into parts where they are few: what each part comes to is put together first, and then each goes
 * on from what came before it. */
#include "base/status.h"
#include "entry/run.h"
#include "source/loop.h"
#include "source/packs.h"
#include "source/variant.h"

#include <internal/source.h>
#include <inttypes.h>
#include <string.h>

#define N_HOST_ITEMS 64
#define HOST_BLOCK 1024
#define N_HOST_LEAST 32768 /* elements of a part: it is read twice */
#define N_BLOCKS_WANTED 1024
#define N_ROW_LEAST 16384 /* elements of a part of a block's, and of a thread's */
#define N_COLUMN_LEAST 64

typedef struct scan {
  const cuplug_call *call;
  cuplug_source *source;
  cuplug_loop lines, scanned;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  long long n_parts, part;
  void *partials;
  const cuplug_code *code;
} scan;

static int read_loops(scan *s) {
  const cuplug_call *call = s->call;
  const int32_t ndim = call->tensors[0].ndim;
  const int64_t given = call->scalars[call->n_scalars - 1].i;
  const int64_t axis = given < 0 ? given + ndim : given;
  if (axis < 0 || axis >= ndim)
    return cuplug__fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE,
                        "axis: seen %" PRId64 " of %d dimensions, wanted %d <= axis < %d", given,
                        ndim, -ndim, ndim);
  for (int32_t d = 0; d < ndim; d++)
    cuplug__loop_add(d == axis ? &s->scanned : &s->lines, call->tensors, d, 0);
  for (uint32_t k = 0; k < call->n_tensors; k++) s->data[k] = call->tensors[k].data;
  if (s->lines.n) cuplug__loop_collapse(&s->lines, 1);
  return CUPLUG_OK;
}

/* Whether the outputs of neighbouring lines lie side by side. */
static int is_by_columns(const scan *s) {
  for (uint32_t k = s->call->n_tensors - s->source->n_outputs; k < s->call->n_tensors; k++)
    if (s->lines.ndim != 1 || s->lines.strides[0][k] != 1) return 0;
  return 1;
}

static int cut(scan *s, long long wanted, long long least) {
  const long long n = s->scanned.n, most = n / least > 1 ? n / least : 1;
  if (wanted > most) wanted = most;
  s->part = (n + wanted - 1) / wanted;
  s->n_parts = (n + s->part - 1) / s->part;
  s->partials = NULL;
  if (s->n_parts < 2) return CUPLUG_OK;
  s->partials = cuplug_workspace(s->call, (uint64_t)s->source->accumulator_bytes *
                                              (uint64_t)(s->lines.n * s->n_parts));
  return s->partials ? CUPLUG_OK : CUPLUG_ERROR_MEMORY;
}

typedef int scanner(scan *s, cuplug_variant *variant);

static int run(scanner *go, const cuplug_call *call) {
  CUPLUG__LOOP_STRIDES(lines, call->tensors[0].ndim);
  CUPLUG__LOOP_STRIDES(scanned, 1);
  scan s;
  cuplug_variant variant;
  s.call = call;
  s.source = cuplug_entry_context(call);
  cuplug__loop_start(&s.lines, call->n_tensors, lines);
  cuplug__loop_start(&s.scanned, call->n_tensors, scanned);
  memset(scanned, 0, sizeof(scanned)); /* of a line of one element, too */
  int status = read_loops(&s);
  if (status || !s.lines.n || !s.scanned.n) return status;
  cuplug__variant_start(&variant, call);
  variant.columns = (uint8_t)is_by_columns(&s);
  return go(&s, &variant);
}

static int scan_on_host(scan *s, cuplug_variant *v) {
  const int by_columns = v->columns;
  v->columns = 0; /* the same code does both */
  int status = cuplug__variant_find(s->source, v, &s->code, cuplug__error_of(s->call));
  if (status) return status;
  const long long items = by_columns ? (s->lines.n + HOST_BLOCK - 1) / HOST_BLOCK : s->lines.n;
  const long long least = by_columns ? (N_HOST_LEAST + s->lines.n - 1) / s->lines.n : N_HOST_LEAST;
  if ((status = cut(s, (N_HOST_ITEMS + items - 1) / items, least))) return status;
  cuplug_loop_call arguments = {.data = s->data,
                                .scalars = s->call->scalars,
                                .loop = &s->lines,
                                .reduced = &s->scanned,
                                .partials = s->partials,
                                .n_parts = s->n_parts,
                                .part = s->part,
                                .by_columns = by_columns};
  return cuplug__variant_run(s->call, s->code, &arguments);
}

int cuplug_scan_host(const cuplug_call *call) { return run(scan_on_host, call); }

static int launch(scan *s, const cuplug_variant *v) {
  struct {
    void *data[CUPLUG_MAX_LOOP_ARRAYS];
  } arrays;
  cuplug_divisor lines[s->lines.ndim + 1];
  long long steps[(uint32_t)(s->lines.ndim + 1) * s->lines.n_arrays];
  const long long of_block = v->columns ? CUPLUG__N_THREADS : 1;
  const long long n_blocks = (s->lines.n + of_block - 1) / of_block;
  int status = cut(s, (N_BLOCKS_WANTED + n_blocks - 1) / n_blocks,
                   v->columns ? N_COLUMN_LEAST : N_ROW_LEAST);
  if (status) return status;
  if (n_blocks > INT32_MAX)
    return cuplug__fail(cuplug__error_of(s->call), CUPLUG_ERROR_VALUE,
                        "seen %lld lines, wanted at most %lld", s->lines.n, INT32_MAX * of_block);
  memcpy(arrays.data, s->data, sizeof(s->data));
  cuplug__loop_pack(&s->lines, lines, steps);
  cuplug_grid g = {.blocks = {(uint32_t)n_blocks, (uint32_t)s->n_parts - 1, 1},
                   .threads = {CUPLUG__N_THREADS, 1, 1}};
  void *arguments[] = {
      &arrays, (void *)s->call->scalars, &s->lines.n, &s->scanned.n, &s->part, lines,
      steps,   s->scanned.strides[0],    &s->partials};
  if (s->n_parts > 1)
    status = CUPLUG__SERVICE(s->call, launch)(s->call, s->code->function, &g, arguments);
  g.blocks[1] = (uint32_t)s->n_parts;
  return status ? status
                : CUPLUG__SERVICE(s->call, launch)(s->call, s->code->finish, &g, arguments);
}

static int scan_on_cuda(scan *s, cuplug_variant *v) {
  v->width = 1;
  v->ndim = (uint8_t)s->lines.ndim;
  v->wide = s->lines.n >= 1ll << 30;
  int status = cuplug__variant_find(s->source, v, &s->code, cuplug__error_of(s->call));
  return status ? status : launch(s, v);
}

int cuplug_scan_cuda(const cuplug_call *call) { return run(scan_on_cuda, call); }

/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of element-wise operators that are compiled from an expression. */
#include "base/core.h"
#include "base/layout.h"
#include "entry/run.h"
#include "expressions/elements.h"
#include "expressions/loop.h"
#include "expressions/packs.h"
#include "expressions/variant.h"

#include <runtime/expressions.h>
#include <string.h>

#define N_PLAIN 65535 /* elements of a contiguous call that one thread computes directly */
#define N_HELD 2048   /* threads that a multiprocessor of a GPU holds at once */
#define COPIED_BYTES ((uint64_t)4 << 20) /* smaller transposed inputs are read in place */
#define OF_FLOATS 4 /* elements of a pack; functions of half and double precision take longer */

/* Returns whether no strides exist: arrays that are not raw are C-contiguous and of one shape. */
static inline int is_flat(const cuplug_call *call) {
  for (uint32_t k = 0; k < call->n_tensors; k++)
    if (call->tensors[k].strides) return 0;
  return 1;
}

/* The first array that is not raw, which has the number of elements. */
static inline void read_flat(const cuplug_call *call, uint64_t raw, cuplug_loop *loop,
                             void **data) {
#define ONES 1, 1, 1, 1, 1, 1, 1, 1
  static long long strides[1][CUPLUG_MAX_LOOP_ARRAYS] = {
      {ONES, ONES, ONES, ONES, ONES, ONES, ONES, ONES}};
  loop->strides = strides;
  loop->n_arrays = call->n_tensors;
  loop->n = loop->sizes[0] = cuplug_n_elements(&call->tensors[__builtin_ctzll(~raw)]);
  loop->ndim = loop->n != 1;
  for (uint32_t k = 0; k < call->n_tensors; k++) data[k] = call->tensors[k].data;
}

/* The number of the array whose dimension order is best for all. */
static uint32_t first_written(const cuplug_call *call) {
  uint32_t k = 0;
  while (!cuplug__is_written(call->run, k)) k++;
  return k;
}

/* `strides` has memory for all dimensions. */
static void read_loop(const cuplug_call *call, const cuplug_source *source, cuplug_loop *loop,
                      long long (*strides)[CUPLUG_MAX_LOOP_ARRAYS], void **data) {
  core->write_strides(((const cuplug__run *)call->run)->frame);
  cuplug__loop_start(loop, call->n_tensors, strides);
  for (uint32_t k = 0; k < call->n_tensors; k++) data[k] = call->tensors[k].data;
  for (int32_t d = 0; d < call->tensors[0].ndim; d++) cuplug__loop_add(loop, call->tensors, d, 0);
  if (!source->in_order) cuplug__loop_sort(loop, first_written(call));
  cuplug__loop_merge(loop);
}

/* Returns the call's scalars, followed in `numbers` by the sizes that the code requires, if any. */
static inline int read_scalars(const cuplug_call *call, const cuplug_source *source,
                               cuplug_scalar *numbers, const cuplug_scalar **scalars) {
  *scalars = call->scalars;
  if (!source->n_sizes) return CUPLUG_OK;
  *scalars = numbers;
  for (uint32_t k = 0; k < call->n_scalars; k++) numbers[k] = call->scalars[k];
  for (uint32_t k = 0; k < source->n_sizes; k++) {
    int64_t size;
    int status = cuplug_entry_number(call, &source->sizes[k], "expression", CUPLUG_INT64, &size);
    if (status) return status;
    numbers[call->n_scalars + k].i = size;
  }
  return CUPLUG_OK;
}

/* Array k in the order of the loop. */
static cuplug_tensor read_array(const cuplug_call *call, const cuplug_loop *loop, uint32_t k,
                                int64_t *sizes, int64_t *strides) {
  cuplug_tensor x = call->tensors[k];
  for (int d = 0; d < loop->ndim; d++) {
    sizes[d] = loop->sizes[d];
    strides[d] = loop->strides[d][k];
  }
  x.ndim = loop->ndim, x.shape = sizes, x.strides = strides;
  return x;
}

static int is_repeated(const cuplug_loop *loop, uint32_t k) {
  for (int d = 0; d < loop->ndim; d++)
    if (!loop->strides[d][k]) return 1;
  return 0;
}

/* Copies large inputs that are transposed relative to the loop into its order, if memory is
 * available. Otherwise each element would be read from a separate cache line. Its stack is released
 * before the code runs. */
static __attribute__((noinline)) void copy_contiguous(const cuplug_call *call, cuplug_loop *loop,
                                                      void **data, void **copies) {
  const cuplug__run *run = call->run;
  int64_t sizes[CUPLUG_MAX_NDIM], strides[CUPLUG_MAX_NDIM];
  cuplug__view view;
  for (uint32_t k = 0; k < run->frame->n_inputs; k++) {
    const uint64_t bytes = (uint64_t)loop->n * (uint64_t)cuplug_element_bytes(&call->tensors[k]);
    copies[k] = NULL;
    if (bytes < COPIED_BYTES || cuplug__is_written(run, k) || is_repeated(loop, k)) continue;
    const cuplug_tensor x = read_array(call, loop, k, sizes, strides);
    core->view_array(&view, &x);
    if (!core->view_is_transposed(&view)) continue;
    copies[k] = cuplug_allocate_host(bytes);
    if (!copies[k]) continue;
    core->host_copy_whole(&view, bytes, copies[k]);
    data[k] = copies[k];
    cuplug__contiguous_strides(x.ndim, sizes, strides);
    for (int d = 0; d < x.ndim; d++) loop->strides[d][k] = strides[d];
  }
}

/* Returns a bit for each input that is written. */
static uint64_t inout_mask(const cuplug_call *call) {
  const cuplug__run *run = call->run;
  uint64_t mask = 0;
  for (uint32_t k = 0; k < run->frame->n_inputs; k++)
    mask |= (uint64_t)cuplug__is_written(run, k) << k;
  return mask;
}

static inline int wants(const cuplug_code *code, uintptr_t what) {
  return ((uintptr_t)code->finish & what) != 0;
}

/* Returns whether the code can receive all arrays of a flat loop at once, unchanged. */
static inline int is_plain(const cuplug_loop *loop, const cuplug_code *code) {
  const int is_stored = !code->has_halves || wants(code, CUPLUG_CODE_RAW_HALVES);
  const int is_whole = !wants(code, CUPLUG_CODE_FULL_GROUPS) || loop->n % CUPLUG_GROUP == 0;
  return loop->n <= N_PLAIN && is_stored && is_whole;
}

/* The roles of the arrays in blocks that several threads process. */
static cuplug__roles roles_of(const cuplug_call *call, const cuplug_source *source) {
  const uint32_t n_inputs = call->n_inputs;
  return (cuplug__roles){.n_inputs = n_inputs, .inout = inout_mask(call), .raw = source->raw};
}

static inline int find_code(const cuplug_call *call, cuplug_source *source, uint64_t still,
                            const cuplug_code **code) {
  cuplug_variant variant;
  if (!still) return cuplug__variant_find_plain(source, call, code);
  cuplug__variant_start(&variant, call);
  variant.still = still;
  return cuplug__variant_find(source, &variant, code, cuplug__error_of(call));
}

static inline int run_code(const cuplug_call *call, cuplug_source *source, const cuplug_loop *loop,
                           void *const *data, const cuplug_scalar *scalars, int flat) {
  cuplug_loop_call arguments = {.data = data, .scalars = scalars, .loop = loop, .n_parts = 1};
  const cuplug_code *code;
  cuplug_division division;
  cuplug_loop_part *part;
  cuplug__roles roles = {0};
  if (!flat) {
    roles = roles_of(call, source);
    roles.still = cuplug__row_constant_inputs(loop, call->tensors, &roles);
  }
  int status = find_code(call, source, roles.still, &code);
  if (status) return status;
  arguments.division = &division;
  division.claimed = 0;
  memcpy(&part, &code->function, sizeof(part));
  if (flat && is_plain(loop, code)) {
    part(&arguments, 0, loop->n);
  } else {
    if (flat) roles = roles_of(call, source);
    roles.takes_raw_halves = wants(code, CUPLUG_CODE_RAW_HALVES);
    status = cuplug__elements_run(&arguments, part, call->tensors, &roles,
                                  wants(code, CUPLUG_CODE_FULL_GROUPS), cuplug__error_of(call));
    if (status) return status;
  }
  if (!division.claimed) return CUPLUG_OK;
  return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE, "%s", division.message);
}

static __attribute__((noinline)) int run_sized(const cuplug_call *call, cuplug_source *source,
                                               const cuplug_loop *loop, void *const *data,
                                               int flat) {
  cuplug_scalar numbers[call->n_scalars + source->n_sizes];
  const cuplug_scalar *scalars;
  int status = read_scalars(call, source, numbers, &scalars);
  return status ? status : run_code(call, source, loop, data, scalars, flat);
}

static inline int run_loop(const cuplug_call *call, cuplug_source *source, const cuplug_loop *loop,
                           void *const *data, int flat) {
  if (source->n_sizes) return run_sized(call, source, loop, data, flat);
  return run_code(call, source, loop, data, call->scalars, flat);
}

static __attribute__((noinline)) int run_strided(const cuplug_call *call, cuplug_source *source) {
  const uint32_t n_inputs = call->n_inputs;
  void *data[CUPLUG_MAX_LOOP_ARRAYS], *copies[CUPLUG_MAX_LOOP_ARRAYS];
  CUPLUG__LOOP_STRIDES(strides, call->tensors[0].ndim);
  cuplug_loop loop;
  read_loop(call, source, &loop, strides, data);
  if (!loop.n) return CUPLUG_OK;
  copy_contiguous(call, &loop, data, copies);
  const int status = run_loop(call, source, &loop, data, 0);
  for (uint32_t k = 0; k < n_inputs; k++) cuplug_free_host(copies[k]);
  return status;
}

int cuplug_elementwise_host(const cuplug_call *call) {
  cuplug_source *source = call->context;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  cuplug_loop loop;
  if (!is_flat(call)) return run_strided(call, source);
  read_flat(call, source->raw, &loop, data);
  return loop.n ? run_loop(call, source, &loop, data, 1) : CUPLUG_OK;
}

/* Bytes of an element of each input. */
static int64_t input_bytes(const cuplug_call *call, uint32_t n_inputs) {
  int64_t bytes = 0;
  for (uint32_t k = 0; k < n_inputs; k++) bytes += cuplug_element_bytes(&call->tensors[k]);
  return bytes;
}

/* Returns whether an output's packs have less than 16 bytes. */
static int stores_little(const cuplug_call *call, uint32_t n_inputs, uint32_t width) {
  for (uint32_t k = n_inputs; k < call->n_tensors; k++)
    if (width * (uint64_t)cuplug_element_bytes(&call->tensors[k]) < 16) return 1;
  return 0;
}

/* Returns the packs per thread for contiguous arrays. With one load per thread, many threads hide
 * the memory's latency best. If memory is not the only limit, the functions of one pack are
 * computed while another is loaded, as long as the blocks fill the GPU. More packs were up to 3 %
 * slower on an H100. */
static uint32_t packs_of_thread(const cuplug_call *call, const cuplug_source *source, long long n,
                                uint32_t width) {
  const uint32_t n_inputs = call->n_inputs;
  const int is_long = source->work > (width == OF_FLOATS ? 2 : 1);
  const long long wave = (long long)core->gpus[call->device.id].n_processors * N_HELD;
  const int fills = n / (2 * width) >= wave;
  return fills && (is_long || stores_little(call, n_inputs, width)) ? 2 : 1;
}

/* Chooses how the kernel iterates over the elements. If packs fit, they become the elements of the
 * loop. If all arrays are contiguous, the loop has no dimensions. */
static void choose_walk(const cuplug_call *call, const cuplug_source *source, cuplug_loop *loop,
                        cuplug_variant *v, cuplug_loop_split *cut) {
  const uint32_t n_inputs = call->n_inputs;
  const uint32_t width = cuplug__pack_width(call, call->n_tensors);
  const uint64_t outputs = cuplug__bits_from_to(n_inputs, call->n_tensors);
  const uint32_t side = CUPLUG__TILE_SIDE(input_bytes(call, n_inputs));
  cuplug_walk_kind kind = cuplug__walk(loop, call->tensors, outputs | inout_mask(call), width,
                                       source->in_order ? 0 : side, cut);
  v->unroll = 1;
  v->width = (uint8_t)width;
  if (kind == CUPLUG_WALK_PACKS) {
    v->unroll = (uint8_t)packs_of_thread(call, source, loop->n, width);
  } else if (kind == CUPLUG_WALK_LINES &&
             cuplug__loop_has_packs(loop, NULL, call, call->n_tensors, width)) {
    v->still = cuplug__loop_take_packs(loop, width);
    cut->n_items = loop->n;
    kind = CUPLUG_WALK_PACKS;
  } else if (kind == CUPLUG_WALK_LINES) {
    v->unroll = CUPLUG__LINES_UNROLL(width);
    v->still = cut->still;
    v->near = cut->near;
  } else {
    v->across = cut->across;
  }
  v->walk = (uint8_t)kind;
  v->ndim = (uint8_t)loop->ndim;
  v->wide = loop->ndim && loop->n >= CUPLUG__WIDE_FROM;
}

int cuplug_elementwise_cuda(const cuplug_call *call) {
  cuplug_source *source = call->context;
  cuplug_scalar numbers[call->n_scalars + source->n_sizes + 1];
  const cuplug_scalar *scalars;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  CUPLUG__LOOP_STRIDES(strides, call->tensors[0].ndim);
  cuplug_loop loop;
  cuplug_variant variant;
  cuplug_loop_split cut;
  const cuplug_code *code;
  if (is_flat(call)) {
    read_flat(call, source->raw, &loop, data);
    /* A copy, since iterating changes them. */
    memcpy(strides[0], loop.strides[0], loop.n_arrays * sizeof(**strides));
    loop.strides = strides;
  } else {
    read_loop(call, source, &loop, strides, data);
  }
  if (!loop.n) return CUPLUG_OK;
  int status = read_scalars(call, source, numbers, &scalars);
  if (status) return status;
  cuplug__variant_start(&variant, call);
  choose_walk(call, source, &loop, &variant, &cut);
  status = cuplug__variant_find(source, &variant, &code, cuplug__error_of(call));
  if (status) return status;
  cuplug_divisor divisors[loop.ndim + 1];
  long long steps[(uint32_t)(loop.ndim + 1) * loop.n_arrays];
  cuplug__loop_pack(&loop, variant.wide, divisors, steps);
  const long long of_block =
      variant.walk == CUPLUG_WALK_TILES ? 1 : (long long)CUPLUG__N_THREADS * variant.unroll;
  const long long n_blocks = (cut.n_items + of_block - 1) / of_block;
  const cuplug_grid grid = {.blocks = {(uint32_t)(n_blocks ? n_blocks : 1), 1, 1},
                            .threads = {CUPLUG__N_THREADS, 1, 1}};
  void *arguments[] = {data, (void *)scalars, &loop.n, &cut, divisors, steps};
  return call->services->launch(call, code->function, &grid, arguments);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a call: an operator created in memory, and arguments of any kinds, shapes, strides
 * and flags. It is rejected with a reason, or the entry (bind_entry.h) receives arrays that match
 * its signature, inside the given memory. */
#include "bind_entry.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define MAX_ARGUMENTS 8
#define MAX_ITEMS 4 /* the maximum length of a list */
#define N_ARRAYS (MAX_ARGUMENTS * MAX_ITEMS)
#define MAX_ARRAY_BYTES 65536
#define N_SIZES 70 /* more than an array may have */

/* The rest of an input; zeros after its end. */
static const uint8_t *at, *end;
static unsigned take(void) { return at < end ? *at++ : 0; }

/* Memory and shapes of a call's arrays. */
typedef struct given {
  cuplug_argument arguments[MAX_ARGUMENTS], items[MAX_ARGUMENTS][MAX_ITEMS];
  char *memory[N_ARRAYS];
  int64_t memory_bytes[N_ARRAYS];
  int64_t shapes[N_ARRAYS][N_SIZES], strides[N_ARRAYS][N_SIZES];
  uint32_t array_of[MAX_ARGUMENTS]; /* the memory and the shape of an argument */
  uint32_t n, n_arrays, n_lists;
  int is_large; /* an array has too many elements to visit: the call is bound but not run */
} given;

static int64_t take_size(void) {
  static const int64_t rare[] = {0,        7, 100, 4097, INT32_MAX, (int64_t)1 << 40, INT64_MAX / 2,
                                 INT64_MAX};
  const unsigned byte = take();
  return byte < 240 ? (byte < 16 ? 0 : 1 + byte % 4) : rare[byte % 8];
}

static int32_t take_ndim(void) {
  const unsigned byte = take();
  return byte < 250 ? (int32_t)(byte % 5) : (int32_t)(byte - 250) + 61;
}

/* Dimensions are in memory from the last one to the first, or in another order; some reversed,
 * repeated, or with gaps. Sets the lowest and highest element; returns 0 beyond the limit. */
static int take_strides(const cuplug_tensor *x, int64_t *low, int64_t *high) {
  const unsigned order = take();
  int64_t n = 1;
  *low = *high = 0;
  for (int32_t k = 0; k < x->ndim; k++) {
    const int32_t d = order & 1 ? k : x->ndim - 1 - k;
    const unsigned way = order & 2 ? take() : 255;
    int64_t reach;
    x->strides[d] = way < 40 ? 0 : way < 80 ? -n : n;
    if (way >= 80 && way < 120 && n <= MAX_ARRAY_BYTES) x->strides[d] = n *= 2;
    if (x->shape[d] < 2) continue;
    if (__builtin_mul_overflow(x->shape[d] - 1, x->strides[d], &reach)) return 0;
    if (reach > MAX_ARRAY_BYTES || reach < -MAX_ARRAY_BYTES) return 0;
    *(reach < 0 ? low : high) += reach;
    n += reach < 0 ? -reach : reach;
  }
  return 1;
}

/* Separate memory of the size of the array, or the memory of an earlier array if it fits. */
static void take_memory(given *g, cuplug_tensor *x, int64_t low, int64_t high, unsigned shift) {
  const int64_t element = x->dtype.bits / 8 * x->dtype.lanes;
  const int64_t bytes = (high - low + 1) * element + shift;
  const unsigned other = take() % 64;
  const uint32_t own = g->n_arrays;
  char *memory = NULL;
  if (other < own && g->memory_bytes[other] >= bytes) memory = g->memory[other];
  if (!memory) {
    memory = g->memory[own] = malloc((size_t)bytes);
    require(memory != NULL);
    g->memory_bytes[own] = bytes;
    memset(memory, 1, (size_t)bytes);
  }
  x->data = memory + shift - low * element;
}

static void tell_a_lie(given *g, cuplug_tensor *x, unsigned which) {
  static const int32_t ndims[] = {-1, 65, 1000, INT32_MAX, INT32_MIN};
  if (which == 0) x->ndim = ndims[take() % 5];
  if (which == 1) x->shape = NULL;
  if (which == 2) x->byte_offset = UINT64_MAX - take();
  g->is_large = 1;
}

static void take_array(given *g, cuplug_argument *a) {
  static const cuplug_dtype rare[] = {{2, 16, 1}, {4, 16, 1}, {5, 64, 1}, {1, 8, 1},
                                      {2, 32, 4}, {9, 32, 1}, {0, 4, 1},  {0, 8, 0}};
  static const cuplug_dtype usual[] = {{2, 32, 1}, {2, 64, 1}, {0, 32, 1}, {0, 64, 1},
                                       {0, 8, 1},  {6, 8, 1},  {2, 32, 1}, {5, 128, 1}};
  const unsigned dtype = take(), flags = take(), place = take();
  cuplug_tensor *x = &a->tensor;
  int64_t low = 0, high = 0;
  a->kind = CUPLUG_ARGUMENT_ARRAY;
  a->flags = flags < 200 ? 0 : flags % 16;
  *x = (cuplug_tensor){.device = {CUPLUG_CPU, 0}, .ndim = take_ndim()};
  if (place >= 250) x->device = (cuplug_device){(int32_t)(place - 248), (int32_t)take() % 3};
  x->dtype = dtype < 240 ? usual[dtype % 8] : rare[dtype % 8];
  x->shape = g->shapes[g->n_arrays], x->strides = g->strides[g->n_arrays];
  for (int32_t d = 0; d < x->ndim; d++) x->shape[d] = take_size();
  const int fits = take_strides(x, &low, &high);
  if (fits && high - low <= MAX_ARRAY_BYTES)
    take_memory(g, x, low, high, (a->flags & CUPLUG_MISALIGNED) != 0);
  else /* the strides falsely claim this range */
    x->strides = place % 4 ? x->strides : NULL, x->data = g, g->is_large = 1;
  const int64_t bytes = n_bytes(x); /* of all elements, including ones that share memory */
  if (x->ndim > CUPLUG_MAX_NDIM || bytes < 0 || bytes > 4 * MAX_ARRAY_BYTES) g->is_large = 1;
  if (place % 2 && x->strides && is_contiguous(x)) x->strides = NULL;
  if (place > 240 && place < 244) tell_a_lie(g, x, place - 241);
  g->n_arrays++;
}

static void take_scalar(cuplug_argument *a, unsigned kind) {
  static const int64_t integers[] = {0, 1, 2, -1, 127, 256, INT64_MAX, INT64_MIN};
  static const char *const strings[] = {"", "near", "far", "wrap", "\xc3\xa9", "none", "a", "all"};
  const unsigned value = take() % 8;
  *a = cuplug_int(integers[value]);
  a->kind = kind;
  if (kind == CUPLUG_ARGUMENT_FLOAT) a->scalar.f = value ? 1e300 * (double)value : 0.5;
  if (kind == CUPLUG_ARGUMENT_COMPLEX) a->scalar.c[0] = value, a->scalar.c[1] = 1;
  if (kind == CUPLUG_ARGUMENT_BOOL) a->scalar.i = value & 1;
  if (kind == CUPLUG_ARGUMENT_STRING || kind == CUPLUG_ARGUMENT_OTHER) a->scalar.s = strings[value];
  if (kind == CUPLUG_ARGUMENT_HUGE_INT) a->scalar.f = 1e30;
}

static void take_argument(given *g, cuplug_argument *a, unsigned kind) {
  if (kind < 160)
    take_array(g, a);
  else
    take_scalar(a, kind < 250 ? kind % (CUPLUG_ARGUMENT_OTHER + 1) : 0);
  const int has_parts = a->kind == CUPLUG_ARGUMENT_ARRAY || a->kind == CUPLUG_ARGUMENT_LIST;
  if (kind >= 160 && has_parts) a->kind = CUPLUG_ARGUMENT_ABSENT;
}

/* Mostly items of one kind. */
static void take_list(given *g, cuplug_argument *a, cuplug_argument *items) {
  const unsigned n = take() % (MAX_ITEMS + 1), kind = take();
  for (unsigned k = 0; k < n; k++) take_argument(g, &items[k], kind < 240 ? kind : take());
  *a = (cuplug_argument){.kind = CUPLUG_ARGUMENT_LIST, .list = {.items = items, .n = n}};
  g->n_lists++;
}

static void take_arguments(given *g, unsigned n) {
  for (g->n = g->n_arrays = g->n_lists = 0; g->n < n; g->n++) {
    const unsigned kind = take();
    cuplug_argument *a = &g->arguments[g->n];
    g->array_of[g->n] = g->n_arrays;
    if (kind % 16 == 15)
      take_list(g, a, g->items[g->n]);
    else
      take_argument(g, a, kind);
  }
}

static void free_arguments(given *g) {
  for (uint32_t k = 0; k < N_ARRAYS; k++) free(g->memory[k]);
}

/* A refusal has a reason. */
static int is_done(int status, const cuplug_error *error) {
  require(status == error->status && !*error->message == !status);
  return !status;
}

/* Replaces inputs by the copies that the frame requires: contiguous, in the required shape. */
static int copy_inputs(given *g, const cuplug_frame *frame) {
  for (uint32_t k = 0; k < frame->n_inputs; k++) {
    if (!(frame->copy_mask >> k & 1)) continue;
    if (frame->unaligned_stride_mask >> k & 1) return 0;
    const uint32_t i = frame->parameter[k], array = g->array_of[i];
    int64_t shape[CUPLUG_MAX_NDIM];
    cuplug_tensor wanted = frame->tensors[k];
    wanted.ndim = cuplug_required_shape(frame, k, shape);
    wanted.shape = shape, wanted.strides = NULL, wanted.byte_offset = 0;
    const int64_t bytes = n_bytes(&wanted);
    if (bytes < 0 || bytes > 4 * MAX_ARRAY_BYTES) return 0;
    char *copy = malloc((size_t)bytes + 1);
    require(copy != NULL);
    cuplug_copy_input(frame, k, copy);
    free(g->memory[array]);
    g->memory[array] = wanted.data = copy;
    wanted.shape = memcpy(g->shapes[array], shape, sizeof shape);
    g->arguments[i].tensor = wanted;
    g->arguments[i].flags = 0;
  }
  return 1;
}

static int allocate(void *user, cuplug_frame *frame, uint32_t k, cuplug_error *error) {
  (void)error;
  ((char **)user)[k] = frame->tensors[k].data = malloc((size_t)n_bytes(&frame->tensors[k]) + 1);
  return CUPLUG_OK;
}

/* Outputs are the arguments after the parameters, or new. */
static int give_outputs(given *g, cuplug_frame *frame, uint32_t n_parameters, char **made) {
  cuplug_error error;
  for (uint32_t k = frame->n_inputs; k < frame->n_tensors; k++) {
    const cuplug_tensor *x = &frame->tensors[k];
    const uint32_t output = k - frame->n_inputs, i = n_parameters + output;
    if (i < g->n && is_done(cuplug_set_output(frame, output, &g->arguments[i], &error), &error))
      continue;
    if (has_unknown(x)) continue;
    const int64_t bytes = n_bytes(x);
    require(bytes >= 0);
    if (bytes > 4 * MAX_ARRAY_BYTES || allocate(made, frame, k, &error)) return 0;
  }
  return 1;
}

static void bind_and_run(given *g, cuplug_operator *op, uint32_t n_parameters) {
  static cuplug_frame frame;
  cuplug_error error;
  char *made[CUPLUG_MAX_ARGUMENTS] = {NULL};
  const uint32_t n = g->n < n_parameters ? g->n : n_parameters;
  if (!is_done(cuplug_bind(op, g->arguments, n, &frame, &error), &error)) return;
  if (g->is_large) return;
  if (frame.copy_mask) {
    /* Memory that arrays share is freed with the first: those calls are not made. */
    for (uint32_t k = 0; k < g->n_arrays; k++)
      if (!g->memory[k]) return;
    if (g->n_lists || !copy_inputs(g, &frame)) return;
    require(is_done(cuplug_bind(op, g->arguments, n, &frame, &error), &error));
    require(!frame.copy_mask);
  }
  frame.allocate = allocate, frame.user = made;
  if (give_outputs(g, &frame, n_parameters, made)) is_done(cuplug_run(&frame, &error), &error);
  for (uint32_t k = 0; k < CUPLUG_MAX_ARGUMENTS; k++) free(made[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
  static given g;
  cuplug_error error;
  at = data, end = data + bytes;
  memset(g.memory, 0, sizeof g.memory);
  memset(g.memory_bytes, 0, sizeof g.memory_bytes);
  g.is_large = 0;
  const fuzzed *op = take_operator(take());
  const unsigned how = take();
  take_arguments(&g, how < 200 ? op->n_parameters + op->n_outputs : how % MAX_ARGUMENTS);
  if (how % 2 || g.is_large)
    bind_and_run(&g, op->made, op->n_parameters);
  else
    is_done(cuplug_invoke(op->made, g.arguments, g.n, NULL, &error), &error);
  free_arguments(&g);
  return 0;
}

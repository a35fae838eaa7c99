/* SPDX-License-Identifier: Apache-2.0 */
#include "slices.h"

#include "cuda.h"
#include "driver.h"
#include "layout.h"
#include "memory.h"
#include "status.h"
#include "workers.h"

#include <string.h>

#define MIN_BYTES ((uint64_t)16 << 20) /* of all arrays together; less goes through whole */
#define MIN_SLICES 8
#define ELEMENTS_UNIT 1024 /* slices are multiples: all of their arrays are well aligned */

/* Slices on their way: a slot each. Slices in turn go to the lanes in turn. */
#define N_LANES 3
#define SLOTS_OF_LANE 4
#define N_SLOTS (N_LANES * SLOTS_OF_LANE)
#define N_FILLING 3 /* from arrays to pinned memory; at most, like the next */
#define N_RUNNING 5 /* DMA in, kernel, DMA out */
#define N_WRITING 4 /* from pinned memory to arrays */

_Static_assert(N_FILLING + N_RUNNING + N_WRITING <= N_SLOTS, "each has a slot");
_Static_assert(SLOTS_OF_LANE <= CUPLUG__N_PINNED, "each slot has an event of its lane");

/* Where a slice lies, array behind array, in pinned and alike in device memory. */
typedef struct slot {
  cuplug__lane *lane;
  void *event; /* the slice is back in pinned memory */
  char *pinned;
  char *device;
  cuplug_fault *fault;
  cuplug__host_copy copies[CUPLUG_MAX_TENSORS];
} slot;

typedef struct pipeline {
  cuplug__run *run;
  cuplug__lane *lanes[N_LANES];
  void *blocks[N_LANES]; /* device memory */
  slot slots[N_SLOTS];
  uint64_t n_elements, n_slices;
  uint64_t slice; /* elements of each slice but the last */
  uint64_t offsets[CUPLUG_MAX_TENSORS];
} pipeline;

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- Which calls ----------------------------------------------------------------------------- */

static int is_loop_alone(const cuplug_parameter *x) {
  return x->kind != CUPLUG_PARAMETER_INOUT && x->n_dims == 1 && x->dims[0].kind == CUPLUG_DIM_LOOP;
}

/* Bytes of one element of each array. */
static uint64_t row_bytes(const cuplug_frame *f) {
  uint64_t bytes = 0;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    if (f->tensors[k].ndim >= 0) bytes += (uint64_t)cuplug_element_bytes(&f->tensors[k]);
  return bytes;
}

int cuplug__can_slice(const cuplug__run *run) {
  const cuplug_frame *f = run->frame;
  const cuplug_parameter *parameters = run->overload->signature.parameters;
  if (f->n_tensors == f->n_inputs) return 0;
  if (run->overload->row->flags & CUPLUG_KEEPS_WHOLE) return 0;
  const int64_t n = cuplug_n_elements(&f->tensors[f->n_inputs]);
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    const cuplug_tensor *x = &f->tensors[k];
    if (!is_loop_alone(&parameters[f->parameter[k]])) return 0;
    if (x->ndim < 0) continue; /* left out */
    if (cuplug_n_elements(x) != n || !cuplug__is_contiguous(x)) return 0;
  }
  return (uint64_t)n >= MIN_BYTES / row_bytes(f);
}

/* ---- One slice, step by step ----------------------------------------------------------------- */

static slot *slot_of(pipeline *p, uint64_t i) { return &p->slots[i % N_SLOTS]; }

static uint64_t n_elements_of(const pipeline *p, uint64_t i) {
  return least(p->slice, p->n_elements - i * p->slice);
}

/* Of slice i of array k, 0 for one that was left out. */
static uint64_t bytes_of(const pipeline *p, uint64_t i, uint32_t k) {
  const cuplug_tensor *x = &p->run->frame->tensors[k];
  return x->ndim < 0 ? 0 : n_elements_of(p, i) * (uint64_t)cuplug_element_bytes(x);
}

/* On the host. */
static char *address_of(const pipeline *p, uint64_t i, uint32_t k) {
  const cuplug_tensor *x = &p->run->frame->tensors[k];
  return (char *)x->data + i * p->slice * (uint64_t)cuplug_element_bytes(x);
}

static void begin_filling(pipeline *p, uint64_t i) {
  slot *s = slot_of(p, i);
  for (uint32_t k = 0; k < p->run->frame->n_inputs; k++)
    if (bytes_of(p, i, k))
      cuplug__host_copy_begin(&s->copies[k], CUPLUG__TO_PINNED, s->pinned + p->offsets[k],
                              address_of(p, i, k), bytes_of(p, i, k));
}

static void end_copies(pipeline *p, uint64_t i) {
  for (uint32_t k = 0; k < p->run->frame->n_tensors; k++)
    cuplug__host_copy_end(&slot_of(p, i)->copies[k]);
}

static int send(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  int code = 0;
  for (uint32_t k = 0; k < p->run->frame->n_inputs && !code; k++)
    if (bytes_of(p, i, k))
      code = cuplug__driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)s->device + p->offsets[k],
                                              s->pinned + p->offsets[k], bytes_of(p, i, k),
                                              s->lane->stream);
  return cuplug__cuda_check(p->run->error, code, "copying to the device");
}

/* The entry sees a slice as arrays of one dimension. */
static int call_entry(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  cuplug__run *run = p->run;
  cuplug_tensor tensors[CUPLUG_MAX_TENSORS];
  int64_t n = (int64_t)n_elements_of(p, i), step = 1;
  memcpy(tensors, run->frame->tensors, run->frame->n_tensors * sizeof(*tensors));
  for (uint32_t k = 0; k < run->frame->n_tensors; k++) {
    cuplug_tensor *x = &tensors[k];
    x->device = run->device;
    if (x->ndim < 0) continue;
    x->data = s->device + p->offsets[k];
    x->ndim = 1, x->shape = &n, x->strides = x->strides ? &step : NULL;
  }
  run->tensors = tensors;
  run->stream = s->lane->stream;
  run->fault = s->fault;
  int status = cuplug__call_entry(run);
  run->tensors = run->frame->tensors;
  return status;
}

static int request(pipeline *p, uint64_t i) {
  const slot *s = slot_of(p, i);
  const cuplug_frame *f = p->run->frame;
  int code = 0;
  for (uint32_t k = f->n_inputs; k < f->n_tensors && !code; k++)
    code = cuplug__driver.cuMemcpyDtoHAsync(s->pinned + p->offsets[k],
                                            (CUdeviceptr)(uintptr_t)s->device + p->offsets[k],
                                            bytes_of(p, i, k), s->lane->stream);
  if (!code) code = cuplug__driver.cuEventRecord(s->event, s->lane->stream);
  return cuplug__cuda_check(p->run->error, code, "copying to the host");
}

static int launch(pipeline *p, uint64_t i) {
  end_copies(p, i);
  int status = cuplug__named(p->run, send(p, i));
  if (!status) status = call_entry(p, i);
  return status ? status : cuplug__named(p->run, request(p, i));
}

/* The kernel counted positions from the start of the slice. */
static int take_fault(pipeline *p, uint64_t i) {
  cuplug_fault *fault = slot_of(p, i)->fault;
  if (__atomic_load_n(&fault->status, __ATOMIC_ACQUIRE)) fault->position += (int64_t)(i * p->slice);
  return cuplug__fault_take(fault, p->run->error);
}

static int begin_writing(pipeline *p, uint64_t i) {
  slot *s = slot_of(p, i);
  const cuplug_frame *f = p->run->frame;
  int code = cuplug__driver.cuEventSynchronize(s->event);
  if (code)
    return cuplug__named(p->run, cuplug__cuda_fail(p->run->error, code, "waiting for a slice"));
  int status = take_fault(p, i);
  if (status) return status;
  for (uint32_t k = f->n_inputs; k < f->n_tensors; k++)
    cuplug__host_copy_begin(&s->copies[k], CUPLUG__FROM_PINNED, address_of(p, i, k),
                            s->pinned + p->offsets[k], bytes_of(p, i, k));
  return CUPLUG_OK;
}

/* ---- All slices ------------------------------------------------------------------------------ */

/* Begins as much as may be under way before it waits for anything; after an error it waits for the
 * workers: the arrays are the caller's again. */
static int run_all(pipeline *p) {
  uint64_t n_filling = 0, n_launched = 0, n_back = 0, n_done = 0; /* so far */
  int status = CUPLUG_OK;
  while (!status && n_done < p->n_slices) {
    if (n_filling < p->n_slices && n_filling - n_launched < N_FILLING &&
        n_filling - n_done < N_SLOTS)
      begin_filling(p, n_filling++);
    else if (n_launched < n_filling && n_launched - n_back < N_RUNNING)
      status = launch(p, n_launched++);
    else if (n_back < n_launched && n_back - n_done < N_WRITING)
      status = begin_writing(p, n_back++);
    else
      end_copies(p, n_done++);
  }
  for (uint64_t i = 0; i < N_SLOTS; i++) end_copies(p, i);
  return status;
}

static void measure(pipeline *p) {
  const cuplug_frame *f = p->run->frame;
  const uint64_t unit = ELEMENTS_UNIT;
  uint64_t slot_bytes = UINT64_MAX, offset = 0;
  for (int i = 0; i < N_LANES; i++) slot_bytes = least(slot_bytes, p->lanes[i]->pinned_bytes);
  slot_bytes *= CUPLUG__N_PINNED / SLOTS_OF_LANE;
  p->n_elements = (uint64_t)cuplug_n_elements(&f->tensors[f->n_inputs]);
  p->slice = least(slot_bytes / row_bytes(f), p->n_elements / MIN_SLICES + unit) / unit * unit;
  p->n_slices = (p->n_elements - 1) / p->slice + 1;
  for (uint32_t k = 0; k < f->n_tensors; k++) {
    p->offsets[k] = offset;
    offset += bytes_of(p, 0, k);
  }
  for (int i = 0; i < N_SLOTS; i++) {
    slot *s = &p->slots[i];
    const int lane = i % N_LANES, place = i / N_LANES;
    s->lane = p->lanes[lane];
    s->event = s->lane->events[place];
    s->pinned = s->lane->pinned + place * slot_bytes;
    s->device = (char *)p->blocks[lane] + place * slot_bytes;
  }
}

static int take_lane(pipeline *p, int i) {
  cuplug_error *error = p->run->error;
  const int32_t device = p->run->device.id;
  int status = cuplug__lane_take(device, &p->lanes[i], error);
  if (status) return p->lanes[i] = NULL, status;
  status = cuplug__lane_pin(p->lanes[i], UINT64_MAX, error);
  if (status) return status;
  return cuplug__device_allocate(device, CUPLUG__N_PINNED * p->lanes[i]->pinned_bytes,
                                 p->lanes[i]->stream, &p->blocks[i], error);
}

static int take_all(pipeline *p) {
  const cuplug_frame *f = p->run->frame;
  const char *names[CUPLUG_MAX_TENSORS];
  int status = CUPLUG_OK;
  for (uint32_t k = 0; k < f->n_tensors; k++)
    names[k] = p->run->overload->signature.parameters[f->parameter[k]].name;
  for (int i = 0; i < N_LANES && !status; i++) status = take_lane(p, i);
  for (int i = 0; i < N_SLOTS && !status; i++) {
    cuplug_fault **fault = &p->slots[i].fault;
    status = cuplug__fault_private(fault, p->run->error);
    if (!status) cuplug__fault_rename(*fault, f->op->name, names, f->n_tensors);
  }
  return status;
}

/* Giving a lane waits for its stream: only then nothing writes to the fault records. */
static void give_all(pipeline *p) {
  for (int i = 0; i < N_LANES; i++) {
    if (!p->lanes[i]) continue;
    if (p->blocks[i]) cuplug__device_free(p->blocks[i], p->lanes[i]->stream, NULL);
    cuplug__lane_give(p->lanes[i]);
  }
  for (int i = 0; i < N_SLOTS; i++)
    if (p->slots[i].fault) cuplug__fault_release(p->slots[i].fault);
}

int cuplug__run_slices(cuplug__run *run) {
  pipeline p = {.run = run};
  int status = cuplug__named(run, take_all(&p));
  if (!status) {
    measure(&p);
    status = run_all(&p);
  }
  give_all(&p);
  run->frame->staged = 1;
  return status;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A call like an earlier one, in few steps: the thread has its frame, and the entry's arguments. */
#include "arguments/bind.h"
#include "base/layout.h"
#include "base/status.h"
#include "entry/entry.h"

typedef struct kept_call {
  cuplug__run run;
  cuplug_call call;
} kept_call;

_Static_assert(sizeof(kept_call) <= sizeof(uint64_t) * CUPLUG__CALL_WORDS, "there is room");

/* 1 if calls differ only in addresses and scalars: on the host, without objects for each of them.
 */
static int can_be_kept(const cuplug__cached_match *known, const cuplug__callable *o) {
  const cuplug_signature *s = known->signature;
  if (known->home.type != CUPLUG_CPU || !o->prefers_host || !o->host || o->states || o->reshape ||
      o->row->flags & (CUPLUG_OVERLOAD_HANDLES | CUPLUG_OVERLOAD_ELEMENT_RANGES) || s->n_lists ||
      s->zero_outputs || s->optional_outputs || (s->has_guarantees && s->n_outputs))
    return 0;
  for (int32_t i = 0; i < s->n_parameters; i++)
    if (s->parameters[i].kind == CUPLUG_PARAMETER_LIST) return 0; /* may require its own memory */
  for (uint32_t k = known->n_inputs; k < known->n_tensors; k++)
    if (known->arrays[k].n_bytes < 0) return 0;
  return 1;
}

/* Stores the frame as cuplug_run leaves it, and the call. Returns 0 if the match is another one. */
static __attribute__((noinline)) int keep(const cuplug__cached_match *known,
                                          const cuplug_argument *args, cuplug_operator *op) {
  cuplug__again *again = known->again;
  kept_call *kept = (kept_call *)again->call;
  cuplug_frame *f = &again->frame;
  cuplug__callable *o = &op->overloads[known->row];
  if (!atomic_load_explicit(&op->loaded, memory_order_acquire)) return 1;
  if (!can_be_kept(known, o)) return again->state = CUPLUG__AGAIN_NEVER, 1;
  if (cuplug__match_cache_find(op, args, known->n_args, f) != known) return 0;
  for (uint32_t k = 0; k < known->n_inputs; k++)
    f->tensors[k].shape = (int64_t *)known->arrays[k].shape; /* the caller's ends with the call */
  cuplug__start_frame(op, f);
  f->row = known->row, f->device = f->home;
  f->n_scalars = o->n_scalars;
  f->supplied_mask = (1ull << (f->n_tensors - f->n_inputs)) - 1;
  if (o->row->flags & CUPLUG_OVERLOAD_TAKES_STRIDES && !o->null_strides_when_contiguous)
    cuplug__write_strides(f);
  kept->run = (cuplug__run){
      .frame = f, .overload = o, .error = &again->error, .device = f->home, .tensors = f->tensors};
  cuplug__fill_call(&kept->run, &kept->call);
  cuplug__clear(&again->error);
  return again->state = CUPLUG__AGAIN_READY, 1;
}

static inline int restore(const cuplug__cached_match *known, const cuplug_argument *args,
                          void *op) {
  const uint32_t n = known->n_inputs;
  cuplug__again *again = known->again;
  if (again->state != CUPLUG__AGAIN_READY)
    return again->state != CUPLUG__AGAIN_NEW || keep(known, args, op) ? -1 : 0;
  for (uint32_t k = 0; k < n; k++) {
    const cuplug__known_array *x = &known->arrays[k];
    const cuplug_argument *a = (const cuplug_argument *)((const char *)args + x->at);
    if (!cuplug__is_alike(a, x)) return 0;
    again->frame.tensors[k].data = a->tensor.data;
  }
  return 1;
}

/* 1 if an output overlaps no array before it, or is an input where the overload allows it. */
static inline int is_apart(const cuplug_frame *f, uint32_t k, const cuplug_tensor *x) {
  const uintptr_t low = (uintptr_t)x->data, high = low + (uintptr_t)f->n_bytes[k];
  for (uint32_t other = 0; other < k; other++) {
    const uintptr_t begin = (uintptr_t)f->tensors[other].data;
    if (begin >= high || low >= begin + (uintptr_t)f->n_bytes[other]) continue;
    if (other >= f->n_inputs || !(f->op->overloads[f->row].row->flags & CUPLUG_OVERLOAD_IN_PLACE) ||
        !cuplug__same_memory(&f->tensors[other], x))
      return 0;
  }
  return 1;
}

static inline int take_outputs(const cuplug__cached_match *known, const cuplug_argument *given) {
  cuplug_frame *f = &known->again->frame;
  for (uint32_t k = known->n_inputs; k < known->n_tensors; k++, given++) {
    if (!cuplug__is_alike(given, &known->arrays[k]) || !is_apart(f, k, &given->tensor)) return 0;
    f->tensors[k].data = given->tensor.data;
  }
  return 1;
}

static __attribute__((noinline)) int take_scalars(const cuplug__cached_match *known,
                                                  const cuplug_argument *args) {
  kept_call *kept = (kept_call *)known->again->call;
  cuplug_frame *f = &known->again->frame;
  f->none_mask = f->n_scalars = 0;
  if (!cuplug__fits_too(f->op, args, known->n_args, f, known)) return 0;
  return kept->call.none_mask = f->none_mask, 1;
}

static __attribute__((noinline)) const cuplug_error *end(cuplug__again *again, int status) {
  if (!cuplug__end_entry(&((kept_call *)again->call)->run, status)) return NULL;
  return again->state = CUPLUG__AGAIN_NEW, &again->error; /* the next call clears it */
}

int cuplug_call_again(const cuplug_bound_call *bound, const cuplug_argument *args,
                      uint32_t n_parameters, uint32_t n_outputs) {
  cuplug_operator *op = bound->op;
  const cuplug__cached_match *known = cuplug__find_known(op, args, n_parameters, restore, op);
  if (!known || (known->row != bound->row && bound->row != CUPLUG_ANY_OVERLOAD) ||
      known->n_inputs + n_outputs != known->n_tensors ||
      (n_outputs && !take_outputs(known, args + n_parameters)) ||
      (!known->needs_no_scalar_match && !take_scalars(known, args)))
    return bound->otherwise(bound, args, n_parameters, n_outputs, NULL);
  cuplug__again *again = known->again;
  kept_call *kept = (kept_call *)again->call;
  const cuplug__callable *o = kept->run.overload;
  kept->call.max_threads = cuplug__max_threads();
  again->state = CUPLUG__AGAIN_BUSY;
  const int status =
      o->keeps_rounding ? o->host(&kept->call) : cuplug__call_guarded(o->host, &kept->call);
  again->state = CUPLUG__AGAIN_READY;
  if (!((uint32_t)status | (uint32_t)again->error.status | kept->run.n_workspaces)) return 0;
  const cuplug_error *failed = end(again, status);
  return failed ? bound->otherwise(bound, args, n_parameters, n_outputs, failed) : 0;
}

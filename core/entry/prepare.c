/* SPDX-License-Identifier: Apache-2.0 */
/* The requirements of an overload on a GPU before its first run. */
#include "entry/prepare.h"

#include "base/describe.h"
#include "base/rounding.h"
#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "entry/run.h"
#include "entry/services.h"
#include "registry/load.h"
#include "registry/plugin.h"
#include "registry/registry.h"

#include <stdlib.h>
#include <time.h>

static int check_code(const cuplug_operator *op, int32_t device, cuplug_error *error) {
  const char *architectures = cuplug_operator_architectures(op);
  int32_t capability = 0;
  if (!*architectures || cuplug__cuda_can_run(device, architectures, &capability)) return CUPLUG_OK;
  return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                      "%s: %s has code for compute capability %s, and cuda:%d has %d.%d; rebuild "
                      "the plugin for it",
                      op->name, cuplug_operator_path(op),
                      cuplug__describe_architectures(architectures).s, (int)device,
                      (int)capability / 10, (int)capability % 10);
}

/* Makes the state that the first call would make. */
static int make_state(const cuplug_operator *op, cuplug__callable *overload, cuplug_device device,
                      cuplug_error *error) {
  cuplug_call call = {.abi_version = CUPLUG_ABI_VERSION, .device = device};
  cuplug__held *held;
  if (!overload->states) return CUPLUG_OK;
  int status = cuplug__state_take(overload->states, &call, error, &held);
  if (status) {
    cuplug__prefix(error, "%s: ", op->name);
    return status;
  }
  cuplug__state_give(overload->states, call.device, held);
  return CUPLUG_OK;
}

int cuplug__ready_run(cuplug__run *run) {
  const uint64_t bit = 1ull << (run->device.id & 63);
  if (atomic_load_explicit(&run->overload->prepared, memory_order_acquire) & bit) return CUPLUG_OK;
  int status = check_code(run->frame->op, run->device.id, run->error);
  if (!status) atomic_fetch_or_explicit(&run->overload->prepared, bit, memory_order_release);
  return status;
}

/* Lets the driver load the code of all kernels that were compiled together with one, a CUkernel,
 * as far as possible: launches report failures. */
static void load_kernels(void *any) {
  const cuplug__driver_table *driver = &cuplug__driver;
  CUlibrary library;
  CUfunction function;
  unsigned int n = 0;
  if (!driver->cuKernelGetLibrary || !driver->cuLibraryGetKernelCount ||
      !driver->cuLibraryEnumerateKernels || !driver->cuFuncLoad)
    return;
  if (driver->cuKernelGetLibrary(&library, any) || driver->cuLibraryGetKernelCount(&n, library))
    return;
  CUkernel *kernels = calloc(n ? n : 1, sizeof *kernels);
  if (!kernels) return;
  if (driver->cuLibraryEnumerateKernels(kernels, n, library)) n = 0;
  for (unsigned int k = 0; k < n; k++)
    if (!driver->cuKernelGetFunction(&function, kernels[k])) driver->cuFuncLoad(function);
  free(kernels);
}

/* On a GPU, the context is current. */
static int prepare_overloads(cuplug_operator *op, cuplug_device device, cuplug_error *error) {
  const int on_gpu = device.type == CUPLUG_CUDA;
  int has_entry = 0, status = CUPLUG_OK;
  for (uint32_t k = 0; k < op->n_overloads && !status; k++) {
    if (!(on_gpu ? op->overloads[k].cuda : op->overloads[k].host)) continue;
    has_entry = 1;
    if (on_gpu) status = check_code(op, device.id, error);
    if (!status) status = make_state(op, &op->overloads[k], device, error);
  }
  if (status || has_entry || !on_gpu) return status;
  return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                      "%s: device: got cuda:%d, expected the host (no CUDA entry)", op->name,
                      (int)device.id);
}

int cuplug_prepare(cuplug_operator *op, cuplug_device device, cuplug_error *error) {
  cuplug_memory_info info;
  void *kernel;
  cuplug__clear(error);
  int status = cuplug_load_code(op, error);
  if (status) return status;
  if (device.type != CUPLUG_CUDA) return prepare_overloads(op, device, error);
  CUPLUG__ENTERED context = cuplug__cuda_enter(device.id, error);
  if (context.status) {
    cuplug__prefix(error, "%s: ", op->name);
    return context.status;
  }
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  status = cuplug__memory_query(device.id, &info, error); /* makes the pool */
  if (!status) status = prepare_overloads(op, device, error);
  if (!status && (kernel = cuplug__any_kernel(op))) load_kernels(kernel);
  return status;
}

/* ---- States ---------------------------------------------------------------------------------- */

/* A state is of an era: a forked child creates its own, because it lacks the locks, threads and
 * GPUs of its parent. Lists and marks are guarded by the registry's lock, which a child finds open;
 * the author's function runs without it. */

static cuplug__state_slot *slot_of(cuplug__states *states, cuplug_device device) {
  return &states->slots[device.type == CUPLUG_CUDA ? 1 + device.id : 0];
}

static int make(const cuplug__states *states, const cuplug_call *call, cuplug_error *error,
                void **state) {
  cuplug__run run = {.error = error, .device = call->device};
  const cuplug_call asked = cuplug__bare_call(&run);
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe(); /* it may allocate during a capture */
  CUPLUG__ROUNDING before = cuplug__rounding_read();
  int status = states->create(&asked, state);
  return status ? status : error->status; /* any report is an error */
}

/* ---- One for all calls ----------------------------------------------------------------------- */

/* Waits for other threads that create it. 1: it exists; 0: this thread creates it; -1: already. */
static int begin(cuplug__state_slot *slot, uint32_t era) {
  const struct timespec pause = {.tv_nsec = 50000};
  for (;; nanosleep(&pause, NULL)) {
    cuplug__registry_lock();
    const int is_made = atomic_load_explicit(&slot->era, memory_order_relaxed) == era;
    const int is_busy = !is_made && slot->maker_era == era;
    const int is_own = is_busy && pthread_equal(slot->maker, pthread_self());
    if (!is_made && !is_busy) {
      slot->maker_era = era;
      slot->maker = pthread_self();
    }
    cuplug__registry_unlock();
    if (!is_busy) return is_made;
    if (is_own) return -1;
  }
}

static void end(cuplug__state_slot *slot, uint32_t era, int status, void *state) {
  cuplug__registry_lock();
  slot->maker_era = 0;
  if (!status) {
    slot->shared = state;
    atomic_store_explicit(&slot->era, era, memory_order_release);
  }
  cuplug__registry_unlock();
}

static int take_shared(cuplug__states *states, cuplug_call *call, cuplug_error *error) {
  cuplug__state_slot *slot = slot_of(states, call->device);
  const uint32_t era = cuplug__registry_era();
  if (atomic_load_explicit(&slot->era, memory_order_acquire) != era) {
    const int begun = begin(slot, era);
    if (begun < 0)
      return cuplug__fail(error, CUPLUG_ERROR_PLUGIN,
                          "state: its function %s called the plugin, which needs the state",
                          states->symbol);
    if (!begun) {
      void *state = NULL;
      const int status = make(states, call, error, &state);
      end(slot, era, status, state);
      if (status) return status;
    }
  }
  call->state = slot->shared;
  return CUPLUG_OK;
}

/* ---- One for each call ----------------------------------------------------------------------- */

static cuplug__held *take_idle(cuplug__state_slot *slot, uint32_t era) {
  cuplug__registry_lock();
  cuplug__held *held = slot->idle;
  while (held && held->era != era) held = held->next; /* of a parent process: not touched */
  slot->idle = held ? held->next : NULL;
  cuplug__registry_unlock();
  return held;
}

static int take_exclusive(cuplug__states *states, cuplug_call *call, cuplug_error *error,
                          cuplug__held **held) {
  const uint32_t era = cuplug__registry_era();
  *held = take_idle(slot_of(states, call->device), era);
  if (!*held) {
    cuplug__held *fresh = calloc(1, sizeof *fresh);
    if (!fresh) return cuplug__no_memory(error, "making a state");
    const int status = make(states, call, error, &fresh->state);
    if (status) {
      free(fresh);
      return status;
    }
    fresh->era = era;
    *held = fresh;
  }
  call->state = (*held)->state;
  return CUPLUG_OK;
}

int cuplug__state_take(cuplug__states *states, cuplug_call *call, cuplug_error *error,
                       cuplug__held **held) {
  *held = NULL;
  return states->is_exclusive ? take_exclusive(states, call, error, held)
                              : take_shared(states, call, error);
}

void cuplug__state_give(cuplug__states *states, cuplug_device device, cuplug__held *held) {
  if (!held) return;
  cuplug__state_slot *slot = slot_of(states, device);
  cuplug__registry_lock();
  held->next = slot->idle;
  slot->idle = held;
  cuplug__registry_unlock();
}

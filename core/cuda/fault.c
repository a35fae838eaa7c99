/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records: 64 bytes each in blocks of pinned memory; whose they are is on the heap. The
 * device sees host pointers of pinned memory as they are (unified addressing). */
#include "cuda/fault.h"

#include "base/status.h"
#include "cuda/capture.h"
#include "cuda/driver.h"
#include "cuda/error.h"
#include "cuda/gpus.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_RECORDS 63 /* of a block of 4 KiB: the first 64 bytes are its head */

enum { UNUSED, SHARED, PRIVATE };

/* What the host knows of a record. */
typedef struct owner {
  int use;
  const cuplug__names *names;
} owner;

/* In pinned memory. Of the first block's head the summary words serve all records. */
typedef struct pinned_block {
  uint32_t summary; /* nonzero: some shared record has a fault */
  uint32_t private_summary;
  uint32_t reserved[14];
  cuplug_fault records[N_RECORDS];
} pinned_block;

typedef struct block {
  struct block *next;
  pinned_block *pinned;
  owner owners[N_RECORDS];
} block;

_Static_assert(sizeof(cuplug_fault) == 64, "a record is one cache line");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;               /* newest first; under the lock */
static pinned_block *_Atomic first; /* holds the summary words */

static int allocate_pinned(void **pinned) {
  CUPLUG__RELAXED mode = cuplug__capture_relax();
  return cuplug__driver.cuMemHostAlloc(pinned, sizeof(pinned_block),
                                       CUPLUG__HOST_PORTABLE | CUPLUG__HOST_MAPPED);
}

static int add_block(cuplug_error *error) {
  void *pinned = NULL;
  block *new = calloc(1, sizeof *new);
  if (!new) return cuplug__no_memory(error, "making a fault record");
  int code = allocate_pinned(&pinned);
  if (code) {
    free(new);
    return cuplug__cuda_fail(error, code, "making a fault record");
  }
  memset(pinned, 0, sizeof(pinned_block));
  new->pinned = pinned;
  new->next = blocks;
  blocks = new;
  if (!new->next) atomic_store_explicit(&first, new->pinned, memory_order_release);
  return CUPLUG_OK;
}

static cuplug_fault *take_unused(int use, const cuplug__names *names) {
  pinned_block *head = atomic_load_explicit(&first, memory_order_relaxed);
  for (block *at = blocks; at; at = at->next) {
    for (int i = 0; i < N_RECORDS; i++) {
      if (at->owners[i].use != UNUSED) continue;
      at->owners[i] = (owner){use, names};
      cuplug_fault *fault = &at->pinned->records[i];
      fault->summary = use == SHARED ? &head->summary : &head->private_summary;
      return fault;
    }
  }
  return NULL;
}

static owner *owner_of(const cuplug_fault *fault) {
  for (block *at = blocks; at; at = at->next)
    if (fault >= at->pinned->records && fault < at->pinned->records + N_RECORDS)
      return &at->owners[fault - at->pinned->records];
  return NULL;
}

static int make_record(int use, const cuplug__names *names, cuplug_fault **fault,
                       cuplug_error *error) {
  int status = CUPLUG_OK;
  pthread_mutex_lock(&lock);
  *fault = take_unused(use, names);
  if (!*fault) status = add_block(error);
  if (!*fault && !status) *fault = take_unused(use, names);
  pthread_mutex_unlock(&lock);
  return status;
}

int cuplug__fault_record(const cuplug__names *names, cuplug_fault **fault, cuplug_error *error) {
  return make_record(SHARED, names, fault, error);
}

int cuplug__fault_private(cuplug_fault **fault, cuplug_error *error) {
  static const cuplug__names unnamed = {.operator_name = "operator"};
  return make_record(PRIVATE, &unnamed, fault, error);
}

void cuplug__fault_rename(cuplug_fault *fault, const cuplug__names *names) {
  pthread_mutex_lock(&lock);
  owner *o = owner_of(fault);
  if (o) o->names = names;
  pthread_mutex_unlock(&lock);
}

/* Ready for the next fault: `claimed` last, since a kernel that sees it 0 writes the rest. */
static void clear(cuplug_fault *fault) {
  __atomic_store_n(&fault->status, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&fault->claimed, 0, __ATOMIC_RELEASE);
}

void cuplug__fault_release(cuplug_fault *fault) {
  pthread_mutex_lock(&lock);
  owner *o = owner_of(fault);
  if (o) {
    clear(fault);
    o->use = UNUSED;
  }
  pthread_mutex_unlock(&lock);
}

/* Whether low <= value < high is what NumPy calls a size: from 0, or from -size for wrapped ones.
 * Unsigned, because a plugin may have written anything. */
static int is_size(const cuplug_fault *fault) {
  return fault->low == 0 || (uint64_t)fault->low + (uint64_t)fault->high == 0;
}

static int report(const cuplug_fault *fault, const cuplug__names *names, cuplug_error *error) {
  char tensor[CUPLUG__NAME_BYTES];
  cuplug__name_tensor(tensor, names, fault->tensor, UINT32_MAX);
  if (fault->status == CUPLUG_ERROR_VALUE)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: %s: seen a smaller number at position %lld, wanted ascending ones",
                        names->operator_name, tensor, (long long)fault->position);
  if (is_size(fault))
    return cuplug__fail(error, CUPLUG_ERROR_INDEX,
                        "%s: %s: index %lld at position %lld is out of bounds for size %lld",
                        names->operator_name, tensor, (long long)fault->value,
                        (long long)fault->position, (long long)fault->high);
  return cuplug__fail(error, CUPLUG_ERROR_INDEX,
                      "%s: %s: index %lld at position %lld is out of range, wanted %lld <= value < "
                      "%lld",
                      names->operator_name, tensor, (long long)fault->value,
                      (long long)fault->position, (long long)fault->low, (long long)fault->high);
}

static int has_fault(const cuplug_fault *fault) {
  return __atomic_load_n(&fault->status, __ATOMIC_ACQUIRE) != 0;
}

/* Under the lock. */
static int take_record(cuplug_fault *fault, const owner *o, cuplug_error *error) {
  if (!o || !has_fault(fault)) return CUPLUG_OK;
  cuplug_fault seen = *fault;
  clear(fault);
  return report(&seen, o->names, error);
}

int cuplug__fault_take(cuplug_fault *fault, cuplug_error *error) {
  if (!fault || !cuplug__driver_ready() || !has_fault(fault)) return CUPLUG_OK;
  pthread_mutex_lock(&lock);
  int status = take_record(fault, owner_of(fault), error);
  pthread_mutex_unlock(&lock);
  return status;
}

/* Under the lock. The first fault found is taken; *more says that another is there, or is being
 * written: its claim is visible before its status. */
static int take_shared(block *at, int taken, int *more, cuplug_error *error) {
  for (int i = 0; i < N_RECORDS; i++) {
    cuplug_fault *fault = &at->pinned->records[i];
    if (at->owners[i].use != SHARED) continue;
    if (!taken) taken = take_record(fault, &at->owners[i], error);
    if (__atomic_load_n(&fault->claimed, __ATOMIC_ACQUIRE)) *more = 1;
  }
  return taken;
}

int cuplug__fault_take_any(cuplug_error *error) {
  int status = CUPLUG_OK, more = 0;
  pinned_block *head = atomic_load_explicit(&first, memory_order_acquire);
  if (!head || !cuplug__driver_ready()) return CUPLUG_OK;
  if (!__atomic_load_n(&head->summary, __ATOMIC_ACQUIRE)) return CUPLUG_OK;
  pthread_mutex_lock(&lock);
  __atomic_store_n(&head->summary, 0, __ATOMIC_SEQ_CST);
  for (block *at = blocks; at; at = at->next) status = take_shared(at, status, &more, error);
  if (more) __atomic_store_n(&head->summary, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_unlock(&lock);
  return status;
}

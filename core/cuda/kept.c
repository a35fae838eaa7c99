/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/kept.h"

#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"

#include <stdatomic.h>

/* Blocks of one device, and the share of its memory that the largest of them may have. */
#define N_SLOTS 16
#define LARGEST_SHARE 1024

/* Whoever makes it BUSY owns it; nobody waits for one that is. */
enum { EMPTY, FULL, BUSY };

typedef struct slot {
  _Atomic int state;
  _Atomic uint64_t bytes; /* a hint, until the slot is owned */
  void *pointer;
} slot;

static slot slots[CUPLUG__MAX_GPUS][N_SLOTS];
static _Atomic unsigned next_place[CUPLUG__MAX_GPUS]; /* which block makes room */

static int own(slot *s, int state) {
  return atomic_compare_exchange_strong_explicit(&s->state, &state, BUSY, memory_order_acquire,
                                                 memory_order_relaxed);
}

static void *leave(slot *s, int state) {
  void *pointer = s->pointer;
  atomic_store_explicit(&s->state, state, memory_order_release);
  return pointer;
}

static void fill(slot *s, void *pointer, uint64_t bytes) {
  s->pointer = pointer;
  atomic_store_explicit(&s->bytes, bytes, memory_order_relaxed);
  leave(s, FULL);
}

static int has(slot *s, uint64_t bytes) {
  return atomic_load_explicit(&s->bytes, memory_order_relaxed) == bytes;
}

void *cuplug__kept_take(int32_t device, uint64_t bytes) {
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++) {
    if (!has(s, bytes) || !own(s, FULL)) continue;
    if (has(s, bytes)) return leave(s, EMPTY);
    leave(s, FULL);
  }
  return NULL;
}

static void give_back(void *pointer) {
  cuplug__driver.cuMemFreeAsync((CUdeviceptr)(uintptr_t)pointer, CUPLUG__STREAM(NULL));
}

int cuplug__kept_give(int32_t device, void *pointer, uint64_t bytes) {
  if (bytes > cuplug__gpus[device].memory_bytes / LARGEST_SHARE) return 0;
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++)
    if (own(s, EMPTY)) {
      fill(s, pointer, bytes);
      return 1;
    }
  slot *s = &slots[device][atomic_fetch_add(&next_place[device], 1) % N_SLOTS];
  if (!own(s, FULL)) return 0;
  void *const old = s->pointer;
  fill(s, pointer, bytes);
  give_back(old);
  return 1;
}

int cuplug__kept_free(int32_t device) {
  int n = 0;
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++) {
    if (!own(s, FULL)) continue;
    give_back(leave(s, EMPTY));
    n++;
  }
  return n != 0;
}

uint64_t cuplug__kept_bytes(int32_t device) {
  uint64_t bytes = 0;
  for (slot *s = slots[device]; s < slots[device] + N_SLOTS; s++)
    if (atomic_load_explicit(&s->state, memory_order_acquire) == FULL)
      bytes += atomic_load_explicit(&s->bytes, memory_order_relaxed);
  return bytes;
}

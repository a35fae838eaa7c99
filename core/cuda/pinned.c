/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/pinned.h"

#include "cuda/driver.h"

/* The block of memory that an address lies in. */
typedef struct block {
  unsigned int type; /* 0: the driver knows no such memory */
  int is_managed;
  unsigned long long id;
} block;

static block block_of(const char *address) {
  block b = {0};
  CUpointer_attribute attributes[] = {CUPLUG__POINTER_MEMORY_TYPE, CUPLUG__POINTER_IS_MANAGED,
                                      CUPLUG__POINTER_BUFFER_ID};
  void *values[] = {&b.type, &b.is_managed, &b.id};
  if (cuplug__driver.cuPointerGetAttributes(3, attributes, values, (CUdeviceptr)(uintptr_t)address))
    b.type = 0;
  return b;
}

static int is_host(const block *b) { return b->type == CUPLUG__MEMORY_TYPE_HOST && !b->is_managed; }

/* Both ends: views may go past what was registered. */
int cuplug__is_pinned(const void *memory, uint64_t bytes) {
  const block first = block_of(memory);
  if (!bytes || !is_host(&first)) return 0;
  const block last = block_of((const char *)memory + bytes - 1);
  return is_host(&last) && last.id == first.id;
}

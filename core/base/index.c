/* SPDX-License-Identifier: Apache-2.0 */
#include "base/index.h"

#include <stdlib.h>
#include <string.h>

uint64_t cuplug__hash(uint64_t hash, const void *bytes, size_t n) {
  const uint64_t factor = 0x9e3779b97f4a7c15u;
  const unsigned char *c = bytes;
  uint64_t word;
  for (; n >= sizeof word; n -= sizeof word, c += sizeof word) {
    memcpy(&word, c, sizeof word);
    hash = (hash ^ word) * factor + 1;
  }
  for (word = n; n; n--) word = word << 8 | *c++;
  hash = (hash ^ word) * factor;
  return hash ^ hash >> 32; /* a product's low bits depend only on low bits */
}

uint64_t cuplug__hash_text(const char *text) { return cuplug__hash(0, text, strlen(text)); }

/* There is room for it. */
static void put(cuplug__index *index, uint64_t hash, size_t number) {
  size_t k = hash & (index->room - 1);
  while (index->entries[k].number) k = (k + 1) & (index->room - 1);
  index->entries[k] = (cuplug__entry_of_index){hash, number};
}

/* Entries of one hash keep their order: it begins after a free entry. */
static int grow(cuplug__index *index) {
  const cuplug__index old = *index;
  const size_t room = old.room ? 2 * old.room : 64;
  cuplug__entry_of_index *entries = calloc(room, sizeof *entries);
  if (!entries) return 0;
  index->entries = entries;
  index->room = room;
  size_t first = 0;
  while (first < old.room && old.entries[first].number) first++;
  for (size_t k = 0; k < old.room; k++) {
    const cuplug__entry_of_index *e = &old.entries[(first + k) & (old.room - 1)];
    if (e->number) put(index, e->hash, e->number);
  }
  free(old.entries);
  return 1;
}

int cuplug__index_add(cuplug__index *index, uint64_t hash, size_t number) {
  if (2 * index->n >= index->room && !grow(index)) return 0;
  put(index, hash, number + 1);
  index->n++;
  return 1;
}

int cuplug__index_next(const cuplug__index *index, uint64_t hash, size_t *at, size_t *number) {
  for (; *at < index->room; ++*at) {
    const cuplug__entry_of_index *e = &index->entries[(hash + *at) & (index->room - 1)];
    if (!e->number) return 0;
    if (e->hash != hash) continue;
    *number = e->number - 1;
    ++*at;
    return 1;
  }
  return 0;
}

void cuplug__index_end(cuplug__index *index) {
  free(index->entries);
  *index = (cuplug__index){0};
}

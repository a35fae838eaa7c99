/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts bytes by counting each value. All threads sort large arrays. */
#include "sorting/host/radix.h"

#include <stdatomic.h>
#include <string.h>

#define MANY (1 << 18)    /* bytes from which all threads sort */
#define AT_ONCE (1 << 16) /* bytes that are worth a thread then */
#define BLOCK (1 << 30)   /* bytes that are counted in 32 bits */
#define WORD 16           /* bytes that are written at once */

/* Adds the count of each byte. It uses four tables, since each increment waits for the one before.
 */
static void count_into(int64_t *counts, const uint8_t *keys, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += BLOCK) {
    uint32_t tables[4][256] = {{0}};
    const int64_t end = n - begin < BLOCK ? n : begin + BLOCK;
    int64_t i = begin;
    for (; i + 4 <= end; i += 4)
      for (int k = 0; k < 4; k++) tables[k][keys[i + k]]++;
    for (; i < end; i++) tables[0][keys[i]]++;
    for (int d = 0; d < 256; d++)
      counts[d] += (int64_t)tables[0][d] + tables[1][d] + tables[2][d] + tables[3][d];
  }
}

/* Writes the bytes in order, up to number `end` of [begin, end). Byte d occurs counts[d] times. Up
 * to WORD of them are written at once, and the next ones overwrite the excess. */
static void write_from(const int64_t *counts, uint8_t *keys, int64_t begin, int64_t end) {
  for (int64_t d = 0, at = 0; at < end; at += counts[d++]) {
    int64_t from = at > begin ? at : begin, to = at + counts[d];
    if (to > end) to = end;
    if (end - from >= WORD) {
      memset(keys + from, (int)d, WORD);
      from += WORD;
    }
    if (to > from) memset(keys + from, (int)d, (size_t)(to - from));
  }
}

typedef struct job {
  uint8_t *keys;
  _Atomic int64_t counts[256];
  int64_t counted[256];
} job;

static int count_part(void *context, int64_t begin, int64_t end) {
  job *j = context;
  int64_t counts[256] = {0};
  count_into(counts, j->keys + begin, end - begin);
  for (int d = 0; d < 256; d++) atomic_fetch_add(&j->counts[d], counts[d]);
  return CUPLUG_OK;
}

static int write_part(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  write_from(j->counted, j->keys, begin, end);
  return CUPLUG_OK;
}

int sorting_count(const cuplug_call *call, uint8_t *keys, int64_t n) {
  job j = {.keys = keys};
  if (n < MANY) {
    count_into(j.counted, keys, n);
    write_from(j.counted, keys, 0, n);
    return CUPLUG_OK;
  }
  const int status = cuplug_parallel(call, n, AT_ONCE, count_part, &j);
  for (int d = 0; d < 256; d++) j.counted[d] = j.counts[d];
  return status ? status : cuplug_parallel(call, n, AT_ONCE, write_part, &j);
}

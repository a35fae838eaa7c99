/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes: numbers found by one, whose objects the caller owns and compares; digests of files. */
#ifndef CUPLUG_CORE_BASE_HASH_H
#define CUPLUG_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct cuplug__entry_of_index {
  uint64_t hash;
  size_t number; /* one more than it; 0: nothing is here */
} cuplug__entry_of_index;

/* Zeros are an index without anything in it. */
typedef struct cuplug__index {
  cuplug__entry_of_index *entries; /* owned */
  size_t room;                     /* a power of two, or 0 */
  size_t n;
} cuplug__index;

/* By products of words, starting from `hash`: 0 initially. */
uint64_t cuplug__hash(uint64_t hash, const void *bytes, size_t n);
uint64_t cuplug__hash_text(const char *text);

/* 0 when memory ran out. */
int cuplug__index_add(cuplug__index *index, uint64_t hash, size_t number);

/* The numbers of a hash, in the order in which they were added: *at is 0 at first. 0: no more. */
int cuplug__index_next(const cuplug__index *index, uint64_t hash, size_t *at, size_t *number);
void cuplug__index_end(cuplug__index *index);

/* ---- SHA-256 (FIPS 180-4) -------------------------------------------------------------------- */

#define CUPLUG__DIGEST_BYTES 32

typedef struct cuplug__sha256 {
  uint32_t state[8];
  uint64_t n_bytes;
  uint8_t block[64];
} cuplug__sha256;

void cuplug__sha256_start(cuplug__sha256 *sha);
void cuplug__sha256_add(cuplug__sha256 *sha, const void *data, size_t bytes);
void cuplug__sha256_end(cuplug__sha256 *sha, uint8_t digest[CUPLUG__DIGEST_BYTES]);

#endif

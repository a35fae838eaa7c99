/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes for lists of objects with one hash, and digests of files. */
#ifndef CUPLUG_CORE_BASE_HASH_H
#define CUPLUG_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* By products of words, starting from `hash`: 0 initially. */
uint64_t cuplug__hash(uint64_t hash, const void *bytes, size_t n);
uint64_t cuplug__hash_text(const char *text);

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

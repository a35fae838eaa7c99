/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

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

/* ---- SHA-256 (FIPS 180-4) -------------------------------------------------------------------- */

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static const uint32_t first_state[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void load_words(uint32_t w[64], const uint8_t *block) {
  for (int k = 0; k < 16; k++, block += 4)
    w[k] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 | (uint32_t)block[2] << 8 | block[3];
  for (int k = 16; k < 64; k++) {
    uint32_t a = w[k - 15], b = w[k - 2];
    w[k] = w[k - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[k - 7] +
           (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
  }
}

static void add_block(uint32_t state[8], const uint8_t *block) {
  uint32_t w[64], s[8];
  load_words(w, block);
  memcpy(s, state, sizeof(s));
  for (int k = 0; k < 64; k++) {
    uint32_t e = s[4], a = s[0];
    uint32_t choice = (e & s[5]) ^ (~e & s[6]);
    uint32_t majority = (a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]);
    uint32_t t1 =
        s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + round_constants[k] + w[k];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
    memmove(s + 1, s, 7 * sizeof(s[0]));
    s[4] += t1;
    s[0] = t1 + t2;
  }
  for (int k = 0; k < 8; k++) state[k] += s[k];
}

void cuplug__sha256_start(cuplug__sha256 *sha) {
  memset(sha, 0, sizeof(*sha));
  memcpy(sha->state, first_state, sizeof(first_state));
}

void cuplug__sha256_add(cuplug__sha256 *sha, const void *data, size_t bytes) {
  const uint8_t *from = data;
  while (bytes) {
    size_t at = sha->n_bytes % sizeof(sha->block);
    size_t n = bytes < sizeof(sha->block) - at ? bytes : sizeof(sha->block) - at;
    memcpy(sha->block + at, from, n);
    if (at + n == sizeof(sha->block)) add_block(sha->state, sha->block);
    sha->n_bytes += n;
    from += n;
    bytes -= n;
  }
}

void cuplug__sha256_end(cuplug__sha256 *sha, uint8_t digest[CUPLUG__DIGEST_BYTES]) {
  static const uint8_t padding[64] = {0x80};
  uint64_t n_bits = sha->n_bytes * 8;
  uint8_t length[8];
  for (int k = 0; k < 8; k++) length[k] = (uint8_t)(n_bits >> (56 - 8 * k));
  cuplug__sha256_add(sha, padding, 1 + (119 - sha->n_bytes % 64) % 64);
  cuplug__sha256_add(sha, length, sizeof(length));
  for (int k = 0; k < CUPLUG__DIGEST_BYTES; k++)
    digest[k] = (uint8_t)(sha->state[k / 4] >> (24 - 8 * (k % 4)));
}

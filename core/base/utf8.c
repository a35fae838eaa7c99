/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* The length of a well-formed UTF-8 character that a terminal shows, 0 for anything else. Of a
 * string that ends inside a character the terminating zero is refused as a continuation. */
static size_t character_bytes(const unsigned char *c) {
  if (c[0] < 0x80) return c[0] >= ' ' && c[0] != 0x7f;
  size_t n = c[0] >= 0xf0 ? 4 : c[0] >= 0xe0 ? 3 : 2;
  if (c[0] < 0xc2 || c[0] > 0xf4) return 0;
  for (size_t k = 1; k < n; k++)
    if ((c[k] & 0xc0) != 0x80) return 0;
  int overlong = (c[0] == 0xe0 && c[1] < 0xa0) || (c[0] == 0xf0 && c[1] < 0x90);
  int surrogate = c[0] == 0xed && c[1] > 0x9f;
  int beyond = c[0] == 0xf4 && c[1] > 0x8f;
  int control = c[0] == 0xc2 && c[1] < 0xa0;
  return overlong || surrogate || beyond || control ? 0 : n;
}

/* How many bytes at the beginning of a string are ASCII that a terminal shows, in eights. */
static size_t shown_ascii(const char *text, size_t n) {
  const uint64_t ones = UINT64_MAX / 255;
  for (size_t k = 0; k + 8 <= n; k += 8) {
    uint64_t x;
    memcpy(&x, text + k, sizeof x);
    const uint64_t below = (x - ' ' * ones) & ~x, above = x | (x + ones); /* a space; a tilde */
    if ((below | above) & 128 * ones) return k;
  }
  return n & ~(size_t)7;
}

size_t cuplug__shown_bytes(const char *text, size_t n) {
  size_t k = shown_ascii(text, n), step;
  while (text[k] && (step = character_bytes((const unsigned char *)text + k))) k += step;
  return k;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The dtypes by number, by name and in groups. */
#include "base/dtype.h"

#include <string.h>

static const struct {
  const char *name;
  uint32_t id;
} dtypes[] = {
#define CUPLUG__X(name, NAME, code, bits) {#name, CUPLUG_##NAME},
    CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
};

enum {
#define CUPLUG__X(name, NAME, code, bits) NUMBER_##NAME,
  CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
};

const uint32_t cuplug__n_dtypes = sizeof(dtypes) / sizeof(dtypes[0]);

const char *cuplug_dtype_name(uint32_t k) { return k < cuplug__n_dtypes ? dtypes[k].name : NULL; }

uint32_t cuplug_dtype_id(uint32_t k) { return k < cuplug__n_dtypes ? dtypes[k].id : 0; }

/* 1 + the number of a dtype, by type code and the power of two of its bits. */
static const uint8_t numbers[16][8] = {
#define CUPLUG__X(name, NAME, code, bits) [code][__builtin_ctz(bits)] = 1 + NUMBER_##NAME,
    CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
};

uint32_t cuplug__dtype_bit(uint32_t id) {
  uint32_t code = id >> 24, bits = id >> 16 & 255, lanes = id & 65535;
  if (code >= 16 || lanes != 1 || bits == 0 || (bits & (bits - 1))) return 0;
  uint32_t number = numbers[code][__builtin_ctz(bits)];
  return number ? 1u << (number - 1) : 0;
}

/* The bits of all dtypes with one of two DLPack type codes. */
static uint32_t bits_of_codes(uint32_t a, uint32_t b) {
  uint32_t bits = 0;
  for (uint32_t k = 0; k < cuplug__n_dtypes; k++)
    if (dtypes[k].id >> 24 == a || dtypes[k].id >> 24 == b) bits |= 1u << k;
  return bits;
}

/* Tables have thousands of names, and most differ in their first letter. */
static int is_name(const char *name, const char *wanted) {
  return *name == *wanted && !strcmp(name, wanted);
}

uint32_t cuplug__dtype_bits(const char *name) {
  if (is_name(name, "any")) return CUPLUG__ANY_DTYPE;
  if (is_name(name, "integer")) return bits_of_codes(0, 1);
  if (is_name(name, "floating")) return bits_of_codes(2, 4);
  if (is_name(name, "complex")) return bits_of_codes(5, 5);
  for (uint32_t k = 0; k < cuplug__n_dtypes; k++)
    if (is_name(name, dtypes[k].name)) return 1u << k;
  return 0;
}

uint32_t cuplug__dtype_number(uint32_t bits) {
  uint32_t k = 0;
  while (k < cuplug__n_dtypes && bits != 1u << k) k++;
  return k;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The dtypes by number, by name and in groups. */
#include "base/dtype.h"

#include <string.h>

static const struct {
  const char *name;
  uint32_t id, abi_version;
} dtypes[] = {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  {#name, CUPLUG_##NAME, (uint32_t)CUPLUG_ABI_MAJOR << 16 | (minor)},
    CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
};

#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  _Static_assert((minor) <= CUPLUG_ABI_MINOR, #name " needs a greater CUPLUG_ABI_MINOR");
CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
_Static_assert(CUPLUG__N_DTYPES < 64, "sets of dtypes are 64 bits, of which C++ uses the last");

const char *cuplug_dtype_name(uint32_t k) { return k < CUPLUG__N_DTYPES ? dtypes[k].name : NULL; }

uint32_t cuplug_dtype_id(uint32_t k) { return k < CUPLUG__N_DTYPES ? dtypes[k].id : 0; }

/* 1 + the number of a dtype, by type code and the power of two of its bits. */
static const uint8_t numbers[][8] = {
#define CUPLUG__X(name, NAME, code, bits, lanes, minor) \
  [code][__builtin_ctz(bits)] = 1 + CUPLUG__PLACE_OF_##NAME,
    CUPLUG_DTYPE_LIST(CUPLUG__X)
#undef CUPLUG__X
};

uint64_t cuplug__dtype_bit(uint32_t id) {
  const uint32_t code = id >> 24, bits = id >> 16 & 255;
  if (code >= sizeof numbers / sizeof *numbers || !bits) return 0;
  const uint32_t number = numbers[code][__builtin_ctz(bits)];
  return number && dtypes[number - 1].id == id ? 1ull << (number - 1) : 0;
}

uint64_t cuplug__dtypes_of_abi(uint32_t abi_version) {
  uint64_t bits = 0;
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++)
    if (dtypes[k].abi_version <= abi_version) bits |= 1ull << k;
  return bits;
}

/* The bits of all dtypes of one element with one of two DLPack type codes. */
static uint64_t bits_of_codes(uint32_t a, uint32_t b) {
  uint64_t bits = 0;
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++) {
    const uint32_t code = dtypes[k].id >> 24, lanes = dtypes[k].id & 65535;
    if (lanes == 1 && (code == a || code == b)) bits |= 1ull << k;
  }
  return bits;
}

/* Tables have thousands of names, and most differ in their first letter. */
static int is_name(const char *name, const char *wanted) {
  return *name == *wanted && !strcmp(name, wanted);
}

uint64_t cuplug__dtype_bits(const char *name) {
  if (is_name(name, "any")) return CUPLUG__ANY_DTYPE;
  if (is_name(name, "integer")) return bits_of_codes(0, 1);
  if (is_name(name, "floating")) return bits_of_codes(2, 4);
  if (is_name(name, "complex")) return bits_of_codes(5, 5);
  for (uint32_t k = 0; k < CUPLUG__N_DTYPES; k++)
    if (is_name(name, dtypes[k].name)) return 1ull << k;
  return 0;
}

uint32_t cuplug__dtype_number(uint64_t bits) {
  uint32_t k = 0;
  while (k < CUPLUG__N_DTYPES && bits != 1ull << k) k++;
  return k;
}

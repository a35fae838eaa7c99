/* SPDX-License-Identifier: Apache-2.0 */
/* The dtypes by number, by name and in groups. */
#include "base/dtype.h"

#include <float.h>
#include <math.h>
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

/* ---- Scalars --------------------------------------------------------------------------------- */

/* The value of an argument as a float; only for the kinds that are numbers. */
static double as_float(const cuplug_argument *a) {
  if (a->kind == CUPLUG_ARGUMENT_FLOAT || a->kind == CUPLUG_ARGUMENT_HUGE_INT) return a->scalar.f;
  if (a->kind == CUPLUG_ARGUMENT_UINT) return (double)a->scalar.u;
  return (double)a->scalar.i;
}

/* The largest number, by the number of the dtype; 0: of a double. */
static const double largest[CUPLUG__N_DTYPES] = {
    [CUPLUG__PLACE_OF_FLOAT16] = 65504.0,        [CUPLUG__PLACE_OF_BFLOAT16] = 0x1.FEp127,
    [CUPLUG__PLACE_OF_FLOAT32] = FLT_MAX,        [CUPLUG__PLACE_OF_COMPLEX64] = FLT_MAX,
    [CUPLUG__PLACE_OF_FLOAT8_E4M3FN] = 448.0,    [CUPLUG__PLACE_OF_FLOAT8_E4M3FNUZ] = 240.0,
    [CUPLUG__PLACE_OF_FLOAT8_E5M2] = 57344.0,    [CUPLUG__PLACE_OF_FLOAT8_E5M2FNUZ] = 57344.0,
    [CUPLUG__PLACE_OF_FLOAT8_E8M0FNU] = 0x1p127,
};

static int fits(double value, uint32_t type) {
  const double most = largest[__builtin_ctzll(cuplug__dtype_bit(type))];
  return most == 0 || !(fabs(value) > most) || isinf(value);
}

static int to_signed(const cuplug_argument *from, uint32_t type, cuplug_scalar *to) {
  int64_t high = INT64_MAX >> (64 - (type >> 16 & 255));
  if (from->kind == CUPLUG_ARGUMENT_UINT) return CUPLUG_ERROR_VALUE;
  to->i = from->scalar.i;
  return to->i <= high && to->i >= -high - 1 ? CUPLUG_OK : CUPLUG_ERROR_VALUE;
}

static int to_unsigned(const cuplug_argument *from, uint32_t type, cuplug_scalar *to) {
  uint64_t high = UINT64_MAX >> (64 - (type >> 16 & 255));
  if (from->kind != CUPLUG_ARGUMENT_UINT && from->scalar.i < 0) return CUPLUG_ERROR_VALUE;
  to->u = from->scalar.u;
  return to->u <= high ? CUPLUG_OK : CUPLUG_ERROR_VALUE;
}

static int to_complex(const cuplug_argument *from, uint32_t type, cuplug_scalar *to) {
  int is_complex = from->kind == CUPLUG_ARGUMENT_COMPLEX;
  double real = is_complex ? from->scalar.c[0] : as_float(from);
  double imaginary = is_complex ? from->scalar.c[1] : 0.0;
  to->c[0] = real;
  to->c[1] = imaginary;
  return fits(real, type) && fits(imaginary, type) ? CUPLUG_OK : CUPLUG_ERROR_VALUE;
}

int cuplug__convert_scalar(const cuplug_argument *from, uint32_t type, cuplug_scalar *to) {
  int is_integer = from->kind == CUPLUG_ARGUMENT_BOOL || from->kind == CUPLUG_ARGUMENT_INT ||
                   from->kind == CUPLUG_ARGUMENT_UINT;
  int is_huge = from->kind == CUPLUG_ARGUMENT_HUGE_INT;
  int is_real = is_integer || is_huge || from->kind == CUPLUG_ARGUMENT_FLOAT;
  if ((type & 65535) != 1) return CUPLUG_ERROR_TYPE; /* a packed pair is not a number */
  if (is_huge && (isinf(from->scalar.f) || type >> 24 <= 1)) return CUPLUG_ERROR_VALUE;
  switch (type >> 24) {
  case 6: /* bool */
    if (from->kind != CUPLUG_ARGUMENT_BOOL) return CUPLUG_ERROR_TYPE;
    to->i = from->scalar.i != 0;
    return CUPLUG_OK;
  case 0:
    return is_integer ? to_signed(from, type, to) : CUPLUG_ERROR_TYPE;
  case 1:
    return is_integer ? to_unsigned(from, type, to) : CUPLUG_ERROR_TYPE;
  case 5:
    if (!is_real && from->kind != CUPLUG_ARGUMENT_COMPLEX) return CUPLUG_ERROR_TYPE;
    return to_complex(from, type, to);
  default:
    if (!is_real) return CUPLUG_ERROR_TYPE;
    to->f = as_float(from);
    return fits(to->f, type) ? CUPLUG_OK : CUPLUG_ERROR_VALUE;
  }
}

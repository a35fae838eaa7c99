/* SPDX-License-Identifier: Apache-2.0 */
#include "base/scalar.h"

#include <float.h>
#include <math.h>

/* The value of an argument as a float; only for the kinds that are numbers. */
static double as_float(const cuplug_argument *a) {
  if (a->kind == CUPLUG_ARGUMENT_FLOAT || a->kind == CUPLUG_ARGUMENT_HUGE_INT) return a->scalar.f;
  if (a->kind == CUPLUG_ARGUMENT_UINT) return (double)a->scalar.u;
  return (double)a->scalar.i;
}

static double largest(uint32_t type) {
  switch (type) {
  case CUPLUG_FLOAT16:
    return 65504.0;
  case CUPLUG_BFLOAT16:
    return 0x1.FEp127;
  case CUPLUG_FLOAT32:
  case CUPLUG_COMPLEX64:
    return FLT_MAX;
  case CUPLUG_FLOAT8_E4M3FN:
    return 448.0;
  case CUPLUG_FLOAT8_E4M3FNUZ:
    return 240.0;
  case CUPLUG_FLOAT8_E5M2:
  case CUPLUG_FLOAT8_E5M2FNUZ:
    return 57344.0;
  case CUPLUG_FLOAT8_E8M0FNU:
    return 0x1p127;
  default:
    return DBL_MAX;
  }
}

static int fits(double value, uint32_t type) {
  return !(fabs(value) > largest(type)) || isinf(value);
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
  if ((type & 65535) != 1) return CUPLUG_ERROR_TYPE; /* a packed pair is no number */
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

/* SPDX-License-Identifier: Apache-2.0 */
/* The dtypes by number, by name and in sets. */
#ifndef CUPLUG_CORE_BASE_DTYPE_H
#define CUPLUG_CORE_BASE_DTYPE_H

#include <cuplug/host.h>

/* Bit k represents the k-th dtype of CUPLUG_DTYPE_LIST. */
#define CUPLUG__ANY_DTYPE ((1ull << CUPLUG__N_DTYPES) - 1)

/* The id of a dtype, as cuplug_type of a tensor with it. */
static inline uint32_t cuplug__id_of(cuplug_dtype dtype) {
  return (uint32_t)dtype.code << 24 | (uint32_t)dtype.bits << 16 | dtype.lanes;
}
static inline cuplug_dtype cuplug__dtype_of(uint32_t id) {
  return (cuplug_dtype){(uint8_t)(id >> 24), (uint8_t)(id >> 16), (uint16_t)id};
}
/* The bit of a dtype id; 0 for a dtype that the list lacks. */
uint64_t cuplug__dtype_bit(uint32_t id);
/* The bits of the dtypes that an ABI version has: `any`, for a plugin that was compiled for it. */
uint64_t cuplug__dtypes_of_abi(uint32_t abi_version);
/* The bits of a dtype, or of a group (any, integer, floating, complex); 0 for an unknown name. */
uint64_t cuplug__dtype_bits(const char *name);
/* The number of the only dtype in `bits`. */
uint32_t cuplug__dtype_number(uint64_t bits);

/* ---- Scalars --------------------------------------------------------------------------------- */

/* Converts `from` for a scalar of dtype `type` (a cuplug_type_id). Returns CUPLUG_OK,
 * CUPLUG_ERROR_TYPE if the kind does not fit, or CUPLUG_ERROR_VALUE if the value does not. */
int cuplug__convert_scalar(const cuplug_argument *from, uint32_t type, cuplug_scalar *to);

#endif

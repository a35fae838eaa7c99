/* SPDX-License-Identifier: Apache-2.0 */
/* The dtypes by number, by name and in sets. */
#ifndef CUPLUG_CORE_BASE_DTYPE_H
#define CUPLUG_CORE_BASE_DTYPE_H

#include <cuplug/host.h>

/* Bit k stands for the k-th dtype of CUPLUG_DTYPE_LIST. */
#define CUPLUG__ANY_DTYPE ((1ull << CUPLUG__N_DTYPES) - 1)

/* The bit of a dtype id; 0 for a dtype that the list lacks. */
uint64_t cuplug__dtype_bit(uint32_t id);
/* The bits of the dtypes that an ABI version has: `any`, for a plugin that was compiled for it. */
uint64_t cuplug__dtypes_of_abi(uint32_t abi_version);
/* The bits that a dtype, or a group of them (any, integer, floating, complex), stands for; 0 for an
 * unknown name. */
uint64_t cuplug__dtype_bits(const char *name);
/* The number of a dtype that stands alone in `bits`. */
uint32_t cuplug__dtype_number(uint64_t bits);

#endif

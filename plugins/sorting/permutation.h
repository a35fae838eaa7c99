/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the host and CUDA entries of permutation. */
#ifndef CUPLUG_PLUGINS_SORTING_PERMUTATION_H
#define CUPLUG_PLUGINS_SORTING_PERMUTATION_H

#include "philox.h"

static inline random_source permutation_source(const cuplug_call *call) {
  const cuplug_scalar *given = call->scalars;
  const random_source from = {random_keys_of(given[1].u), given[2].u, given[3].u};
  return from;
}

/* Returns whether element i comes before j, for equal narrow bits. `deciding` are the deciding bits
 * of i. */
ELEMENTS_INLINE int permutation_is_first(const random_source *from, int64_t i, uint64_t deciding,
                                         int64_t j) {
  const uint64_t other = random_deciding(from, (uint64_t)j);
  return deciding != other ? deciding < other : i < j;
}

#endif

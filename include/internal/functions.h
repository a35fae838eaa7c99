/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the core that only cuplug's own package and runtime call. The library exports
 * none of them: they may change with every version, and are reached through one table. */
#ifndef CUPLUG_INTERNAL_FUNCTIONS_H
#define CUPLUG_INTERNAL_FUNCTIONS_H

#include <internal/copies.h>
#include <internal/files.h>
#include <internal/frame.h>
#include <internal/gpus.h>
#include <internal/lookup.h>

CUPLUG__BEGIN_C

/* Each is declared in a header above, with the prefix cuplug_. */
#define CUPLUG_FUNCTIONS(X) \
  X(bind)                   \
  X(bind_row)               \
  X(call_again)             \
  X(free_blocks)            \
  X(keep_layout)            \
  X(required_copies)        \
  X(required_shape)         \
  X(check_device)           \
  X(copy_input)             \
  X(set_output)             \
  X(run)                    \
  X(n_rounding_changes)     \
  X(parse_signature)        \
  X(parse_short)            \
  X(free_signature)         \
  X(copy_array)             \
  X(find_stock)             \
  X(find_loaded)            \
  X(check_owner)            \
  X(open_library)           \
  X(used_gpus)              \
  X(query_attribute)        \
  X(release_device)         \
  X(check_origin)

typedef struct cuplug_functions {
  const struct cuplug__core *core; /* for the runtime: core/call/functions.h */
#define CUPLUG__MEMBER(name) __typeof__(cuplug_##name) *name;
  CUPLUG_FUNCTIONS(CUPLUG__MEMBER)
#undef CUPLUG__MEMBER
} cuplug_functions;

/* The table, for code that was compiled with the same version of these headers; else NULL.
 * [thread-safe] [no-cuda] */
CUPLUG_API const cuplug_functions *cuplug_private(const char *version, size_t table_bytes);

CUPLUG__END_C
#endif

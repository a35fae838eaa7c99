/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the core that only cuplug's own package and runtime call. The library exports
 * none of them: they may change with every version, and are reached through one table. */
#ifndef CUPLUG_INTERNAL_FUNCTIONS_H
#define CUPLUG_INTERNAL_FUNCTIONS_H

#include <internal/frame.h>

CUPLUG__BEGIN_C

/* ---- Operators by name ----------------------------------------------------------------------- */

/* Finds "plugin.operator" among the stock plugins, also if others have these names: code that is
 * built from the stock operators depends on them. [thread-safe] [no-cuda] */
int cuplug_find_stock(const char *name, cuplug_operator **op, cuplug_error *error);

/* The result of cuplug_find, if that needs no search and its code is loaded; else NULL. Reads no
 * file and takes no lock. [thread-safe] [no-cuda] */
cuplug_operator *cuplug_find_loaded(const char *name);

/* ---- Files that are not plugins -------------------------------------------------------------- */

/* Checks whether others may write the file at a path, by the rules for directories of plugins; for
 * the cache. ERROR_PLUGIN: the reason; ERROR_NOT_FOUND: there is no file. [thread-safe]
 * [no-cuda] */
int cuplug_check_owner(const char *path, cuplug_error *error);

/* Loads a library that is not a plugin, never closed; the thread's rounding is unchanged. Returns
 * the handle of dlopen, or NULL. [thread-safe] [no-cuda] */
void *cuplug_open_library(const char *path, cuplug_error *error);

/* ---- Arrays of the host ---------------------------------------------------------------------- */

/* Copies the elements of an array to one of the same shape and dtype, in other memory; at least one
 * of the two is contiguous. Returns 0 if elements of `to` share memory: nothing was done.
 * [thread-safe] [no-cuda] */
int cuplug_copy_array(const cuplug_tensor *to, const cuplug_tensor *from);

/* ---- GPUs ------------------------------------------------------------------------------------ */

/* In addition to <cuplug/devices.h>. */

/* The GPUs that have been used: bit k for GPU k. [thread-safe] */
uint64_t cuplug_used_gpus(void);

/* An attribute by CUDA's number. `is_known`: 0 where the driver is older. [thread-safe] */
int cuplug_query_attribute(int32_t device, int32_t attribute, int32_t *value, int32_t *is_known,
                           cuplug_error *error);

/* Frees memory of cuplug_allocate_device of this size, and may cache it for the next request of
 * that size. [thread-safe] [stream-ordered] */
int cuplug_release_device(int32_t device, void *pointer, uint64_t bytes, void *stream);

/* Raises the fault of the call of that origin, or of a call whose results it read, every time. 0:
 * unknown. The outputs of the call must have been waited for. [thread-safe] */
int cuplug_check_origin(uint64_t origin, cuplug_error *error);

/* ---- The table ------------------------------------------------------------------------------- */

/* Each is declared above, or in a header above, with the prefix cuplug_. */
#define CUPLUG_FUNCTIONS(X) \
  X(bind)                   \
  X(bind_overload)          \
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

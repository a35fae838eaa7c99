/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the core that only the runtime calls. */
#ifndef CUPLUG_CORE_CALL_FUNCTIONS_H
#define CUPLUG_CORE_CALL_FUNCTIONS_H

#include "arguments/bind.h"
#include "base/library.h"
#include "base/status.h"
#include "cuda/calls.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "host/copies.h"
#include "host/strided_copy.h"
#include "host/thread_pool.h"
#include "host/view.h"
#include "registry/plugin.h"
#include "signature/formula.h"
#include "signature/value.h"

#include <internal/functions.h>

/* Each is declared in a header above, with the prefix cuplug__. */
#define CUPLUG__FUNCTIONS(X) \
  X(fail)                    \
  X(no_memory)               \
  X(prefix)                  \
  X(library_open)            \
  X(library_symbol)          \
  X(write_strides)           \
  X(capture_query)           \
  X(capture_allow_unsafe)    \
  X(capture_restore)         \
  X(cuda_start)              \
  X(cuda_enter)              \
  X(cuda_leave)              \
  X(cuda_check)              \
  X(cuda_fail)               \
  X(cuda_note_operator)      \
  X(driver_launch)           \
  X(calls_check)             \
  X(calls_again)             \
  X(device_allocate)         \
  X(device_free)             \
  X(stream_synchronize)      \
  X(team_run)                \
  X(team_threads)            \
  X(move)                    \
  X(view_array)              \
  X(view_bytes)              \
  X(view_add)                \
  X(view_place)              \
  X(view_copy)               \
  X(view_is_transposed)      \
  X(host_copy_whole)         \
  X(is_identifier)           \
  X(flag_key)                \
  X(read_overload)           \
  X(plugin_fill)             \
  X(plugin_free)             \
  X(work_out_integer)        \
  X(describe_names)          \
  X(parser_start)            \
  X(parse_formula)           \
  X(tie_formula)             \
  X(keep_text)               \
  X(expect)                  \
  X(skip_space)              \
  X(find_parameter)          \
  X(find_place)              \
  X(scalar_member)           \
  X(calls_begin)

typedef struct cuplug__core {
  const cuplug__driver_table *driver;
  const int32_t *driver_version;
  cuplug__gpu *gpus;
#define CUPLUG__MEMBER(name) __typeof__(cuplug__##name) *name;
  CUPLUG__FUNCTIONS(CUPLUG__MEMBER)
#undef CUPLUG__MEMBER
} cuplug__core;

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Fault records: 64 bytes each in blocks of pinned memory. */
#include "cuda/fault.h"

#include "base/status.h"
#include "cuda/driver.h"
#include "cuda/gpus.h"
#include "cuda/stream.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(cuplug_fault) == 64, "a record is one cache line");

int cuplug__fault_block_make(cuplug__fault_block **block, cuplug_error *error) {
  CUPLUG__RELAXED mode = cuplug__capture_allow_unsafe();
  void *pinned = NULL;
  int code = cuplug__driver.cuMemHostAlloc(&pinned, sizeof **block,
                                           CUPLUG__HOST_PORTABLE | CUPLUG__HOST_MAPPED);
  if (code) return cuplug__cuda_fail(error, code, "making a fault record");
  memset(pinned, 0, sizeof **block);
  *block = pinned;
  for (int i = 0; i < CUPLUG__N_RECORDS; i++) (*block)->records[i].summary = &(*block)->summary;
  return CUPLUG_OK;
}

/* Ready for the next fault: `claimed` last, since a kernel that sees it 0 writes the rest. */
void cuplug__fault_clear(cuplug_fault *fault) {
  __atomic_store_n(&fault->status, 0, __ATOMIC_RELAXED);
  fault->text = 0;
  __atomic_store_n(&fault->claimed, 0, __ATOMIC_RELEASE);
}

/* Appends the plugin's text, with the numbers for {position} and {value}. */
static void append_text(const char *text, const cuplug_fault *fault, cuplug_error *error) {
  static const char position[] = "{position}", value[] = "{value}";
  while (*text) {
    const size_t n = strcspn(text, "{") + (*text == '{');
    if (!strncmp(text, position, sizeof position - 1)) {
      cuplug__append(error, "%lld", (long long)fault->position);
      text += sizeof position - 1;
    } else if (!strncmp(text, value, sizeof value - 1)) {
      cuplug__append(error, "%lld", (long long)fault->value);
      text += sizeof value - 1;
    } else {
      cuplug__append(error, "%.*s", (int)n, text);
      text += n;
    }
  }
}

static int raise_own(const cuplug_fault *fault, const cuplug__callable *overload,
                     const char *tensor, cuplug_error *error) {
  char key[32];
  snprintf(key, sizeof key, "fault.%u", fault->text);
  const char *text = cuplug_overload_property(overload->row, key);
  cuplug__fail(error, CUPLUG_ERROR_VALUE, "%s: %s: ", overload->signature->name, tensor);
  if (!error) return CUPLUG_ERROR_VALUE;
  append_text(text ? text : "bad at position {position}: {value}", fault, error);
  if (!text) cuplug__append(error, "; the table has no text for %s", key);
  return CUPLUG_ERROR_VALUE;
}

/* Returns whether low <= value < high is a size for NumPy: from 0, or from -size for wrapped ones.
 * Unsigned, because a plugin may have written anything. */
static int is_size(const cuplug_fault *fault) {
  return fault->low == 0 || (uint64_t)fault->low + (uint64_t)fault->high == 0;
}

int cuplug__fault_raise(const cuplug_fault *fault, const cuplug__callable *overload,
                        cuplug_error *error) {
  char tensor[CUPLUG__NAME_BYTES];
  cuplug__name_tensor(tensor, overload, fault->tensor, UINT32_MAX);
  if (fault->text) return raise_own(fault, overload, tensor, error);
  if (fault->status == CUPLUG_ERROR_VALUE)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: %s: got a smaller number at position %lld, expected ascending ones",
                        overload->signature->name, tensor, (long long)fault->position);
  if (is_size(fault))
    return cuplug__fail(error, CUPLUG_ERROR_INDEX,
                        "%s: %s: index %lld at position %lld is out of bounds for size %lld",
                        overload->signature->name, tensor, (long long)fault->value,
                        (long long)fault->position, (long long)fault->high);
  return cuplug__fail(error, CUPLUG_ERROR_INDEX,
                      "%s: %s: got index %lld at position %lld, expected %lld <= value < %lld",
                      overload->signature->name, tensor, (long long)fault->value,
                      (long long)fault->position, (long long)fault->low, (long long)fault->high);
}

int cuplug__fault_take(cuplug_fault *fault, const cuplug__callable *overload, cuplug_error *error) {
  if (!cuplug__fault_is_told(fault)) return CUPLUG_OK;
  const int status = cuplug__fault_raise(fault, overload, error);
  cuplug__fault_clear(fault);
  return status;
}

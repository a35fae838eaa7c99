/* SPDX-License-Identifier: Apache-2.0 */
#include "expressions/variant.h"

#include "base/core.h"
#include "entry/run.h"

#include <cuplug/halves.h>
#include <cuplug/nontemporal.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Never changed or freed after it is in the list. */
typedef struct entry {
  struct entry *next;
  cuplug_variant variant;
  cuplug_code code;
} entry;

static int32_t device_of(const cuplug_call *call) {
  return call->device.type == CUPLUG_CUDA ? call->device.id : -1;
}

void cuplug__variant_start(cuplug_variant *v, const cuplug_call *call) {
  memset(v, 0, sizeof(*v));
  v->device = device_of(call);
  v->n_arrays = (uint8_t)call->n_tensors;
  for (uint32_t k = 0; k < call->n_tensors; k++) v->types[k] = cuplug_type(&call->tensors[k]);
}

static int has_halves(const cuplug_variant *v) {
  int found = 0;
  for (uint32_t k = 0; k < v->n_arrays; k++)
    found |= v->types[k] == CUPLUG_FLOAT16 || v->types[k] == CUPLUG_BFLOAT16;
  return found;
}

int cuplug__variant_find(cuplug_source *source, const cuplug_variant *variant,
                         const cuplug_code **code, cuplug_error *error) {
  entry *head = __atomic_load_n((entry **)&source->compiled, __ATOMIC_ACQUIRE);
  for (entry *at = head; at; at = at->next)
    if (!memcmp(&at->variant, variant, sizeof(*variant))) {
      *code = &at->code;
      return CUPLUG_OK;
    }
  entry *made = calloc(1, sizeof(*made));
  if (!made) return core->no_memory(error, "compiling");
  int status = source->compile(source->user, variant, &made->code, error);
  if (status) {
    free(made);
    return status;
  }
  made->variant = *variant;
  made->code.has_halves = has_halves(variant);
  made->next = head;
  while (!__atomic_compare_exchange_n((entry **)&source->compiled, &made->next, made, 0,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED))
    ;
  *code = &made->code;
  return CUPLUG_OK;
}

/* Returns whether a variant depends only on the call's device and dtypes. The call path of
 * expressions uses this: no variant is created for the comparison. */
static int is_of(const cuplug_variant *v, const cuplug_call *call) {
  if (v->device != device_of(call) || v->n_arrays != call->n_tensors || v->still) return 0;
  for (uint32_t k = 0; k < call->n_tensors; k++)
    if (v->types[k] != cuplug_type(&call->tensors[k])) return 0;
  return 1;
}

int cuplug__variant_find_plain(cuplug_source *source, const cuplug_call *call,
                               const cuplug_code **code) {
  cuplug_variant variant;
  for (entry *at = __atomic_load_n((entry **)&source->compiled, __ATOMIC_ACQUIRE); at;
       at = at->next)
    if (is_of(&at->variant, call)) {
      *code = &at->code;
      return CUPLUG_OK;
    }
  cuplug__variant_start(&variant, call);
  return cuplug__variant_find(source, &variant, code, cuplug__error_of(call));
}

typedef struct shared_part {
  const cuplug_loop_call *call;
  cuplug_loop_part *part;
} shared_part;

static int run_range(void *context, int64_t begin, int64_t end) {
  const shared_part *shared = context;
  shared->part(shared->call, begin, end);
  return CUPLUG_OK;
}

static void parallel(const cuplug_loop_call *call, cuplug_loop_part *part, long long n,
                     long long grain) {
  shared_part shared = {call, part};
  (void)core->team_run(n, grain, run_range, &shared);
}

/* Memory that a thread keeps until it ends, as large as the largest request. Its stack may be
 * small, and parts do not call parts. */
static _Thread_local char *own_room;
static _Thread_local size_t own_bytes;
static pthread_key_t key_of_end;
static int has_key;

static void forget(void *room) {
  own_room = NULL;
  own_bytes = 0;
  free(room);
}

static void make_key(void) { has_key = !pthread_key_create(&key_of_end, forget); }

static char *room_of(size_t bytes) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (bytes <= own_bytes) return own_room;
  if (pthread_once(&once, make_key) || !has_key) return NULL;
  char *larger = malloc(bytes);
  if (!larger || pthread_setspecific(key_of_end, larger)) return free(larger), NULL;
  free(own_room);
  own_bytes = bytes;
  return own_room = larger;
}

static void with_room(const cuplug_loop_call *call, unsigned long bytes, cuplug_loop_part *part,
                      long long from, long long to) {
  cuplug_loop_call in_room = *call;
  char *room = room_of(bytes + CUPLUG_LINE_BYTES);
  if (!room) {
    __atomic_store_n(&call->division->no_memory, 1, __ATOMIC_RELAXED);
    return;
  }
  in_room.room = room + CUPLUG_LINE_BYTES - (uintptr_t)room % CUPLUG_LINE_BYTES;
  part(&in_room, from, to);
}

int cuplug__variant_run(const cuplug_call *call, const cuplug_code *code,
                        cuplug_loop_call *arguments) {
  cuplug_division division;
  cuplug_loop_function *function;
  division.claimed = division.no_memory = 0;
  arguments->parallel = parallel;
  arguments->with_room = with_room;
  arguments->load_float16 = cuplug_float16_load_rounded;
  arguments->division = &division;
  memcpy(&function, &code->function, sizeof(function));
  function(arguments);
  if (division.no_memory) return core->no_memory(cuplug__error_of(call), "reducing");
  if (!division.claimed) return CUPLUG_OK;
  return core->fail(cuplug__error_of(call), CUPLUG_ERROR_VALUE, "%s", division.message);
}

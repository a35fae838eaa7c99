/* SPDX-License-Identifier: Apache-2.0 */
/* For expressions that may divide integers, shift them or raise them to a power on the host. An
 * undefined result ends the current part of the call. Included after code.h. */
#include <setjmp.h>
#include <stdio.h>

#define CUPLUG_REFUSE_POWER(x, y) cuplug_refuse_power(x, y)
static void cuplug_refuse_power(int64_t x, int64_t y);

/* The start of a part of a call, to which control returns if a division of integers is undefined.
 */
static __thread struct {
  jmp_buf begin;
  cuplug_division *division;
} cuplug_under_way;

static void cuplug_run_part(cuplug_loop_part *part, const cuplug_loop_call *call, long long from,
                            long long to) {
  cuplug_under_way.division = call->division;
  if (!__atomic_load_n(&call->division->claimed, __ATOMIC_RELAXED) &&
      !_setjmp(cuplug_under_way.begin))
    part(call, from, to);
}

/* -fsanitize's description of an operation: its location, and the types of its operands. */
typedef struct cuplug_operand_type {
  uint16_t kind, info; /* info: 2 * log2(number of bits) + 1 if signed */
} cuplug_operand_type;

typedef struct cuplug_operation {
  const char *text; /* "operator" or "operator part" */
  uint32_t line, column;
  const cuplug_operand_type *left, *right;
} cuplug_operation;

/* An operand. If it has more than 64 bits, its address is passed. */
static int64_t cuplug_operand(const cuplug_operand_type *type, uintptr_t x) {
  if (type->info == (5 << 1 | 1)) return (int32_t)x;
  return type->info >> 1 > 6 ? *(const int64_t *)x : (int64_t)x;
}

/* Ends the current part of the call. The message has "line 1, column 3: ", if known, and the
 * operands. */
__attribute__((cold, noreturn)) static void cuplug_refuse(const cuplug_operation *at,
                                                          const char *seen) {
  cuplug_division *division = cuplug_under_way.division;
  char place[128] = "";
  const char *space = at ? strchr(at->text, ' ') : NULL;
  if (at)
    snprintf(place, sizeof(place), "%s%sline %u, column %u: ", space ? space + 1 : "",
             space ? ": " : "", at->line, at->column);
  if (!__atomic_exchange_n(&division->claimed, 1, __ATOMIC_RELAXED))
    snprintf(division->message, sizeof(division->message), "%sgot %s", place, seen);
  longjmp(cuplug_under_way.begin, 1);
}

__attribute__((cold, unused)) static void cuplug_refuse_power(int64_t x, int64_t y) {
  char seen[128];
  snprintf(seen, sizeof(seen), "%lld to the power of %lld of integers, expected a power >= 0",
           (long long)x, (long long)y);
  cuplug_refuse(NULL, seen);
}

/* Compiled expressions call it before a division of integers that would end the process. */
__attribute__((visibility("hidden"), cold)) void
__ubsan_handle_divrem_overflow(const cuplug_operation *at, uintptr_t a, uintptr_t b) {
  char seen[128];
  snprintf(seen, sizeof(seen),
           at->left->info & 1 ? "%lld / %lld of integers, expected a division that has a result"
                              : "%llu / %lld of integers, expected a division that has a result",
           (long long)cuplug_operand(at->left, a), (long long)cuplug_operand(at->left, b));
  cuplug_refuse(at, seen);
}

/* Called before a shift by too many bits, or a negative number. */
__attribute__((visibility("hidden"), cold)) void
__ubsan_handle_shift_out_of_bounds(const cuplug_operation *at, uintptr_t a, uintptr_t b) {
  char seen[128];
  snprintf(seen, sizeof(seen), "a shift of %lld by %lld places, expected 0 to %d",
           (long long)cuplug_operand(at->left, a), (long long)cuplug_operand(at->right, b),
           (1 << (at->left->info >> 1)) - 1);
  cuplug_refuse(at, seen);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments/known.h"

#include "base/dtype.h"

static uint64_t add_argument(uint64_t key, const cuplug_argument *a) {
  const cuplug_tensor *t = &a->tensor;
  key = key * 31 + a->kind;
  if (a->kind == CUPLUG_ARGUMENT_DTYPE) return key * 31 + cuplug__id_of(a->scalar.dtype);
  if (a->kind != CUPLUG_ARGUMENT_ARRAY) return key;
  key = key * 31 + cuplug_type(t);
  if (t->shape && t->ndim > 0 && t->ndim <= CUPLUG__KNOWN_DIMS)
    key = (key * 31 + (uint64_t)t->shape[0]) * 31 + (uint64_t)t->shape[t->ndim - 1];
  return key;
}

uint64_t cuplug__known_key(const cuplug_operator *op, const cuplug_argument *args,
                           uint32_t n_args) {
  uint64_t key = op->number;
  for (uint32_t i = 0; i < n_args && i < CUPLUG_MAX_ARGUMENTS; i++) {
    const cuplug_argument *a = &args[i];
    key = add_argument(key, a);
    if (a->kind == CUPLUG_ARGUMENT_LIST && a->list.n && a->list.items)
      key = add_argument(key * 31 + a->list.n, a->list.items);
  }
  return key * 0x9e3779b97f4a7c15;
}

cuplug__known *cuplug__known_of(cuplug__known_all *own, uint64_t key) {
  cuplug__known_set *set = &own->sets[key >> 60];
  for (uint32_t k = 0; k < CUPLUG__KNOWN_WAYS; k++)
    if (set->of[k].key == key && set->of[k].number) return &set->of[k];
  return NULL;
}

cuplug__known *cuplug__known_other(cuplug__known_all *own, const cuplug_operator *op,
                                   const cuplug_argument *args, uint32_t n_args) {
  cuplug__known *known = cuplug__known_of(own, cuplug__known_key(op, args, n_args));
  return known == own->last[op->number % CUPLUG__KNOWN_LAST] ? NULL : known;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* One operator: its rows, ready to be matched, and what is told of it. */
#include "registry/operator.h"

#include "base/status.h"

#include <stdio.h>
#include <stdlib.h>

static int is_alike(const cuplug_parameter *x, const cuplug_parameter *y) {
  int same = x->type_variable == y->type_variable && x->n_dims == y->n_dims &&
             !((x->words ^ y->words) & CUPLUG_WORD_HOST);
  for (int32_t k = 0; same && k < x->n_dims; k++)
    same = x->dims[k].kind == y->dims[k].kind && x->dims[k].value == y->dims[k].value &&
           x->dims[k].kind < CUPLUG_DIM_FORMULA;
  return same;
}

static void read_tensors(cuplug__overload *o) {
  const cuplug_signature *s = o->signature;
  const cuplug_parameter *arrays[CUPLUG_MAX_ARGUMENTS];
  uint8_t n = 0, *like = o->like;
  for (int32_t i = 0; i < s->n_parameters + s->n_outputs; i++) {
    const cuplug_parameter *x = &s->parameters[i];
    if (i < s->n_parameters && x->kind > CUPLUG_PARAMETER_INOUT) {
      o->scalars[o->n_scalars++] = (uint8_t)i;
      if (x->kind == CUPLUG_PARAMETER_ARRAYS) o->names.list = x->name, o->names.n_lists++;
      continue;
    }
    o->n_arrays += i < s->n_parameters;
    like[n] = 0;
    while (like[n] < n && (arrays[like[n]]->has_default || !is_alike(x, arrays[like[n]])))
      like[n]++;
    o->names.tensors[n] = x->name;
    arrays[n++] = x;
  }
  o->names.operator_name = s->name;
  o->names.n_tensors = n;
  o->names.n_single = o->n_arrays;
}

int cuplug__make_states(const cuplug__state_key *key, cuplug__states **states,
                        cuplug_error *error) {
  *states = NULL;
  if (!*key->symbol) return CUPLUG_OK;
  *states = calloc(1, sizeof **states);
  if (!*states) return cuplug__no_memory(error, "registering a plugin");
  (*states)->symbol = key->symbol;
  (*states)->is_exclusive = key->is_exclusive;
  return CUPLUG_OK;
}

void cuplug__make_overload(cuplug__overload *o, const cuplug_row *row, const char **tensors) {
  o->row = row;
  o->names.tensors = tensors;
  o->names.row = row;
  o->signature = row->parsed;
  o->prefers_host = *row->host_entry && !(*row->cuda_entry && row->flags & CUPLUG_ROW_PREFERS_CUDA);
  read_tensors(o);
}

void cuplug__name_tensor(char text[CUPLUG__NAME_BYTES], const cuplug__names *names, uint32_t tensor,
                         uint32_t n_inputs) {
  if (tensor == UINT32_MAX) { /* of a list that is apart */
    snprintf(text, CUPLUG__NAME_BYTES, "%s", names->n_lists == 1 ? names->list : "a list");
    return;
  }
  const int is_output = tensor >= n_inputs;
  const uint32_t at = is_output ? names->n_single + (tensor - n_inputs) : tensor;
  const int is_in_list = names->n_lists && !is_output && at >= names->n_single;
  const char *name = at < names->n_tensors && !is_in_list ? names->tensors[at] : "";
  if (is_in_list && names->n_lists == 1)
    snprintf(text, CUPLUG__NAME_BYTES, "%s[%u]", names->list, at - names->n_single);
  else if (*name || is_output)
    snprintf(text, CUPLUG__NAME_BYTES, "%s", *name ? name : "its output");
  else
    snprintf(text, CUPLUG__NAME_BYTES, "array %u", tensor);
}

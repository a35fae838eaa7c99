/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions that are compiled from expressions. Each output is that of a loop over the reduced
 * dimensions. By rows, threads share an output; by columns, each has outputs of its own that lie
 * side by side. Where outputs are few the reduced loop is cut into parts, whose values are put
 * together in their order: results do not depend on the number of threads. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_REDUCTION_H
#define CUPLUG_RUNTIME_EXPRESSIONS_REDUCTION_H

#include "expressions/loop.h"

#include <runtime/expressions.h>

typedef struct cuplug__reduction {
  const cuplug_call *call;
  cuplug_source *source;
  cuplug_loop kept, reduced;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  long long n_parts, part; /* elements of the reduced loop in each part but the last */
  void *partials;
  const cuplug_code *code;
} cuplug__reduction;

static inline uint32_t cuplug__reduction_inputs(const cuplug__reduction *r) {
  return r->call->n_tensors - r->source->n_outputs;
}

/* Whether neighbours in memory belong to different outputs. */
int cuplug__reduction_by_columns(const cuplug__reduction *r);

/* Memory for a value of each part and output, where there are parts. */
int cuplug__reduction_partials(cuplug__reduction *r);

/* What one side does about a call that has outputs; and runs it. */
typedef int cuplug__reducer(cuplug__reduction *r, cuplug_variant *variant);
int cuplug__reduction_run(cuplug__reducer *reduce, const cuplug_call *call);

#endif

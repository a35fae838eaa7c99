/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions that are compiled from expressions, and the code that scans share with them. Each
 * output is the result of a loop over the reduced dimensions. By rows, threads share an output; by
 * columns, each has its own adjacent outputs. If there are few outputs, the reduced loop is split
 * into parts, whose values are combined in order: results do not depend on the number of
 * threads. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_REDUCTION_H
#define CUPLUG_RUNTIME_EXPRESSIONS_REDUCTION_H

#include "expressions/loop.h"

#include <runtime/expressions.h>

/* A call. For a scan, the loops are over its segments, and along a segment. */
typedef struct cuplug__reduction {
  const cuplug_call *call;
  cuplug_source *source;
  cuplug_loop kept, reduced;
  void *data[CUPLUG_MAX_LOOP_ARRAYS];
  long long n_parts, part; /* elements of the reduced loop in each part except the last */
  void *partials;
  const cuplug_code *code;
} cuplug__reduction;

static inline uint32_t cuplug__reduction_inputs(const cuplug__reduction *r) {
  return r->call->n_tensors - r->source->n_outputs;
}

/* 1 if neighbors in memory belong to different outputs. */
int cuplug__reduction_by_columns(const cuplug__reduction *r);

/* Memory for a value of each part and output, if there are parts. */
int cuplug__reduction_partials(cuplug__reduction *r);

/* Sets the requested number of parts, none of them empty, with at least `least` elements each. */
void cuplug__reduction_cut(cuplug__reduction *r, long long wanted, long long least);

/* Reads the loops of a call, and runs it on one device type, unless it has no outputs. */
typedef int cuplug__read_loops(cuplug__reduction *r);
typedef int cuplug__reducer(cuplug__reduction *r, cuplug_variant *variant);
int cuplug__reduction_run(cuplug__read_loops *read, cuplug__reducer *reduce,
                          const cuplug_call *call);

/* cuplug__read_loops of reductions. */
int cuplug__reduction_loops(cuplug__reduction *r);

#endif

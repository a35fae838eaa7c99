/* SPDX-License-Identifier: Apache-2.0 */
/* Array arguments against the parameters of one signature. */
#ifndef CUPLUG_CORE_ARGUMENTS_MATCH_H
#define CUPLUG_CORE_ARGUMENTS_MATCH_H

#include "base/dtype.h"
#include "base/status.h"

#include <internal/frame.h>

/* The state of one match. Parameter numbers say which argument fixed a name first. */
typedef struct cuplug__match {
  const cuplug_signature *s;
  const cuplug_argument *args;
  uint32_t n_args;
  cuplug_frame *frame;
  cuplug_error *error; /* NULL: only the outcome matters */
  int32_t n_matched;   /* parameters that fitted */
  uint32_t takes_strides;
  const uint8_t *like;                 /* of the overload */
  int64_t most_bytes;                  /* of one array */
  int64_t n_bytes[CUPLUG_MAX_TENSORS]; /* of input tensors without strides */
  uint32_t inout_mask;                 /* tensors that are changed in place */
  uint32_t loop_mask;                  /* tensors with loop dimensions */
  uint32_t broadcasts;                 /* 1: their loop dimensions differ */
  uint32_t known_types;                /* bit v: types[v] and type_from[v] are set */
  uint32_t known_sizes;                /* bit n: sizes[n] and size_from[n] are set */
  uint32_t types[16];
  int8_t type_from[16];
  int64_t sizes[24]; /* a named dimension; of a variadic one the number of its dimensions */
  const int64_t *groups[24];
  int8_t size_from[24];
  int8_t home_from;
} cuplug__match;

static inline const cuplug_argument *cuplug__argument(const cuplug__match *m, int32_t i) {
  static const cuplug_argument absent = {.kind = CUPLUG_ARGUMENT_ABSENT};
  return (uint32_t)i < m->n_args ? &m->args[i] : &absent;
}

/* The dtype of a type variable once the arrays were matched: without arrays it has only one. */
static inline uint32_t cuplug__type_of(const cuplug__match *m, int32_t variable) {
  if (m->known_types >> variable & 1) return m->types[variable];
  return cuplug_dtype_id(cuplug__dtype_number(m->s->variables[variable].dtypes));
}

/* Fits array argument i and appends its tensor to the frame. */
int cuplug__match_array(cuplug__match *m, int32_t i);

/* Records that argument i does not fit, when there is a record to fill. Returns `status`. */
CUPLUG__COLD CUPLUG__FORMAT(4, 5) int cuplug__mismatch(cuplug__match *m, int32_t i, int status,
                                                       const char *format, ...);
/* "seen ..., wanted ...": for an argument of another kind, dtype or rank. */
CUPLUG__COLD int cuplug__unwanted(cuplug__match *m, int32_t i, int status);

#endif

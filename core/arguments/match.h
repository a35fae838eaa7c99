/* SPDX-License-Identifier: Apache-2.0 */
/* Array arguments against the parameters of one signature. */
#ifndef CUPLUG_CORE_ARGUMENTS_MATCH_H
#define CUPLUG_CORE_ARGUMENTS_MATCH_H

#include "base/describe.h"
#include "base/dtype.h"
#include "base/status.h"

#include <internal/frame.h>

/* The state of one match. Parameter numbers identify the argument that fixed a name first. */
typedef struct cuplug__match {
  const cuplug_signature *s;
  const cuplug_argument *args;
  uint32_t n_args;
  cuplug_frame *frame;
  cuplug_error *error; /* NULL: only the outcome matters */
  int32_t n_matched;   /* parameters that fitted */
  uint32_t takes_strides;
  uint32_t needs_memory; /* 0: arrays without memory, only for their sizes */
  const uint8_t *like;   /* of the overload */
  int64_t largest_bytes; /* of one array */
  uint32_t broadcasts;   /* 1: their loop dimensions differ */
  uint64_t inout_mask;   /* tensors that are changed in place */
  uint64_t loop_mask;    /* tensors with loop dimensions */
  uint64_t known_types;  /* bit v: types[v] and type_from[v] are set */
  uint64_t known_sizes;  /* bit n: sizes[n], n_sizes[n] and size_from[n] are set */
  uint32_t types[CUPLUG_MAX_ARGUMENTS];
  int8_t type_from[CUPLUG_MAX_ARGUMENTS];
  const int64_t *sizes[CUPLUG_MAX_ARGUMENTS]; /* of a dimension or a group, by its name */
  int32_t n_sizes[CUPLUG_MAX_ARGUMENTS];
  int8_t size_from[CUPLUG_MAX_ARGUMENTS];
  int8_t memory_space_from;
  uint32_t n_items;        /* arrays in lists */
  uint32_t reserved_words; /* of the frame, for the shapes and strides of many inputs */
  int64_t item;            /* of the list that is matched; -1: not a list */
} cuplug__match;

static inline const cuplug_argument *cuplug__argument(const cuplug__match *m, int32_t i) {
  static const cuplug_argument absent = {.kind = CUPLUG_ARGUMENT_ABSENT};
  return (uint32_t)i < m->n_args ? &m->args[i] : &absent;
}

/* 1 for an argument that is omitted or None, if its parameter is optional. */
static inline int cuplug__is_left_out(const cuplug_parameter *x, const cuplug_argument *a) {
  return x->default_kind == CUPLUG_ARGUMENT_NONE &&
         (a->kind == CUPLUG_ARGUMENT_ABSENT || a->kind == CUPLUG_ARGUMENT_NONE);
}

/* The dtype of a type variable after the arrays were matched: without arrays it has only one. */
static inline uint32_t cuplug__type_of(const cuplug__match *m, int32_t variable) {
  if (m->known_types >> variable & 1) return m->types[variable];
  return cuplug_dtype_id(cuplug__dtype_number(m->s->variables[variable].dtypes));
}

/* Fits argument i, or item m->item of list i, to its parameter, and appends its tensor. */
int cuplug__match_array(cuplug__match *m, int32_t i, const cuplug_argument *a);

/* Reports that argument i does not fit, if a record exists; only then the values of the text are
 * computed. Returns `status`. */
#define cuplug__mismatch(m, i, status, ...) \
  ((m)->error ? cuplug__write_mismatch(m, i, status, __VA_ARGS__) : (status))
CUPLUG__COLD CUPLUG__FORMAT(4, 5) int cuplug__write_mismatch(cuplug__match *m, int32_t i,
                                                             int status, const char *format, ...);
/* "got ..., expected ...": for an argument of another kind, dtype or rank. */
CUPLUG__COLD int cuplug__report_mismatch(cuplug__match *m, int32_t i, int status);

/* "a read-only array, expected a writable one", of an array that cannot be written in place:
 * contiguous or without shared elements, aligned and writable. NULL: it can be. */
const char *cuplug__refuse_written(const cuplug_argument *a, int contiguous,
                                   uint32_t takes_strides);

/* ---- Guarantees: "stride(x, -1) == 1", "align(x) >= 16" -------------------------------------- */

/* Returns 1 if the memory of an array of parameter or output x is not as guaranteed. */
int cuplug__breaks_guarantees(const cuplug_parameter *x, const cuplug_tensor *t);

/* "got the address 0x7f04, expected a multiple of 16", of the first guarantee that is broken. */
CUPLUG__COLD cuplug__text cuplug__describe_broken(const cuplug_parameter *x,
                                                  const cuplug_tensor *t);

#endif

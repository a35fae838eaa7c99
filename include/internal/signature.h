/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed signatures, for the core and the Cython layer. Not installed: it may change at any
 * time. */
#ifndef CUPLUG_INTERNAL_SIGNATURE_H
#define CUPLUG_INTERNAL_SIGNATURE_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

typedef enum cuplug_dim_kind {
  CUPLUG_DIM_FIXED,    /* 3: `value` is the size */
  CUPLUG_DIM_NAMED,    /* n: `value` is its number among the signature's dimension names */
  CUPLUG_DIM_VARIADIC, /* *n: any number of dimensions, equal wherever n stands; `value` its number
                        */
  CUPLUG_DIM_LOOP,     /* ...: any number of dimensions, broadcast between arrays */
  CUPLUG_DIM_UNKNOWN   /* ?: known after the run; outputs only */
} cuplug_dim_kind;

typedef struct cuplug_dim {
  int32_t kind;
  int32_t reserved;
  int64_t value;
} cuplug_dim;

typedef struct cuplug_parameter {
  char name[CUPLUG_MAX_NAME]; /* outputs without a name: "" */
  int32_t kind;               /* a cuplug_kind */
  int32_t type_variable;      /* number in `variables`; -1 for strings and choices */
  int32_t n_dims;             /* length of `dims`; arrays only */
  int32_t has_default;
  cuplug_dim dims[16];
  int32_t default_kind; /* a cuplug_argument_kind: NONE (an array that may be left out), BOOL, INT,
                           UINT, FLOAT, STRING; for a choice INT, its number */
  int32_t n_choices;
  cuplug_scalar default_value; /* the member that default_kind says; a string lives with the
                                  signature */
  const char *default_text;    /* as written; NULL without; lives with the signature */
  const char *choices[8];      /* live with the signature */
} cuplug_parameter;

/* A type variable, or a dtype that stands for itself (then `name` is "" and one bit is set). */
typedef struct cuplug_type_variable {
  char name[CUPLUG_MAX_NAME];
  uint32_t dtypes; /* bit k: the k-th dtype of CUPLUG_DTYPE_LIST is allowed */
  uint32_t reserved;
} cuplug_type_variable;

/* A parsed signature. */
struct cuplug_signature {
  char name[CUPLUG_MAX_NAME]; /* the operator */
  int32_t n_parameters;       /* parameters, outputs not included */
  int32_t n_outputs;
  int32_t n_variables;
  int32_t n_dim_names;
  cuplug_parameter parameters[CUPLUG_MAX_PARAMETERS + CUPLUG_MAX_OUTPUTS]; /* outputs last */
  cuplug_type_variable variables[16];
  char dim_names[24][CUPLUG_MAX_NAME]; /* of NAMED and VARIADIC dimensions */
  char text[512];                      /* what it was parsed from */
  char strings[1024];                  /* storage of default_text and choices */
};

/* Parses signature text. On an error `position` (may be NULL) is the byte offset of the place.
 * [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_parse_signature(const char *text, cuplug_signature *signature,
                                      uint32_t *position, cuplug_error *error);

CUPLUG__END_C
#endif

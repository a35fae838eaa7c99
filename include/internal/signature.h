/* SPDX-License-Identifier: Apache-2.0 */
/* Parsed signatures, for the core and the Cython layer. Not installed: it may change at any
 * time. */
#ifndef CUPLUG_INTERNAL_SIGNATURE_H
#define CUPLUG_INTERNAL_SIGNATURE_H

#include <cuplug/host.h>
#include <internal/formula.h>

CUPLUG__BEGIN_C

/* Maximum numbers for one operator: parameters, outputs, type variables, names of dimensions; for
 * one call: arrays, including those in lists and outputs. Masks of them have 64 bits. */
#define CUPLUG_MAX_ARGUMENTS 64

typedef enum cuplug_dim_kind {
  CUPLUG_DIM_FIXED,    /* 3: `value` is the size */
  CUPLUG_DIM_NAMED,    /* n: `value` is its number among the signature's dimension names */
  CUPLUG_DIM_VARIADIC, /* *n: any number of dimensions, equal wherever n stands; `value` its number
                        */
  CUPLUG_DIM_LOOP,     /* ...: any number of dimensions, broadcast between arrays */
  CUPLUG_DIM_UNKNOWN,  /* ?: known after the run; outputs only */
  CUPLUG_DIM_FORMULA,  /* n - 1: `formula` is the size */
  CUPLUG_DIM_SLICE,    /* *s[a:b]: dimensions `formula` to `end` of group `value`; outputs only */
  CUPLUG_DIM_LISTED    /* *shape: the items of list `value` among the scalars; outputs only */
} cuplug_dim_kind;

typedef struct cuplug_dim {
  int32_t kind;
  uint32_t at; /* its position in the signature's text */
  int64_t value;
  cuplug_formula formula, end; /* of a slice without one: no steps */
  const char *text;            /* as written */
} cuplug_dim;

/* Words before a parameter's or an output's name. */
#define CUPLUG_WORD_INOUT 1u    /* changed in place */
#define CUPLUG_WORD_ZERO 2u     /* an output: the core clears it before the entry runs */
#define CUPLUG_WORD_DETACHED 4u /* an output: it has no gradient */
#define CUPLUG_WORD_HOST 8u     /* an array: it is in the memory of the host in all calls */

typedef struct cuplug_parameter {
  const char *name;      /* outputs without a name: "" */
  int32_t kind;          /* a cuplug_kind */
  int32_t type_variable; /* number in `variables`; -1 for strings, choices and handles */
  int32_t n_dims;        /* length of `dims`; arrays only */
  int32_t has_default;
  const cuplug_dim *dims;
  int32_t default_kind; /* a cuplug_argument_kind: NONE (may be left out), BOOL, INT, UINT, FLOAT,
                           STRING; for a choice INT, its number */
  int32_t n_choices;
  cuplug_scalar default_value;
  const char *default_text; /* as written; NULL without */
  const char **choices;
  const char *tag;            /* of a handle */
  int32_t is_inout;           /* 1: it is changed in place, or its arrays are */
  int32_t is_each;            /* 1: each array of the list has sizes of its own: T[n][each] */
  uint32_t words;             /* CUPLUG_WORD_INOUT ... */
  uint32_t address_mask;      /* bits that are 0 in its address: align(x) - 1 */
  uint32_t has_unit_stride;   /* 1: elements along its last dimension are adjacent */
  uint32_t is_contiguous;     /* 1: it is C-contiguous, also if the overload takes strides */
  int32_t like;               /* of an output: the parameter whose order of strides it has, counted
                                 from 1; 0: C order */
  uint32_t type_at, type_end; /* where the name of its dtype is in the text; of a choice: 0 */
} cuplug_parameter;

/* A type variable, or a dtype that stands for itself (then `name` is "" and one bit is set). */
typedef struct cuplug_type_variable {
  const char *name;
  uint64_t dtypes; /* bit k: the k-th dtype of CUPLUG_DTYPE_LIST is allowed */
  uint64_t later;  /* dtypes of its groups that were added after the plugin was compiled */
} cuplug_type_variable;

/* One side of a condition, and its relation to the side before it. */
typedef enum cuplug_relation {
  CUPLUG_RELATION_NONE,
  CUPLUG_RELATION_LESS,
  CUPLUG_RELATION_LESS_EQUAL,
  CUPLUG_RELATION_EQUAL,
  CUPLUG_RELATION_NOT_EQUAL,
  CUPLUG_RELATION_GREATER_EQUAL,
  CUPLUG_RELATION_GREATER,
  CUPLUG_RELATION_IN /* equal to the side before the set, for one side of it at least */
} cuplug_relation;

typedef struct cuplug_side {
  int32_t relation; /* a cuplug_relation */
  cuplug_formula formula;
} cuplug_side;

/* where 0 <= k <= n. It holds if an alternative does; an alternative begins at each side without a
 * relation. It also holds if it names a scalar that is None. */
typedef struct cuplug_condition {
  const char *text;  /* as written */
  uint64_t optional; /* bit k: it names scalar k, which may be None */
  const cuplug_side *sides;
  uint32_t n_sides;
  uint32_t at;   /* its position in the signature's text */
  int32_t array; /* whose elements it is of, which calls do not check; -1: none */
} cuplug_condition;

/* The first place in the arguments where a dimension or a group of them is found. */
typedef struct cuplug_dim_source {
  int32_t array; /* number of the tensor; ~k: the first array of list k among the scalars */
  int32_t n_before, n_after; /* the other dimensions of a group's array; a dimension: one of them
                                is -1 */
  int32_t is_group;
} cuplug_dim_source;

/* A parsed signature: one block of memory, pointers into it. */
struct cuplug_signature {
  const char *name;     /* the operator */
  const char *text;     /* the parsed text */
  int32_t n_parameters; /* parameters, outputs not included */
  int32_t n_outputs;
  int32_t n_variables;
  int32_t n_dim_names;
  int32_t n_conditions;
  int32_t n_scalars;            /* parameters that are not arrays */
  int32_t has_formulas;         /* 1: a size is a formula, a slice or a list's item */
  int32_t n_lists;              /* of arrays */
  int32_t n_each_lists;         /* of these, those whose arrays have sizes of their own */
  int32_t n_handles;            /* parameters that are handles */
  int32_t n_element_ranges;     /* conditions of elements of arrays */
  int32_t has_guarantees;       /* 1: an array has an address mask or a unit stride */
  uint32_t parameters_end;      /* where the text continues after them; without any: 0 */
  cuplug_parameter *parameters; /* outputs last */
  const cuplug_parameter *made; /* the handle that it makes, behind the parameters; n_outputs is 0
                                   then. NULL: none */
  cuplug_type_variable *variables;
  const char **dim_names;    /* of NAMED and VARIADIC dimensions */
  uint64_t each_names;       /* bit k: name k has a value for each item of the lists it stands in */
  cuplug_dim_source *places; /* of these */
  cuplug_condition *conditions;
  uint64_t optional_outputs; /* bit k: output k is computed only for callers that request it */
  uint64_t zero_outputs;     /* bit k: output k is cleared before the entry runs */
  uint64_t host_arrays;      /* bit k: tensor k is in the memory of the host in all calls */
};

/* Parses signature text; free it with cuplug_free_signature. On an error *signature is NULL, and
 * `position` (may be NULL) is the byte offset of the place. [thread-safe] [no-cuda] */
int cuplug_parse_signature(const char *text, cuplug_signature **signature, uint32_t *position,
                           cuplug_error *error);
/* The same for a plugin that was compiled for an ABI version: `any` and the other groups are the
 * dtypes of that version. */
int cuplug__parse_of_abi(const char *text, uint32_t abi_version, cuplug_signature **signature,
                         uint32_t *position, cuplug_error *error);
/* Parses only the grammar, without checks of the meaning of names; arrays may lack their brackets.
 * [thread-safe] [no-cuda] */
int cuplug_parse_short(const char *text, cuplug_signature **signature, uint32_t *position,
                       cuplug_error *error);
void cuplug_free_signature(cuplug_signature *signature);

CUPLUG__END_C
#endif

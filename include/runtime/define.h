/* SPDX-License-Identifier: Apache-2.0 */
/* Operators created in memory, and numbers computed for them. Not installed. */
#ifndef CUPLUG_RUNTIME_DEFINE_H
#define CUPLUG_RUNTIME_DEFINE_H

#include <internal/frame.h>

CUPLUG__BEGIN_C

/* One overload of an operator without a plugin. */
typedef struct cuplug_definition_overload {
  const char *signature; /* as in a table */
  cuplug_entry *host;    /* NULL: no entry for that device type */
  cuplug_entry *cuda;
  void *context;           /* call->context of both entries; never freed */
  cuplug_reshape *reshape; /* NULL: the signature is complete */
  uint32_t flags;          /* CUPLUG_OVERLOAD_TAKES_STRIDES ... */
  /* 1: for C-contiguous arrays, the entries may receive no strides, unless the arrays are copies in
   * the other memory. */
  uint32_t null_strides_when_contiguous;
  uint32_t scans;         /* 1: elements depend on others only along the dimension `axis` */
  uint32_t takes_handles; /* 1: of operators in memory with the same origin; 0: none */
  /* Closes the handle that the overload creates; NULL: it creates none. */
  int (*close)(const cuplug_call *call, void *handle);
  const char *gradient; /* the properties of its note; NULL: none */
  const char *linear;
} cuplug_definition_overload;

typedef struct cuplug_definition {
  const char *plugin;  /* an identifier: used as the plugin's name */
  const char *version; /* NULL: none */
  const char *origin;  /* used as the plugin's file in messages: "<source>" */
  const char *doc;     /* one line; NULL: none */
  const cuplug_definition_overload *rows;
  uint32_t n_rows;
} cuplug_definition;

/* Creates an operator from entry points in this process. All signatures begin with its name. It is
 * used like a plugin's, but is found only by this pointer, not by name. It lives until the process
 * ends, so a caller that defines the same operator repeatedly keeps the first result. Strings are
 * copied. ERROR_VALUE: the definition is wrong. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_define(const cuplug_definition *definition, cuplug_operator **op,
                             cuplug_error *error);

/* Returns the error record of the call, for an entry of such an operator, which may fill it instead
 * of calling cuplug_fail. */
CUPLUG_API cuplug_error *cuplug_entry_error(const cuplug_call *call);

/* For such an entry: computes a number of the call, which must fit an integer type, a
 * cuplug_type_id. The error begins with `what`: "arguments: n // k: it divides by zero (n = 4, k =
 * 0)". Returns a status. */
CUPLUG_API int cuplug_entry_number(const cuplug_call *call, const cuplug_term *term,
                                   const char *what, uint32_t type, int64_t *number);

/* Parses numbers and names separated by commas, "x, n // 2, size(x, 0)": the arguments of a kernel
 * with such a signature. A single name that is not an integer, but an array, another parameter or
 * one of `own` (words separated by spaces; NULL: all must be numbers), has no steps. Errors begin
 * with `what`. The terms are the conditions of *terms, with one side each, which the caller frees
 * as a signature. [thread-safe] [no-cuda] */
CUPLUG_API int cuplug_parse_terms(const cuplug_signature *scope, const char *text, const char *what,
                                  const char *own, cuplug_signature **terms, uint32_t *position,
                                  cuplug_error *error);

CUPLUG__END_C
#endif

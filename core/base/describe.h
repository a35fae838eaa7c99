/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptions of arguments and parameters for error messages, and suggestions of names. Text that
 * does not fit is truncated. */
#ifndef CUPLUG_CORE_BASE_DESCRIBE_H
#define CUPLUG_CORE_BASE_DESCRIBE_H

#include <internal/signature.h>

typedef struct cuplug__text {
  char s[320];
} cuplug__text;

/* "float32[3, 4]", "int 7", "None", "list". */
cuplug__text cuplug__describe_argument(const cuplug_argument *argument);
/* "T[m, *row] with T: float32 | float64"; "int32"; "\"raise\", \"wrap\" or \"clip\"". */
cuplug__text cuplug__describe_parameter(const cuplug_signature *signature,
                                        const cuplug_parameter *parameter);
/* "0.5". */
cuplug__text cuplug__describe_float(double x);
/* "float32". */
cuplug__text cuplug__describe_dtype(uint32_t id);
/* "(3, 4)", in Python's notation: sizes, strides or an index. */
cuplug__text cuplug__describe_tuple(const int64_t *items, int32_t n);
/* "(3, ?)": sizes that are known after the run, which are -1, as "?". */
cuplug__text cuplug__describe_output_shape(const int64_t *shape, int32_t ndim);
/* "7.5, 9.0" for "750,900", the notation of compute capabilities in tables. */
cuplug__text cuplug__describe_architectures(const char *architectures);
/* "the host" or "cuda:0". */
cuplug__text cuplug__describe_device(cuplug_device device);

/* ---- Names that may have been meant ---------------------------------------------------------- */

/* Insertions, removals, replacements and swaps of neighbors between two names; more than `limit`
 * for names of more than 64 bytes. */
int cuplug__edit_distance(const char *a, const char *b, int limit);

/* The distance from `asked` to a similar name; -1 if `name` is not similar. A name
 * that begins with the other one counts as similar. */
int cuplug__name_distance(const char *asked, const char *name);

/* "; did you mean float32?" for a name that resembles a dtype; else "". */
cuplug__text cuplug__meant_dtype(const char *name);

#endif

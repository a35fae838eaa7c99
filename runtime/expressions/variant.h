/* SPDX-License-Identifier: Apache-2.0 */
/* Code that was compiled for a call, found again by its variant. */
#ifndef CUPLUG_RUNTIME_EXPRESSIONS_VARIANT_H
#define CUPLUG_RUNTIME_EXPRESSIONS_VARIANT_H

#include <cuplug/loop.h>
#include <runtime/expressions.h>

/* A variant for the call's device and the dtypes of its arrays; the rest is zero. */
void cuplug__variant_start(cuplug_variant *variant, const cuplug_call *call);

/* The code of a variant, compiled at its first use. Takes no lock: if two threads are first, both
 * compile. */
int cuplug__variant_find(cuplug_source *source, const cuplug_variant *variant,
                         const cuplug_code **code, cuplug_error *error);

/* The code of a variant of only the call's device and dtypes. */
int cuplug__variant_find_plain(cuplug_source *source, const cuplug_call *call,
                               const cuplug_code **code);

/* Runs a cuplug_loop_function and reports its errors; sets the last two members of `arguments`. */
int cuplug__variant_run(const cuplug_call *call, const cuplug_code *code,
                        cuplug_loop_call *arguments);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the driver and of CUDA's runtime -> error records, with what to do about them. */
#ifndef CUPLUG_CORE_CUDA_ERROR_H
#define CUPLUG_CORE_CUDA_ERROR_H

#include <cuplug/host.h>

/* Fills the record from a driver or runtime error code: name, text and what to do about it; for a
 * sticky error, that the process must be restarted, and after which operator it was seen first.
 * Running out of memory is ERROR_MEMORY. Returns the status. */
int cuplug__cuda_fail(cuplug_error *error, int code, const char *doing);
/* The same without what to do about it: for an entry, whose record gets that when it returns. */
int cuplug__cuda_report(cuplug_error *error, int code, const char *doing);
/* cuda_fail unless `code` is 0. */
int cuplug__cuda_check(cuplug_error *error, int code, const char *doing);
/* Appends what to do about `code` to the message that a plugin has already made of it. */
void cuplug__cuda_explain(cuplug_error *error, int code);
/* Remembers the operator launched last, to be named with a sticky error. */
void cuplug__cuda_note_operator(const char *name);
/* Remembers that `code`, seen after operator `name`, made the context unusable, if it is sticky:
 * cuda_enter then refuses. Operator names are borrowed for ever. */
void cuplug__cuda_note_sticky(int code, const char *name);
/* The sticky error that was noted first: nothing works any more in this process. 0: none. */
int cuplug__cuda_sticky(void);

#endif

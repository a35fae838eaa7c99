/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 that a terminal shows. */
#ifndef CUPLUG_CORE_BASE_UTF8_H
#define CUPLUG_CORE_BASE_UTF8_H

#include <stddef.h>

/* How many bytes at the beginning of a string of n bytes are whole characters on one line, none of
 * them a control character: n when all are. */
size_t cuplug__shown_bytes(const char *text, size_t n);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Macros for C tests. */
#ifndef CUPLUG_TESTS_CHECK_H
#define CUPLUG_TESTS_CHECK_H

#include <stdio.h>
#include <string.h>

static int n_failed;

/* For functions that create compared data: the thread sanitizer need not follow each element. */
#define UNSEEN __attribute__((no_sanitize("thread")))

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      n_failed++;                                                               \
    }                                                                           \
  } while (0)

/* The text must have each expected character. */
#define CHECK_TEXT(seen, wanted)                                                                \
  do {                                                                                          \
    if (strcmp(seen, wanted)) {                                                                 \
      fprintf(stderr, "%s:%d:\n  got   %s\n  expected %s\n", __FILE__, __LINE__, seen, wanted); \
      n_failed++;                                                                               \
    }                                                                                           \
  } while (0)

#endif

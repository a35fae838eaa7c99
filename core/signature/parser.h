/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a signature's text, and the parser's state. */
#ifndef CUPLUG_CORE_SIGNATURE_PARSER_H
#define CUPLUG_CORE_SIGNATURE_PARSER_H

#include <internal/signature.h>
#include <string.h>

#define CUPLUG__MAX_PARAMETERS (2 * CUPLUG_MAX_ARGUMENTS) /* outputs included */

/* The remedy for a type that is written as list[...]. */
#define CUPLUG__LISTS "; a list of arrays is float32[n][], a list of numbers is int[]"

typedef struct cuplug__parser {
  const char *at;
  const char *token; /* where the rule at hand began, for errors */
  cuplug_signature *s;
  const cuplug_signature *scope; /* whose names formulas have: `s`, or another one */
  const char *what;              /* is parsed, for errors: "signature" */
  /* The next free places of the signature's memory, which suffices for its text. */
  char *strings;
  cuplug_dim *dims;
  cuplug_step *steps;
  cuplug_side *sides;
  const char **choices;
  const char *parameter_at[CUPLUG__MAX_PARAMETERS];
  uint64_t known;     /* the dtypes of groups in the plugin's ABI */
  int is_short;       /* arrays may be written without brackets: cuplug_parse_short */
  int is_condition;   /* whose formulas are tied: names of arrays mean their elements */
  int depth;          /* of brackets in a formula */
  const char *wanted; /* expected where a formula is, for errors: "a dimension (...)" */
  cuplug_error *error;
} cuplug__parser;

/* Makes the memory of a signature, one block that suffices for all that its text can hold. */
int cuplug__parser_start(cuplug__parser *p, const char *text, const char *what,
                         cuplug_error *error);

/* "signature: byte 5: got ..., expected WANTED". Returns ERROR_VALUE. */
int cuplug__parse_fail(cuplug__parser *p, const char *at, const char *wanted);
/* 1 if a character may be part of a name. isalnum would depend on the locale. */
static inline int cuplug__is_word(char c) {
  return ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9') || c == '_';
}
/* 1 if a name is the first n characters of a text. */
static inline int cuplug__is_name(const char *name, const char *text, size_t n) {
  return !strncmp(name, text, n) && !name[n];
}
void cuplug__skip_space(cuplug__parser *p);
int cuplug__take_mark(cuplug__parser *p, const char *mark);
/* 1 if a mark, or a whole word, comes next; it is consumed then. */
static inline int cuplug__take(cuplug__parser *p, const char *mark) {
  if (*p->at != ' ' && *p->at != *mark) return 0; /* mostly: tables have thousands of signatures */
  return cuplug__take_mark(p, mark);
}
int cuplug__take_word(cuplug__parser *p, const char *word);
int cuplug__expect(cuplug__parser *p, const char *mark, const char *wanted);
int cuplug__at_string(cuplug__parser *p);
/* A name of at most 63 characters, or a quoted string without its quotes, kept. */
int cuplug__parse_name(cuplug__parser *p, const char **name, const char *wanted);
int cuplug__parse_string(cuplug__parser *p, const char **string);
/* An integer or a float, with the kind that it has as an argument. */
int cuplug__parse_number(cuplug__parser *p, uint32_t *kind, cuplug_scalar *value,
                         const char *wanted);
/* The text from `begin` to where the parser is, without space around it, kept. */
const char *cuplug__keep_text(cuplug__parser *p, const char *begin);

/* ---- Words ----------------------------------------------------------------------------------- */

/* "inout x: T[n]", "zero counts: int32[n]", "host sizes: int64[g]". */

/* Sets `found` to the words before the next name or dtype, CUPLUG_WORD_ZERO ... A word that nothing
 * follows is itself that name: outputs may be called "zero". Refuses words similar to an allowed
 * one; others are left to the caller, as a name. */
int cuplug__parse_words(cuplug__parser *p, uint32_t allowed, uint32_t *found);

/* Refuses a name at `at`, before `next`, that is similar to an allowed word: bit k for words[k]. */
int cuplug__refuse_similar(cuplug__parser *p, const char *at, const char *next,
                           const char *const *words, uint32_t allowed);

/* ---- Defaults -------------------------------------------------------------------------------- */

/* Parses what follows "=": a number, string, True, False, None or a dtype. */
int cuplug__parse_default(cuplug__parser *p, cuplug_parameter *x);

/* The number of a dimension's name, which is added if it is new; -1: there are too many. */
int64_t cuplug__dim_number(cuplug_signature *s, const char *name);
/* The number of the type variable of a name; -1: not found. */
int32_t cuplug__variable_of(const cuplug_signature *s, const char *name);
/* 1 if a default is of the type, and in the range, of its parameter. */
int cuplug__fits_default(const cuplug_signature *s, const cuplug_parameter *x);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "signature/parser.h"

#include "base/describe.h"
#include "base/dtype.h"
#include "base/status.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *keep(cuplug__parser *p, const char *from, size_t n) {
  char *copy = p->strings;
  memcpy(copy, from, n);
  copy[n] = 0;
  p->strings += n + 1;
  return copy;
}

/* Counts the characters of a text that are among `marks`, which bound the objects that it can
 * define. */
static size_t count(const char *text, const char *marks) {
  size_t n = 0;
  for (text = strpbrk(text, marks); text; text = strpbrk(text + 1, marks)) n++;
  return n;
}

static size_t count_words(const char *text) {
  size_t n = 0;
  for (int was_word = 0; *text; was_word = cuplug__is_word(*text++))
    n += cuplug__is_word(*text) && !was_word;
  return n;
}

/* Room for n objects after the others; all are of 8 bytes or multiples of that. */
static size_t reserve(size_t *n_bytes, size_t n, size_t bytes) {
  const size_t place = *n_bytes;
  *n_bytes += n * bytes;
  return place;
}

int cuplug__parser_start(cuplug__parser *p, const char *text, const char *what,
                         cuplug_error *error) {
  const size_t n = strnlen(text, CUPLUG_MAX_SIGNATURE + 1);
  memset(p, 0, sizeof *p);
  if (n > CUPLUG_MAX_SIGNATURE)
    return cuplug__fail(error, CUPLUG_ERROR_VALUE,
                        "%s: got more than %d bytes, expected at most %d", what,
                        CUPLUG_MAX_SIGNATURE, CUPLUG_MAX_SIGNATURE);
  const size_t n_commas = count(text, ","), n_relations = count(text, "<>=!{");
  const size_t n_parts = n_commas + (n_relations ? 2 : 1); /* 2: "->", "where" */
  const size_t n_dims = n_commas + count(text, "[");
  size_t bytes = sizeof *p->s;
  const size_t parameters = reserve(&bytes, n_parts, sizeof(cuplug_parameter));
  const size_t variables = reserve(&bytes, n_parts, sizeof(cuplug_type_variable));
  const size_t dims = reserve(&bytes, n_dims, sizeof(cuplug_dim));
  const size_t dim_names = reserve(&bytes, n_dims, sizeof(char *));
  const size_t places = reserve(&bytes, n_dims, sizeof(cuplug_dim_source));
  const size_t conditions = reserve(&bytes, n_parts, sizeof(cuplug_condition));
  const size_t sides = reserve(&bytes, n_parts + 2 * n_relations, sizeof(cuplug_side));
  const size_t choices = reserve(&bytes, count(text, "'\"") / 2 + 1, sizeof(char *));
  const size_t zeroed = bytes; /* the rest is written before it is read */
  /* A step is a word or an operation. Strings are the text, its quoted ones, its words, of which
   * the first of a range is read twice, and the texts of dimensions, defaults and ranges; each with
   * its zero is no longer than in the text with the adjacent mark. */
  const size_t n_steps = count_words(text) + count(text, "+-*/%") + 1;
  const size_t steps = reserve(&bytes, n_steps, sizeof(cuplug_step));
  const size_t strings = reserve(&bytes, n + 1, 5);
  char *block = malloc(bytes);
  if (!block) return cuplug__no_memory(error, "parsing a signature");
  memset(block, 0, zeroed);
  p->s = (cuplug_signature *)block;
  p->s->parameters = (cuplug_parameter *)(block + parameters);
  p->s->variables = (cuplug_type_variable *)(block + variables);
  p->s->dim_names = (const char **)(block + dim_names);
  p->s->places = (cuplug_dim_source *)(block + places);
  p->s->conditions = (cuplug_condition *)(block + conditions);
  p->dims = (cuplug_dim *)(block + dims);
  p->sides = (cuplug_side *)(block + sides);
  p->choices = (const char **)(block + choices);
  p->steps = (cuplug_step *)(block + steps);
  p->strings = block + strings;
  p->error = error;
  p->scope = p->s;
  p->what = what;
  p->s->text = p->at = p->token = keep(p, text, n);
  return CUPLUG_OK;
}

int cuplug__parse_fail(cuplug__parser *p, const char *at, const char *wanted) {
  p->token = at;
  return cuplug__fail(p->error, CUPLUG_ERROR_VALUE, "%s: byte %zu: got \"%.12s\", expected %s",
                      p->what, (size_t)(at - p->s->text), at, wanted);
}

void cuplug__skip_space(cuplug__parser *p) {
  while (*p->at == ' ') p->at++;
}

int cuplug__take_mark(cuplug__parser *p, const char *mark) {
  cuplug__skip_space(p);
  size_t n = strlen(mark);
  if (strncmp(p->at, mark, n)) return 0;
  p->at += n;
  return 1;
}

int cuplug__take_word(cuplug__parser *p, const char *word) {
  cuplug__skip_space(p);
  if (*p->at != *word) return 0;
  size_t n = strlen(word);
  if (strncmp(p->at, word, n) || cuplug__is_word(p->at[n])) return 0;
  p->at += n;
  return 1;
}

int cuplug__expect(cuplug__parser *p, const char *mark, const char *wanted) {
  return cuplug__take(p, mark) ? CUPLUG_OK : cuplug__parse_fail(p, p->at, wanted);
}

int cuplug__at_string(cuplug__parser *p) {
  cuplug__skip_space(p);
  return *p->at == '"' || *p->at == '\'';
}

int cuplug__parse_name(cuplug__parser *p, const char **name, const char *wanted) {
  cuplug__skip_space(p);
  size_t n = 0;
  if (!isdigit((unsigned char)*p->at))
    while (cuplug__is_word(p->at[n])) n++;
  if (!n) return cuplug__parse_fail(p, p->at, wanted);
  if (n >= CUPLUG_MAX_NAME) return cuplug__parse_fail(p, p->at, "a name of at most 63 characters");
  *name = keep(p, p->at, n);
  p->at += n;
  return CUPLUG_OK;
}

int cuplug__parse_string(cuplug__parser *p, const char **string) {
  const char *end = strchr(p->at + 1, *p->at);
  if (!end) return cuplug__parse_fail(p, p->at, "a closing quote");
  *string = keep(p, p->at + 1, (size_t)(end - p->at) - 1);
  p->at = end + 1;
  return CUPLUG_OK;
}

static double read_float(const char *at, char **end) {
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  *end = (char *)at;
  if (!c_locale) return 0;
  const double number = strtod_l(at, end, c_locale);
  freelocale(c_locale);
  return number;
}

int cuplug__parse_number(cuplug__parser *p, uint32_t *kind, cuplug_scalar *value,
                         const char *wanted) {
  char *end, *end_float;
  cuplug__skip_space(p);
  errno = 0;
  value->i = strtoll(p->at, &end, 10);
  const int too_large = errno == ERANGE;
  const double number = read_float(p->at, &end_float);
  if (end_float == p->at) return cuplug__parse_fail(p, p->at, wanted);
  *kind = CUPLUG_ARGUMENT_INT;
  if (end_float != end || (too_large && *p->at == '-')) {
    *kind = CUPLUG_ARGUMENT_FLOAT;
    value->f = number;
  } else if (too_large) {
    errno = 0;
    *kind = CUPLUG_ARGUMENT_UINT;
    value->u = strtoull(p->at, &end, 10);
    if (errno) return cuplug__parse_fail(p, p->at, "an integer of at most 64 bits");
  }
  p->at = end_float;
  return CUPLUG_OK;
}

const char *cuplug__keep_text(cuplug__parser *p, const char *begin) {
  const char *end = p->at;
  while (begin < end && *begin == ' ') begin++;
  while (end > begin && end[-1] == ' ') end--;
  return keep(p, begin, (size_t)(end - begin));
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* By the bits of CUPLUG_WORD_INOUT ... */
static const char *const words[] = {"inout", "zero", "detached", "host"};
enum { N_WORDS = sizeof words / sizeof *words };

static const char *skip_word(const char *at) {
  while (cuplug__is_word(*at)) at++;
  while (*at == ' ') at++;
  return at;
}

/* 1 if a `where` clause begins there, as after the short form of an output. */
static int is_where(const char *at) {
  return !strncmp(at, "where", 5) && !cuplug__is_word(at[5]) && *skip_word(at) != ':';
}

int cuplug__refuse_similar(cuplug__parser *p, const char *at, const char *next,
                           const char *const *words, uint32_t allowed) {
  char seen[CUPLUG_MAX_NAME];
  size_t n = 0;
  while (cuplug__is_word(at[n])) n++;
  if (n >= sizeof seen) return CUPLUG_OK;
  snprintf(seen, sizeof seen, "%.*s", (int)n, at);
  for (; allowed; allowed &= allowed - 1) {
    const char *word = words[__builtin_ctz(allowed)];
    if (cuplug__name_distance(seen, word) < 0) continue;
    p->token = at;
    return cuplug__fail(p->error, CUPLUG_ERROR_VALUE,
                        "%s: byte %zu: got \"%s\" before %s; did you mean %s?", p->what,
                        (size_t)(at - p->s->text), seen, next, word);
  }
  return CUPLUG_OK;
}

int cuplug__parse_words(cuplug__parser *p, uint32_t allowed, uint32_t *found) {
  *found = 0;
  for (;;) {
    cuplug__skip_space(p);
    const char *next = skip_word(p->at);
    size_t n = 0;
    int k = 0;
    if (!cuplug__is_word(*next) || next == p->at || is_where(next)) return CUPLUG_OK;
    while (cuplug__is_word(p->at[n])) n++;
    while (k < N_WORDS && !(allowed >> k & 1 && cuplug__is_name(words[k], p->at, n))) k++;
    if (k == N_WORDS) return cuplug__refuse_similar(p, p->at, "a name", words, allowed);
    *found |= 1u << k;
    p->at = next;
  }
}

/* ---- Defaults -------------------------------------------------------------------------------- */

int64_t cuplug__dim_number(cuplug_signature *s, const char *name) {
  int32_t k = 0;
  while (k < s->n_dim_names && strcmp(s->dim_names[k], name) != 0) k++;
  if (k == CUPLUG_MAX_ARGUMENTS) return -1;
  if (k == s->n_dim_names) s->dim_names[s->n_dim_names++] = name;
  return k;
}

int32_t cuplug__variable_of(const cuplug_signature *s, const char *name) {
  for (int32_t k = 0; *name && k < s->n_variables; k++)
    if (!strcmp(s->variables[k].name, name)) return k;
  return -1;
}

/* A dtype, or the name of a type variable, as a string. */
static int parse_dtype(cuplug__parser *p, cuplug_parameter *x) {
  static const char *const wanted = "a default (a dtype, or a type variable above)";
  const char *name;
  cuplug__skip_space(p);
  const char *at = p->at;
  if (cuplug__parse_name(p, &name, wanted)) return CUPLUG_ERROR_VALUE;
  x->default_kind = CUPLUG_ARGUMENT_STRING;
  x->default_value.s = name;
  if (cuplug__variable_of(p->s, name) >= 0) return CUPLUG_OK;
  const uint64_t bits = cuplug__dtype_bits(name);
  if (!bits || bits & (bits - 1)) return cuplug__parse_fail(p, at, wanted);
  x->default_value.dtype = cuplug__dtype_of(cuplug_dtype_id(cuplug__dtype_number(bits)));
  x->default_kind = CUPLUG_ARGUMENT_DTYPE;
  return CUPLUG_OK;
}

static int parse_value(cuplug__parser *p, cuplug_parameter *x) {
  uint32_t kind = CUPLUG_ARGUMENT_STRING;
  x->has_default = 1;
  if (x->kind == CUPLUG_PARAMETER_DTYPE) return parse_dtype(p, x);
  if (cuplug__at_string(p)) {
    if (cuplug__parse_string(p, &x->default_value.s)) return CUPLUG_ERROR_VALUE;
  } else if (cuplug__take_word(p, "None")) {
    kind = CUPLUG_ARGUMENT_NONE;
  } else if (cuplug__take_word(p, "True") || cuplug__take_word(p, "False")) {
    kind = CUPLUG_ARGUMENT_BOOL;
    x->default_value.i = p->at[-2] == 'u';
  } else if (cuplug__parse_number(p, &kind, &x->default_value,
                                  "a default (a number, string or None)")) {
    return CUPLUG_ERROR_VALUE;
  }
  x->default_kind = (int32_t)kind;
  return CUPLUG_OK;
}

/* A choice's default is stored as its number; the rules reject other values. */
static void number_choice(cuplug_parameter *x) {
  int is_string = x->default_kind == CUPLUG_ARGUMENT_STRING;
  if (x->kind != CUPLUG_PARAMETER_CHOICE || x->default_kind == CUPLUG_ARGUMENT_NONE) return;
  x->default_kind = CUPLUG_ARGUMENT_OTHER;
  for (int32_t k = 0; k < x->n_choices; k++)
    if (is_string && !strcmp(x->choices[k], x->default_value.s)) {
      x->default_kind = CUPLUG_ARGUMENT_INT;
      x->default_value.i = k;
      return;
    }
}

int cuplug__parse_default(cuplug__parser *p, cuplug_parameter *x) {
  const char *begin = p->at;
  if (parse_value(p, x)) return CUPLUG_ERROR_VALUE;
  number_choice(x);
  x->default_text = cuplug__keep_text(p, begin);
  return CUPLUG_OK;
}

/* A scalar's default is of the type, and in the range, of all its dtypes. */
static int scalar_takes(uint64_t dtypes, const cuplug_parameter *x) {
  const cuplug_argument value = {.kind = (uint32_t)x->default_kind, .scalar = x->default_value};
  cuplug_scalar converted;
  for (uint32_t k = 0; cuplug_dtype_name(k); k++)
    if (dtypes >> k & 1 && cuplug__convert_scalar(&value, cuplug_dtype_id(k), &converted)) return 0;
  return 1;
}

/* Of the variable that a default names, those that an array before it is always given. */
static uint64_t dtypes_by_default(const cuplug_signature *s, const cuplug_parameter *x) {
  if (x->default_kind == CUPLUG_ARGUMENT_DTYPE)
    return cuplug__dtype_bit(cuplug__id_of(x->default_value.dtype));
  const int32_t v = cuplug__variable_of(s, x->default_value.s);
  for (const cuplug_parameter *y = s->parameters; y < x; y++)
    if (y->type_variable == v && y->kind <= CUPLUG_PARAMETER_INOUT && !y->has_default)
      return s->variables[v].dtypes;
  return 0;
}

int cuplug__fits_default(const cuplug_signature *s, const cuplug_parameter *x) {
  const uint64_t dtypes = x->type_variable < 0 ? 0 : s->variables[x->type_variable].dtypes;
  if (x->default_kind == CUPLUG_ARGUMENT_NONE) return 1;
  switch (x->kind) {
  case CUPLUG_PARAMETER_STRING:
    return x->default_kind == CUPLUG_ARGUMENT_STRING;
  case CUPLUG_PARAMETER_CHOICE:
    return x->default_kind == CUPLUG_ARGUMENT_INT;
  case CUPLUG_PARAMETER_SCALAR:
    return scalar_takes(dtypes, x);
  case CUPLUG_PARAMETER_DTYPE:
    return (dtypes & dtypes_by_default(s, x)) != 0;
  default:
    return 0;
  }
}

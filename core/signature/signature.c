/* SPDX-License-Identifier: Apache-2.0 */
/* The parser of signatures: recursive descent, one function for each rule of the grammar.
 *
 *   signature  = name "(" [parameter {"," parameter}] ")" ["->" outputs] ["where" bounds]
 *   parameter  = ["inout"] name ":" (dtype ["[" dims "]"] | "str" | string {"|" string})
 *                ["=" default]
 *   outputs    = output | "(" output {"," output} ")"
 *   output     = [name ":"] dtype "[" dims "]"
 *   dims       = [dim {"," dim}]         dim = size | name | "*" name | "..." | "?"
 *   bounds     = name ":" dtype {"|" dtype} {"," name ":" dtype {"|" dtype}}
 *   default    = number | string | "True" | "False" | "None"
 */
#include "base/dtype.h"
#include "base/status.h"
#include "signature/rules.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
  const char *at;
  const char *token; /* where the rule at hand began, for errors */
  cuplug_signature *s;
  size_t n_string_bytes;
  const char *parameter_at[CUPLUG_MAX_PARAMETERS + CUPLUG_MAX_OUTPUTS];
  cuplug_error *error;
} parser;

typedef char name_text[CUPLUG_MAX_NAME];

static int fail(parser *p, const char *at, const char *wanted) {
  p->token = at;
  return cuplug__fail(p->error, CUPLUG_ERROR_VALUE, "signature: %s at byte %zu, seen \"%.12s\"",
                      wanted, (size_t)(at - p->s->text), at);
}

static void skip_space(parser *p) {
  while (*p->at == ' ') p->at++;
}

/* Takes a mark if it comes next. */
static int take(parser *p, const char *mark) {
  skip_space(p);
  size_t n = strlen(mark);
  if (strncmp(p->at, mark, n)) return 0;
  p->at += n;
  return 1;
}

static int is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Takes a keyword: a whole word. */
static int take_word(parser *p, const char *word) {
  skip_space(p);
  size_t n = strlen(word);
  if (strncmp(p->at, word, n) || is_word(p->at[n])) return 0;
  p->at += n;
  return 1;
}

static int expect(parser *p, const char *mark, const char *wanted) {
  return take(p, mark) ? CUPLUG_OK : fail(p, p->at, wanted);
}

static int parse_name(parser *p, char *name, const char *wanted) {
  skip_space(p);
  size_t n = 0;
  if (!isdigit((unsigned char)*p->at))
    while (is_word(p->at[n])) n++;
  if (!n) return fail(p, p->at, wanted);
  if (n >= CUPLUG_MAX_NAME) return fail(p, p->at, "a name of at most 63 characters is wanted");
  memcpy(name, p->at, n);
  name[n] = 0;
  p->at += n;
  return CUPLUG_OK;
}

/* A quoted string, stored with the signature; its quotes are removed. */
static int parse_string(parser *p, const char **string) {
  char quote = *p->at;
  const char *end = strchr(p->at + 1, quote);
  if (!end) return fail(p, p->at, "the closing quote is missing");
  size_t n = (size_t)(end - p->at) - 1;
  char *copy = p->s->strings + p->n_string_bytes;
  memcpy(copy, p->at + 1, n);
  copy[n] = 0;
  p->n_string_bytes += n + 1;
  *string = copy;
  p->at = end + 1;
  return CUPLUG_OK;
}

static int at_string(parser *p) {
  skip_space(p);
  return *p->at == '"' || *p->at == '\'';
}

/* The number of a type variable, or of a dtype that stands for itself; added when it is new. */
static int type_variable(parser *p, const char *name, int32_t *number) {
  cuplug_signature *s = p->s;
  uint32_t bits = cuplug__dtype_bits(name);
  if (bits & (bits - 1)) return fail(p, p->token, "a dtype or a type variable is wanted");
  const char *own_name = bits ? "" : name;
  for (int32_t k = 0; k < s->n_variables; k++) {
    *number = k;
    if (!strcmp(s->variables[k].name, own_name) && (!bits || s->variables[k].dtypes == bits))
      return CUPLUG_OK;
  }
  if (s->n_variables == sizeof(s->variables) / sizeof(s->variables[0]))
    return fail(p, p->token, "at most 16 dtypes and type variables may be used");
  *number = s->n_variables++;
  strcpy(s->variables[*number].name, own_name);
  s->variables[*number].dtypes = bits;
  return CUPLUG_OK;
}

static int dim_name(parser *p, cuplug_dim *dim) {
  cuplug_signature *s = p->s;
  const char *at = p->at;
  name_text name;
  if (parse_name(p, name, "a dimension is wanted: a size, a name, *name, ... or ?"))
    return CUPLUG_ERROR_VALUE;
  for (int32_t k = 0; k < s->n_dim_names; k++)
    if (!strcmp(s->dim_names[k], name)) {
      dim->value = k;
      return CUPLUG_OK;
    }
  if (s->n_dim_names == sizeof(s->dim_names) / sizeof(s->dim_names[0]))
    return fail(p, at, "at most 24 dimension names may be used");
  dim->value = s->n_dim_names;
  strcpy(s->dim_names[s->n_dim_names++], name);
  return CUPLUG_OK;
}

static int parse_dim(parser *p, cuplug_dim *dim) {
  skip_space(p);
  if (take(p, "...")) {
    dim->kind = CUPLUG_DIM_LOOP;
  } else if (take(p, "?")) {
    dim->kind = CUPLUG_DIM_UNKNOWN;
  } else if (isdigit((unsigned char)*p->at)) {
    char *end;
    errno = 0;
    dim->kind = CUPLUG_DIM_FIXED;
    dim->value = strtoll(p->at, &end, 10);
    if (errno) return fail(p, p->at, "a size below 2^63 is wanted");
    p->at = end;
  } else {
    dim->kind = take(p, "*") ? CUPLUG_DIM_VARIADIC : CUPLUG_DIM_NAMED;
    return dim_name(p, dim);
  }
  return CUPLUG_OK;
}

/* Dimensions after "[", up to and with "]". */
static int parse_dims(parser *p, cuplug_parameter *x) {
  if (take(p, "]")) return CUPLUG_OK;
  do {
    if (x->n_dims == sizeof(x->dims) / sizeof(x->dims[0]))
      return fail(p, p->at, "at most 16 dimensions may be written");
    if (parse_dim(p, &x->dims[x->n_dims++])) return CUPLUG_ERROR_VALUE;
  } while (take(p, ","));
  return expect(p, "]", "',' or ']' is wanted");
}

static int parse_choices(parser *p, cuplug_parameter *x) {
  x->kind = CUPLUG_PARAMETER_CHOICE;
  do {
    if (!at_string(p)) return fail(p, p->at, "a quoted string is wanted");
    if (x->n_choices == sizeof(x->choices) / sizeof(x->choices[0]))
      return fail(p, p->at, "at most 8 choices may be given");
    if (parse_string(p, &x->choices[x->n_choices++])) return CUPLUG_ERROR_VALUE;
  } while (take(p, "|"));
  return CUPLUG_OK;
}

static int parse_type(parser *p, cuplug_parameter *x) {
  static const char *const python_names[][2] = {
      {"int", "int64"}, {"float", "float64"}, {"complex", "complex128"}};
  name_text name;
  if (at_string(p)) return parse_choices(p, x);
  p->token = p->at;
  if (parse_name(p, name, "a type is wanted")) return CUPLUG_ERROR_VALUE;
  if (!strcmp(name, "str")) {
    x->kind = CUPLUG_PARAMETER_STRING;
    return CUPLUG_OK;
  }
  int is_array = take(p, "[");
  if (!is_array)
    for (int k = 0; k < 3; k++)
      if (!strcmp(name, python_names[k][0])) strcpy(name, python_names[k][1]);
  if (type_variable(p, name, &x->type_variable)) return CUPLUG_ERROR_VALUE;
  if (!is_array) x->kind = CUPLUG_PARAMETER_SCALAR;
  return is_array ? parse_dims(p, x) : CUPLUG_OK;
}

static int parse_number(parser *p, cuplug_parameter *x) {
  char *end_int, *end_float;
  errno = 0;
  long long integer = strtoll(p->at, &end_int, 10);
  int too_large = errno == ERANGE;
  locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!c_locale) return fail(p, p->at, "no memory to read a number");
  double number = strtod_l(p->at, &end_float, c_locale);
  freelocale(c_locale);
  if (end_float == p->at) return fail(p, p->at, "a default is wanted: a number, string or None");
  if (end_float == end_int && !too_large) {
    x->default_kind = CUPLUG_ARGUMENT_INT;
    x->default_value.i = integer;
  } else if (end_float == end_int && *p->at != '-') {
    errno = 0;
    x->default_kind = CUPLUG_ARGUMENT_UINT;
    x->default_value.u = strtoull(p->at, &end_int, 10);
    if (errno) return fail(p, p->at, "an integer of at most 64 bits is wanted");
  } else {
    x->default_kind = CUPLUG_ARGUMENT_FLOAT;
    x->default_value.f = number;
  }
  p->at = end_float;
  return CUPLUG_OK;
}

static int parse_default(parser *p, cuplug_parameter *x) {
  x->has_default = 1;
  if (at_string(p)) {
    x->default_kind = CUPLUG_ARGUMENT_STRING;
    return parse_string(p, &x->default_value.s);
  }
  if (take_word(p, "None")) {
    x->default_kind = CUPLUG_ARGUMENT_NONE;
  } else if (take_word(p, "True") || take_word(p, "False")) {
    x->default_kind = CUPLUG_ARGUMENT_BOOL;
    x->default_value.i = p->at[-2] == 'u';
  } else {
    return parse_number(p, x);
  }
  return CUPLUG_OK;
}

/* A choice's default is kept as its number; what is no choice is left for the rules to refuse. */
static void number_choice(cuplug_parameter *x) {
  int is_string = x->default_kind == CUPLUG_ARGUMENT_STRING;
  if (x->kind != CUPLUG_PARAMETER_CHOICE) return;
  x->default_kind = CUPLUG_ARGUMENT_OTHER;
  for (int32_t k = 0; k < x->n_choices; k++)
    if (is_string && !strcmp(x->choices[k], x->default_value.s)) {
      x->default_kind = CUPLUG_ARGUMENT_INT;
      x->default_value.i = k;
      return;
    }
}

/* Keeps the default as it was written, for help texts. */
static void keep_default_text(parser *p, cuplug_parameter *x, const char *begin) {
  while (*begin == ' ') begin++;
  size_t n = (size_t)(p->at - begin);
  char *copy = p->s->strings + p->n_string_bytes;
  memcpy(copy, begin, n);
  copy[n] = 0;
  p->n_string_bytes += n + 1;
  x->default_text = copy;
}

/* The next parameter or output, or NULL when there is no room for it. */
static cuplug_parameter *new_parameter(parser *p, int n, int limit) {
  skip_space(p);
  if (n == limit) {
    fail(p, p->at, "too many parameters or outputs");
    return NULL;
  }
  int k = p->s->n_parameters + p->s->n_outputs;
  p->parameter_at[k] = p->at;
  p->s->parameters[k].type_variable = -1;
  return &p->s->parameters[k];
}

static int parse_parameter(parser *p) {
  cuplug_parameter *x = new_parameter(p, p->s->n_parameters, CUPLUG_MAX_PARAMETERS);
  if (!x) return CUPLUG_ERROR_VALUE;
  int inout = take_word(p, "inout");
  if (parse_name(p, x->name, "a parameter's name is wanted")) return CUPLUG_ERROR_VALUE;
  if (expect(p, ":", "':' and a type are wanted")) return CUPLUG_ERROR_VALUE;
  if (parse_type(p, x)) return CUPLUG_ERROR_VALUE;
  if (inout && x->kind != CUPLUG_PARAMETER_ARRAY)
    return fail(p, p->parameter_at[p->s->n_parameters], "inout is for arrays");
  if (inout) x->kind = CUPLUG_PARAMETER_INOUT;
  p->s->n_parameters++;
  if (!take(p, "=")) return CUPLUG_OK;
  const char *begin = p->at;
  int status = parse_default(p, x);
  if (status) return status;
  number_choice(x);
  keep_default_text(p, x, begin);
  return CUPLUG_OK;
}

static int parse_output(parser *p) {
  cuplug_parameter *x = new_parameter(p, p->s->n_outputs, CUPLUG_MAX_OUTPUTS);
  name_text name;
  if (!x) return CUPLUG_ERROR_VALUE;
  p->token = p->at;
  if (parse_name(p, name, "an output's dtype is wanted")) return CUPLUG_ERROR_VALUE;
  if (take(p, ":")) {
    strcpy(x->name, name);
    skip_space(p);
    p->token = p->at;
    if (parse_name(p, name, "an output's dtype is wanted")) return CUPLUG_ERROR_VALUE;
  }
  x->kind = CUPLUG_PARAMETER_OUTPUT;
  p->s->n_outputs++;
  if (type_variable(p, name, &x->type_variable)) return CUPLUG_ERROR_VALUE;
  if (expect(p, "[", "'[' is wanted: outputs are arrays")) return CUPLUG_ERROR_VALUE;
  return parse_dims(p, x);
}

static int parse_outputs(parser *p) {
  if (!take(p, "(")) return parse_output(p);
  do {
    if (parse_output(p)) return CUPLUG_ERROR_VALUE;
  } while (take(p, ","));
  return expect(p, ")", "',' or ')' is wanted");
}

/* One bound of the where clause: "T: float32 | float64". */
static int parse_bound(parser *p) {
  name_text name;
  skip_space(p);
  const char *at = p->at;
  if (parse_name(p, name, "a type variable is wanted")) return CUPLUG_ERROR_VALUE;
  int32_t k = 0;
  while (k < p->s->n_variables && strcmp(p->s->variables[k].name, name)) k++;
  if (k == p->s->n_variables) return fail(p, at, "this type variable is not used above");
  if (p->s->variables[k].dtypes) return fail(p, at, "this type variable is bound twice");
  if (expect(p, ":", "':' and dtypes are wanted")) return CUPLUG_ERROR_VALUE;
  do {
    skip_space(p);
    at = p->at;
    if (parse_name(p, name, "a dtype is wanted")) return CUPLUG_ERROR_VALUE;
    uint32_t bits = cuplug__dtype_bits(name);
    if (!bits) return fail(p, at, "this is no dtype");
    p->s->variables[k].dtypes |= bits;
  } while (take(p, "|"));
  return CUPLUG_OK;
}

static int parse_all(parser *p) {
  if (parse_name(p, p->s->name, "the operator's name is wanted")) return CUPLUG_ERROR_VALUE;
  if (expect(p, "(", "'(' is wanted")) return CUPLUG_ERROR_VALUE;
  if (!take(p, ")")) {
    do {
      if (parse_parameter(p)) return CUPLUG_ERROR_VALUE;
    } while (take(p, ","));
    if (expect(p, ")", "',' or ')' is wanted")) return CUPLUG_ERROR_VALUE;
  }
  if (take(p, "->") && parse_outputs(p)) return CUPLUG_ERROR_VALUE;
  if (take_word(p, "where")) {
    do {
      if (parse_bound(p)) return CUPLUG_ERROR_VALUE;
    } while (take(p, ","));
  }
  skip_space(p);
  return *p->at ? fail(p, p->at, "the signature's end is wanted") : CUPLUG_OK;
}

int cuplug_parse_signature(const char *text, cuplug_signature *signature, uint32_t *position,
                           cuplug_error *error) {
  cuplug__clear(error);
  memset(signature, 0, sizeof(*signature));
  if (position) *position = 0;
  size_t n = strnlen(text, sizeof(signature->text));
  if (n == sizeof(signature->text))
    return cuplug__fail(error, CUPLUG_ERROR_VALUE, "signature: at most 511 bytes are allowed");
  memcpy(signature->text, text, n);
  parser p = {.at = signature->text, .token = signature->text, .s = signature, .error = error};
  int parameter = -1;
  int status = parse_all(&p);
  if (!status) {
    status = cuplug__check_signature(signature, &parameter, error);
    p.token = parameter < 0 ? signature->text : p.parameter_at[parameter];
  }
  if (status && position) *position = (uint32_t)(p.token - signature->text);
  return status;
}

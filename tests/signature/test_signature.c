/* sanitizers: address,undefined */
/* SPDX-License-Identifier: Apache-2.0 */
/* The signature language: accepted and rejected texts, with messages and positions. */
#include "check.h"
#include "signature/value.h"

#include <internal/signature.h>
#include <locale.h>

static cuplug_signature *s;
static cuplug_error error;

static int parse(const char *text, uint32_t *position, cuplug_error *into) {
  cuplug_free_signature(s);
  return cuplug_parse_signature(text, &s, position, into);
}

static const char *const good[] = {
    "hello()",
    "gather(source: T[m, *row], index: I[*n], mode: \"raise\" | \"wrap\" | 'clip' = \"raise\") -> "
    "T[*n, *row] where T: any, I: int32 | int64",
    "relu(x: T[...]) -> T[...] where T: floating",
    "scale(inout data: T[n], factor: T) where T: float32 | complex64",
    "select(x: T[n], mask: bool[n]) -> T[?] where T: any",
    "split(x: float32[2, n]) -> (low: float32[n], high: float32[n])",
    "f(x: float32[], n: int = -3, a: float = 1e-3, b: bool = True, s: str = 'x', y: int8[k] = "
    "None)",
    "  spaced ( x : float32 [ ... , 3 ] )  ->  float32 [ 3 , ... ]  ",
    "big(n: uint64 = 18446744073709551615)",
    "topk(x: T[n], k: int) -> (values: T[k], indices: int64[k]) where T: floating, 0 <= k <= n",
    "diff(x: T[..., n]) -> T[..., n - 1] where T: any, n > 0",
    "one_hot(i: int32[*s], depth: int) -> float32[*s, depth]",
    "csr(rows: int64[p], values: T[k], x: T[n]) -> T[p - 1] where T: any, p > 0",
    "take(x: T[*s], i: int64[*n], axis: int = 0) -> T[*s[:axis % len(s)], *n, *s[axis % len(s) + "
    "1:]] where T: any, -len(s) <= axis < len(s)",
    "full(shape: int[], value: float) -> float64[*shape] where len(shape) > 0",
    "stack(xs: T[*s][], axes: int[] = None) -> T[len(xs), *s] where T: any",
    "flat(x: T[*s], p: float = 0.5) -> T[prod(s)] where T: any, 0 <= p < 1.5",
    "f(x: int8[n, m], k: uint8 = 255, s: str = None) -> int8[min(n, m), max(n // 2, -k % 3), 2 * "
    "(n + 1)]",
    "rope(x: T[n, h], index: I[*s], m: int, shape: int[], p: float64[n] = None) where T: floating, "
    "I: "
    "integer, h in {64, 128, 2 * n}, n == 1 or n == m or m<0, 0 <= index < m, prod(shape) == n, "
    "0 <= p <= 1 or p == 2",
};

static const struct {
  const char *text;
  uint32_t position;
  const char *message;
} bad[] = {
    {"", 0, "signature: byte 0: got \"\", expected the operator's name"},
    {"f", 1, "signature: byte 1: got \"\", expected '('"},
    {"f(x float32[])", 4, "signature: byte 4: got \"float32[])\", expected ':' and a type"},
    {"f(x: float33[])", 5,
     "signature: 'float33' is neither a dtype nor bound by 'where float33: ...'; did you mean "
     "float32?"},
    {"f(x: float32[)", 13,
     "signature: byte 13: got \")\", expected a dimension (a size, a name, *name, ... or ?)"},
    {"f(x: list[float32[*s]])", 5,
     "signature: byte 5: got \"list[float32\", expected a dtype; a list of arrays is float32[n][], "
     "a "
     "list of numbers is int[]"},
    {"f(x: list[float32])", 5,
     "signature: 'list' is neither a dtype nor bound by 'where list: ...'; a list of arrays is "
     "float32[n][], a list of numbers is int[]"},
    {"f(x: float32[n)", 14, "signature: byte 14: got \")\", expected ',' or ']'"},
    {"f(x: any[n])", 5, "signature: byte 5: got \"any[n])\", expected a dtype or a type variable"},
    {"f(n: int) where n in 3", 21, "signature: byte 21: got \"3\", expected '{' and numbers"},
    {"f(n: int) where n in {}", 22, "signature: byte 22: got \"}\", expected a number or a name"},
    {"f(n: int) where n in {1", 23, "signature: byte 23: got \"\", expected ',' or '}'"},
    {"f(n: int) where n in {1} < 3", 25,
     "signature: byte 25: got \"< 3\", expected the signature's end"},
    {"f(n: int) where n > 1 or n", 26,
     "signature: byte 26: got \"\", expected ':' and dtypes, or a relation such as '<='"},
    {"f(x: int8[n], y: int8[n]) where x < y", 32,
     "signature: x < y: got two arrays, expected the elements of one"},
    {"f(x: T[n]) where T: any, 0 < x", 29,
     "signature: got x, expected array elements of a bool, integer or floating dtype in ranges"},
    {"f(x: int8[n]) -> int8[x]", 17,
     "signature: output: dimension 'x' is in no input that is always given"},
    {"f(x: int8[n]) -> y: int8[n] where y > 0", 34,
     "signature: got y, expected an integer parameter, or a dimension of an input that is always "
     "given"},
    {"f(x: T[n]) where T: float33", 20,
     "signature: byte 20: got \"float33\", expected a dtype; did you mean float32?"},
    {"f(x: T[n]) where U: int8", 17,
     "signature: byte 17: got \"U: int8\", expected a type variable used above"},
    {"f(x: T[n]) where T: int8, T: int8", 26,
     "signature: byte 26: got \"T: int8\", expected dtypes only once for each type variable"},
    {"f(x: int8[?])", 2,
     "signature: x: got '?', expected a known size (only sizes of outputs can be unknown before "
     "the run)"},
    {"f(x: int8[*a, *b])", 2,
     "signature: x: got several groups of dimensions, expected at most one of '...' and '*name' in "
     "an input"},
    {"f(x: int8[n]) -> int8[m]", 17,
     "signature: output: dimension 'm' is in no input that is always given"},
    {"f(x: int8[n]) -> int8[...]", 17,
     "signature: output: dimension '...' is in no input that is always given"},
    {"f(x: int8[n], y: int8[*n])", 14, "signature: 'n' is used both as one dimension and as '*n'"},
    {"f(x: int8[*s], s: str)", 15, "signature: 's' is used both as a parameter and as dimensions"},
    {"f(a: T) -> T[3] where T: int8 | int16", 2,
     "signature: no input array that is always given has the dtype T"},
    {"f(x: int8[n], x: int8[n])", 14, "signature: two parameters are called 'x'"},
    {"f(out: int8[n])", 2, "signature: 'out' cannot be a parameter's name, as calls use it"},
    {"f(stream: int8[n])", 2, "signature: 'stream' cannot be a parameter's name, as calls use it"},
    {"f(a: int = 1, x: int8[n])", 14,
     "signature: x: got no default, expected one (the parameter before it has one)"},
    {"f(a: int = 1.5)", 2, "signature: a: this default does not fit its type"},
    {"f(m: 'a' | 'b' = 'c')", 2, "signature: m: this default does not fit its type"},
    {"f(m: 'a' | 'b' = 1)", 2, "signature: m: this default does not fit its type"},
    {"f(x: int8[n] = 3)", 2, "signature: x: this default does not fit its type"},
    {"f(inout a: int)", 2,
     "signature: byte 2: got \"inout a: int\", expected inout only for arrays and lists of them"},
    {"f(m: 'a)", 5, "signature: byte 5: got \"'a)\", expected a closing quote"},
    {"f() -> int8", 11, "signature: byte 11: got \"\", expected '[' (outputs are arrays)"},
    {"f() x", 4, "signature: byte 4: got \"x\", expected the signature's end"},
    {"f(x: int8[n], k: int8 = 300)", 14, "signature: k: this default does not fit its type"},
    {"f(x: int8[n]) -> int8[k]", 17,
     "signature: output: dimension 'k' is in no input that is always given"},
    {"f(x: int8[n]) -> int8[k + 1]", 22,
     "signature: got k, expected an integer parameter, or a dimension of an input that is always "
     "given"},
    {"f(x: int8[n], k: float) -> int8[k]", 27, "signature: output: size 'k' is not an integer"},
    {"f(x: int8[n], k: int = None) -> int8[k]", 32,
     "signature: output: size 'k' would be unknown if its parameter is None"},
    {"f(x: int8[n], k: T) -> int8[k + 1] where T: int8 | float32", 14,
     "signature: no input array that is always given has the dtype T"},
    {"f(x: T[n], k: T) -> T[k + 1] where T: int8 | float32", 22,
     "signature: got k, expected a scalar of signed integers, of unsigned integers or of floats in "
     "arithmetic"},
    {"f(x: int8[*s]) -> int8[s + 1]", 23,
     "signature: got s, expected len, prod or [] (a group of dimensions has no size)"},
    {"f(x: int8[s]) -> int8[len(s)]", 26,
     "signature: got s, expected a group (this is one dimension)"},
    {"f(x: int8[s], y: int8[*s[1:]])", 14,
     "signature: y: '*s[1:]' is only for outputs, as it binds no dimensions"},
    {"f(xs: int8[...][])", 2,
     "signature: xs: got '...' in a list, expected '*name' ('...' is for single arrays)"},
    {"f(a: complex[])", 5,
     "signature: byte 5: got \"complex[])\", expected a list of int or float"},
    {"f(a: int[n])", 9, "signature: byte 9: got \"n])\", expected ']' (lists have no dimensions)"},
    {"f(x: int8[n]) where n", 21,
     "signature: byte 21: got \"\", expected ':' and dtypes, or a relation such as '<='"},
    {"f(x: int8[n]) where 0 <", 23, "signature: byte 23: got \"\", expected a number or a name"},
    {"f(x: int8[-----------------1])", 26,
     "signature: byte 26: got \"-1])\", expected at most 16 nested brackets and signs"},
    {"f(x: int8[n + ])", 14,
     "signature: byte 14: got \"])\", expected a dimension (a size, a name, *name, ... or ?)"},
    {"f(x: int8[((((((((((((((((1))))))))))))))))])", 26,
     "signature: byte 26: got \"1)))))))))))\", expected at most 16 nested brackets and signs"},
    {"f(x: int8[99999999999999999999])", 10,
     "signature: byte 10: got \"999999999999\", expected an integer of at most 64 bits"},
};

static void check_good(void) {
  for (size_t k = 0; k < sizeof(good) / sizeof(good[0]); k++) {
    parse(good[k], NULL, &error);
    CHECK_TEXT(error.message, "");
    CHECK_TEXT(s->text, good[k]);
    CHECK(error.status == CUPLUG_OK);
  }
}

static void check_bad(void) {
  for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
    uint32_t position = 999;
    CHECK(parse(bad[k].text, &position, &error) == CUPLUG_ERROR_VALUE);
    CHECK_TEXT(error.message, bad[k].message);
    if (position != bad[k].position) fprintf(stderr, "at %u: %s\n", position, bad[k].text);
    CHECK(position == bad[k].position);
    CHECK(parse(bad[k].text, NULL, NULL) == CUPLUG_ERROR_VALUE);
  }
}

static void check_parts(void) {
  CHECK(!parse(good[1], NULL, &error));
  CHECK_TEXT(s->name, "gather");
  CHECK(s->n_parameters == 3 && s->n_outputs == 1 && s->n_variables == 2 && s->n_dim_names == 3);
  CHECK(s->parameters[0].kind == CUPLUG_PARAMETER_ARRAY && s->parameters[0].n_dims == 2);
  CHECK(s->parameters[0].dims[0].kind == CUPLUG_DIM_NAMED);
  CHECK(s->parameters[0].dims[1].kind == CUPLUG_DIM_VARIADIC);
  CHECK(s->parameters[2].kind == CUPLUG_PARAMETER_CHOICE && s->parameters[2].n_choices == 3);
  CHECK(s->parameters[2].has_default && s->parameters[2].default_kind == CUPLUG_ARGUMENT_INT);
  CHECK(s->parameters[2].default_value.i == 0);
  CHECK_TEXT(s->parameters[2].choices[2], "clip");
  CHECK_TEXT(s->parameters[2].default_text, "\"raise\"");
  CHECK(s->parameters[3].kind == CUPLUG_PARAMETER_OUTPUT && s->parameters[3].n_dims == 2);
  CHECK(!parse(good[6], NULL, &error));
  CHECK(s->parameters[1].default_value.i == -3);
  CHECK(s->parameters[2].default_value.f == 1e-3);
  CHECK(s->parameters[3].default_value.i == 1 &&
        s->parameters[3].default_kind == CUPLUG_ARGUMENT_BOOL);
  CHECK_TEXT(s->parameters[4].default_value.s, "x");
  CHECK(s->parameters[5].default_kind == CUPLUG_ARGUMENT_NONE);
  CHECK(!parse(good[8], NULL, &error));
  CHECK(s->parameters[0].default_kind == CUPLUG_ARGUMENT_UINT);
  CHECK(s->parameters[0].default_value.u == UINT64_MAX);
}

/* Sides without a relation begin alternatives; conditions of elements name their array. */
static void check_conditions(void) {
  CHECK(!parse(good[sizeof good / sizeof *good - 1], NULL, &error));
  CHECK(s->n_conditions == 5 && s->n_element_ranges == 2);
  const cuplug_condition *c = s->conditions;
  CHECK(c[0].n_sides == 4 && c[0].sides[1].relation == CUPLUG_RELATION_IN && c[0].array == -1);
  CHECK(c[1].n_sides == 6 && c[1].sides[4].relation == CUPLUG_RELATION_NONE);
  CHECK(c[2].array == 1 && c[3].array == -1 && c[4].array == 2);
  CHECK_TEXT(c[1].text, "n == 1 or n == m or m<0");
  CHECK(c[3].sides->formula.steps->kind == CUPLUG_STEP_LIST_PRODUCT);
}

static void check_formulas(void) {
  CHECK(!parse(good[9], NULL, &error));
  CHECK(s->n_conditions == 1 && s->conditions[0].n_sides == 3 && s->has_formulas);
  CHECK_TEXT(s->conditions[0].text, "0 <= k <= n");
  CHECK(s->parameters[2].dims[0].kind == CUPLUG_DIM_FORMULA);
  CHECK(!parse(good[13], NULL, &error));
  CHECK(s->parameters[3].dims[0].kind == CUPLUG_DIM_SLICE && s->parameters[3].n_dims == 3);
  CHECK_TEXT(s->parameters[3].dims[2].text, "*s[axis % len(s) + 1:]");
  CHECK(!parse(good[14], NULL, &error));
  CHECK(s->parameters[0].kind == CUPLUG_PARAMETER_LIST);
  CHECK(s->parameters[2].dims[0].kind == CUPLUG_DIM_LISTED);
  CHECK(!parse(good[15], NULL, &error));
  CHECK(s->parameters[0].kind == CUPLUG_PARAMETER_ARRAYS && s->n_lists == 1);
  CHECK(s->parameters[1].kind == CUPLUG_PARAMETER_LIST && s->parameters[1].has_default);
  CHECK(!s->conditions[0].n_sides && !s->n_conditions);
}

/* Limits: one more than allowed is rejected, the limit itself is accepted. */
static void check_limits(void) {
  static char text[CUPLUG_MAX_SIGNATURE + 2];
  strcpy(text, "f(");
  for (int k = 0; k < CUPLUG_MAX_ARGUMENTS; k++)
    sprintf(text + strlen(text), "%sp%d: int", k ? ", " : "", k);
  strcat(text, ")");
  CHECK(!parse(text, NULL, &error));
  strcpy(strrchr(text, ')'), ", q: int)");
  CHECK(parse(text, NULL, &error));
  CHECK(strstr(error.message, "at most 64 parameters"));
  memset(text, ' ', CUPLUG_MAX_SIGNATURE);
  memcpy(text, "f(m: ", 5);
  for (int k = 0; k < 1000; k++) sprintf(text + strlen("f(m: ") + 8 * k, "'c%04d'%s", k, "|");
  memcpy(text + strlen("f(m: ") + 8 * 1000 - 1, ")", 1);
  memset(text + strlen("f(m: ") + 8 * 1000, ' ', 1);
  CHECK(!parse(text, NULL, &error));
  CHECK(s->parameters[0].n_choices == 1000 && strlen(s->text) == CUPLUG_MAX_SIGNATURE);
  text[CUPLUG_MAX_SIGNATURE] = ' ';
  CHECK(parse(text, NULL, &error));
  CHECK_TEXT(error.message, "signature: got more than 65535 bytes, expected at most 65535");
}

/* Arithmetic at the ends of 64 bits: floor division and its remainder equal Python's. */
static void check_arithmetic(void) {
  static const struct {
    int64_t a;
    int kind;
    int64_t b, result;
    const char *wrong;
  } cases[] = {
      {7, CUPLUG_STEP_REMAINDER, -3, -2, NULL},
      {-7, CUPLUG_STEP_DIVIDE, 3, -3, NULL},
      {-1, CUPLUG_STEP_REMAINDER, INT64_MIN, -1, NULL},
      {1, CUPLUG_STEP_REMAINDER, INT64_MIN, INT64_MIN + 1, NULL},
      {1, CUPLUG_STEP_DIVIDE, INT64_MIN, -1, NULL},
      {INT64_MIN, CUPLUG_STEP_REMAINDER, INT64_MAX, INT64_MAX - 1, NULL},
      {INT64_MIN, CUPLUG_STEP_REMAINDER, -1, 0, NULL},
      {INT64_MIN, CUPLUG_STEP_DIVIDE, -1, 0, "its value exceeds 64 bits"},
      {INT64_MIN, CUPLUG_STEP_MULTIPLY, -1, 0, "its value exceeds 64 bits"},
      {0, CUPLUG_STEP_SUBTRACT, INT64_MIN, 0, "its value exceeds 64 bits"},
      {1, CUPLUG_STEP_REMAINDER, 0, 0, "it divides by zero"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const cuplug_step steps[] = {{CUPLUG_STEP_NUMBER, 0, cases[k].a},
                                 {CUPLUG_STEP_NUMBER, 0, cases[k].b},
                                 {cases[k].kind, 0, 0}};
    const cuplug_formula formula = {steps, 3};
    const cuplug__values none = {.tensors = NULL};
    int64_t result = 0;
    const char *wrong = cuplug__work_out_integer(&formula, &none, &result);
    CHECK(!wrong == !cases[k].wrong && result == cases[k].result);
    if (wrong) CHECK_TEXT(wrong, cases[k].wrong);
  }
}

static void check_elements(void) {
  int64_t shape[] = {INT64_MAX, 4, 0}, result = -1;
  const cuplug_tensor x = {.ndim = 3, .shape = shape};
  const cuplug_step step = {CUPLUG_STEP_COUNT, 0, 0};
  const cuplug_formula formula = {&step, 1};
  const cuplug__values values = {.tensors = &x};
  CHECK(!cuplug__work_out_integer(&formula, &values, &result) && !result);
  shape[2] = 1;
  CHECK_TEXT(cuplug__work_out_integer(&formula, &values, &result), "its value exceeds 64 bits");
}

int main(void) {
  setlocale(LC_ALL, "");
  check_good();
  check_bad();
  check_parts();
  check_formulas();
  check_conditions();
  check_arithmetic();
  check_elements();
  check_limits();
  cuplug_free_signature(s);
  return n_failed != 0;
}

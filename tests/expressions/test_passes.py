# SPDX-License-Identifier: Apache-2.0
"""Arguments of kernels and functions: compared with their parameters, and computed."""

import re

import cuplug
import numpy as np
import pytest
from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers import jit
from cuplug._source.expressions import kernel_operator
from cuplug._source.expressions.kernel_arguments import Target


def as_numpy(x) -> np.ndarray:
    """Return a result as a NumPy array: without an array among the arguments it may be on a GPU."""
    return x.numpy() if isinstance(x, cuplug.Array) else np.asarray(x)


def test_formulas_are_of_integers():
    for scalar in ("s: float", "s: complex", "s: T", "s: str", "s: int[]"):
        with pytest.raises(
            ValueError, match="^f: arguments: got s, expected integers in arithmetic"
        ):
            cuplug.operator(
                f"f(x: T[n], {scalar}) -> y: T[n] where T: int8 | float32",
                arguments="y, n * s",
                host="",
            )


def test_many_parameters():
    listed = ", ".join(f"int a{k}" for k in range(79))
    f = cuplug.operator(
        "f(x: int8[n]) -> y: int64[]",
        arguments="y" + ", n + 1" * 79,
        host=f"void f(int64_t *y, {listed}) {{ *y = a0 + a78; }}",
    )
    assert int(f(np.zeros(4, np.int8))) == 10


def plan(text, signature="f(x: float32[n], s: float, k: int) -> y: float32[n]", **changes):
    """Return the arguments for a kernel's parameters, as NVRTC reads them."""
    try:
        jit.nvrtc.find()
    except cuplug.CompileError:
        pytest.skip("needs NVRTC")
    settings = {"arguments": "x, y, s, k, n", "kernel": "f", "function": "f", **changes}
    scope = kernel_operator.formula.read_scope(kernel_operator.signatures.parse(signature))
    made = kernel_operator.Plan(
        scope=scope,
        cuda=text,
        host=None,
        grid=("n",),
        block=("256",),
        shared="0",
        per_thread=True,
        options=(),
        **settings,
    )
    variables, dtypes = made.dtypes(Variant(0, ("float32", "float32")))
    code = kernel_operator.cuda_text(made, variables, "f cuda")
    codes = jit.compile_to_binary(code, names=["f"], name="f.cu").types["f"]
    return Target("f", "f", False, scope, dtypes).match(made.terms, codes)


def test_kernels_get_what_they_declare():
    text = "__global__ void f(const float *x, float *y, float s, short k, unsigned n) {}"
    types = {0: ""} | {x.id: x.name for x in DTYPES.values()}
    assert [(x.kind, x.operand, types[x.type]) for x in plan(text)] == [
        (0, 0, ""),
        (0, 1, ""),
        (1, 0, "float32"),
        (2, 0, "int16"),
        (2, 0, "uint32"),
    ]


def test_kernels_get_no_call():
    text = "__global__ void f(const float *x, float *y, float s, short k, unsigned n) {}"
    assert plan(text, arguments="x, y, call, s, k, n") == plan(text)


@pytest.mark.parametrize("given", ["cuplug_call *", "const cuplug_fault *", "int64_t"])
def test_functions_get_the_call_as_it_is(given):
    text = f"void f(const float *x, float *y, float s, int k, int n, {given} c) {{}}"
    message = re.escape("arguments: call: got ") + ".* in f, expected const cuplug_call \\*$"
    with pytest.raises(TypeError, match=message):
        on_host(text, arguments="x, y, s, k, n, call")(np.ones(3, np.float32), 1.5, 2)


# Parameters for x, y, s, k and n, and the messages for a kernel and for a function.
WRONG_PARAMETERS = {
    "const float *x, float *y, float s, int k": "arguments: got 5, expected 4 as f has parameters",
    "float x, float *y, float s, int k, int n": "x: got float in f, expected const float *",
    "float *x, float *y, float s, int k, int n": "x: got float * in f, expected const float *",
    "const double *x, float *y, float s, int k, int n": "x: got const double * in f, expected",
    "const float *x, double *y, float s, int k, int n": "y: got double * in f, expected float *",
    "const float *x, const float *y, float s, int k, int n": "y: got const float * in f, expected",
    "const float *x, int *y, float s, int k, int n": "y: got int * in f, expected float *",
    "const float *x, float **y, float s, int k, int n": "y: got void * * in f, expected float *",
    "const float *x, float *y, int s, int k, int n": "s: got int in f, expected float or double",
    "const float *x, float *y, float s, float k, int n": "k: got float in f, expected an integer",
    "const float *x, float *y, float s, bool k, int n": "k: got bool in f, expected an integer",
    "const float *x, float *y, float s, int k, int *n": "n: got int * in f, expected an integer",
    "const float *x, float *y, float s, int k, void *n": "n: got void * in f, expected an integer",
}


@pytest.mark.parametrize("side", ["host", "cuda"])
@pytest.mark.parametrize(("parameters", "message"), WRONG_PARAMETERS.items(), ids=str)
def test_arguments_that_do_not_fit(parameters, message, side):
    with pytest.raises(TypeError, match="^f: (arguments: )?" + re.escape(message)):
        if side == "cuda":
            plan(f"__global__ void f({parameters}) {{}}")
        else:
            on_host(f"void f({parameters}) {{}}")(np.ones(3, np.float32), 1.5, 2)


def on_host(text, signature="f(x: float32[n], s: float, k: int) -> y: float32[n]", **changes):
    return cuplug.operator(signature, host=text, **{"arguments": "x, y, s, k, n", **changes})


@pytest.mark.parametrize("returned", ["double", "void *", "int64_t", "struct { int x; }"])
def test_functions_return_a_status_or_nothing(returned):
    text = f"{returned} f(const float *x, float *y, float s, int k, int n) {{ for (;;) {{}} }}"
    with pytest.raises(TypeError, match="f: f: got that it returns .*, expected void or int"):
        on_host(text)(np.ones(3, np.float32), 1.5, 2)


def test_types_may_have_other_names():
    """Macros, typedefs and qualifiers are resolved; static functions and __restrict__ are fine."""
    text = """
#define REAL const volatile float
typedef float *out_t;
enum numbers { MANY = 1 << 20 };
static int f(REAL *__restrict__ x, out_t const y, double s, const enum numbers k, size_t n) {
  for (size_t i = 0; i < n; i++) y[i] = s * x[i] + k;
  return 0;
}"""
    assert on_host(text)(np.ones(3, np.float32), 1.5, 2).tolist() == [3.5] * 3


SOURCES = {
    "host": "int f(int64_t *y, {type} k) {{ *y = k; return 0; }}",
    "cuda": "__global__ void f(int64_t *y, {type} k) {{ *y = k; }}",
}
SIDES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def number(argument, type="int64_t", signature="f(n: int, k: int) -> y: int64[]"):
    sources = {side: text.format(type=type) for side, text in SOURCES.items()}
    return cuplug.operator(signature, arguments=f"y, {argument}", **sources, threads=1)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("type", ["int8_t", "uint8_t", "int", "unsigned", "int64_t", "uint64_t"])
def test_numbers_that_a_parameter_cannot_hold(type, side):
    f, bits = number("k", type), int(re.sub(r"\D", "", type) or 32)
    low, high = (
        (0, 2**bits - 1) if type.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    for good in (low, 1, min(high, 2**63 - 1)):
        assert int(as_numpy(f(0, good, device=side))) == good
    for bad in (low - 1, high + 1):
        if -(2**63) <= bad < 2**63:
            wanted = f"f: arguments: k: got {bad}, expected {low} to {high}, what"
            with pytest.raises(ValueError, match=re.escape(wanted)):
                f(0, bad, device=side)


@pytest.mark.parametrize("side", SIDES)
def test_numbers_are_those_of_python(side):
    for text in ("n // k", "n % k", "-n", "n - -k", "min(n, k) * max(n, k)", "n // k * k + n % k"):
        f = number(text)
        for n, k in [(7, 2), (-7, 2), (7, -2), (-7, -2), (301, -3), (0, 5), (-(2**31), -1)]:
            assert int(as_numpy(f(n, k, device=side))) == eval(text), (text, n, k)


def test_numbers_of_groups_and_lists():
    f = cuplug.operator(
        "f(x: int8[*s], l: int[]) -> y: int64[]",
        arguments="y, len(s) * prod(s) + s[-1] + len(l) * l[0]",
        host="void f(int64_t *y, int64_t k) { *y = k; }",
    )
    assert int(f(np.zeros((2, 3), np.int8), [5, 6])) == 2 * 6 + 3 + 2 * 5
    with pytest.raises(ValueError, match="its index is out of range"):
        f(np.zeros((2, 3), np.int8), [])


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("text", "wrong"),
    {
        "n // k": "n // k: it divides by zero (n = 5, k = 0)",
        "n % k": "n % k: it divides by zero (n = 5, k = 0)",
        "n * 9223372036854775807": "n * 9223372036854775807: its value exceeds 64 bits (n = 5)",
    }.items(),
)
def test_numbers_that_have_no_value(text, wrong, side):
    with pytest.raises(ValueError, match=f"^{re.escape(f'f: arguments: {wrong}')}$"):
        number(text)(5, 0, device=side)


@pytest.mark.parametrize("side", SIDES)
def test_scalars_of_each_kind(side):
    unsigned = number("k", "uint64_t", "f(k: uint64) -> y: int64[]")
    assert int(as_numpy(unsigned(2**63 + 5, device=side))) == 5 - 2**63
    flag = number("k", "bool", "f(k: bool) -> y: int64[]")
    assert int(as_numpy(flag(True, device=side))) == 1
    narrow = number("k", "float", "f(k: float) -> y: int64[]")
    assert int(as_numpy(narrow(2.5, device=side))) == 2
    with pytest.raises(ValueError, match="f: arguments: k: got 1e.300, expected a number that its"):
        narrow(1e300, device=side)
    choice = number("k", "int", 'f(k: "a" | "b") -> y: int64[]')
    assert int(as_numpy(choice("b", device=side))) == 1


def test_texts_are_for_the_host():
    host = """#include <string.h>
void f(const char *s, int8_t *y) { memcpy(y, s, 3); }"""
    f = cuplug.operator("f(s: str) -> y: int8[3]", arguments="s, y", host=host)
    assert f("abc").tobytes() == b"abc"


@pytest.mark.parametrize("side", SIDES)
def test_pointers_to_structures_get_whole_ones(side):
    text = """struct pair { float a, b; };
void f(const struct pair *x, float *y) { *y = x->a - x->b; }"""
    sources = {"host": text, "cuda": text.replace("void", "__global__ void")}
    f = cuplug.operator("f(x: float32[n]) -> y: float32[]", arguments="x, y", threads=1, **sources)
    assert float(as_numpy(f(np.float32([5, 3]), device=side))) == 2
    with pytest.raises(ValueError, match="arguments: x: got an array of 12 bytes, expected a mult"):
        f(np.ones(3, np.float32), device=side)


@pytest.mark.parametrize("side", SIDES)
def test_bool_is_a_truth_value(side):
    f = cuplug.operator(
        "f(m: T[n]) -> y: T[n] where T: bool | uint8",
        arguments="m, y, n",
        host="void f(const T *m, T *y, int n) { for (int i = 0; i < n; i++) y[i] = m[i] + m[i]; }",
        cuda="__global__ void f(const T *m, T *y, int n) "
        "{ for (int i = 0; i < n; i++) y[i] = m[i] + m[i]; }",
        threads=1,
    )
    found = as_numpy(f(np.array([True, False]), device=side))
    assert found.view(np.uint8).tolist() == [1, 0]
    assert as_numpy(f(np.uint8([1, 200]), device=side)).tolist() == [2, 144]
    invert = cuplug.operator(
        "invert(m: bool[n]) -> y: bool[n]",
        arguments="m, y, n",
        host="void invert(const bool *m, bool *y, int n) { while (n--) y[n] = !m[n]; }",
    )
    assert invert(np.array([True, False])).tolist() == [False, True]


def test_arrays_that_a_fault_does_not_know():
    f = cuplug.operator(
        "f(x: float32[n])",
        arguments="fault, x",
        host="void f(cuplug_fault *fault, const float *x)"
        " { cuplug_fault_index(fault, 77, 1, 2, 0, 3); }",
    )
    message = "^f: array 77: index 2 at position 1 is out of bounds for size 3$"
    with pytest.raises(IndexError, match=message):
        f(np.ones(2, np.float32))

# SPDX-License-Identifier: Apache-2.0
"""Names and texts of expressions that users may write: their results and errors."""

import threading

import cuplug
import numpy as np
import pytest
from backends import assert_same
from cuplug._engine.signature import formula
from cuplug._engine.signature import signature as signatures
from cuplug._engine.signature.variant import Variant
from cuplug._source.compilers import nvrtc as compilers
from cuplug._source.expressions import element_wise, element_wise_loops, plan
from expression_values import nvrtc

X = np.arange(5.0)
LEAST = "__device__ int64_t least(int64_t x, int64_t y) { return x < y ? x : y; }\n"

MACROS = ["NAN", "INFINITY", "M_PI", "EOF", "NULL", "linux", "unix", "I", "assert"]
FUNCTIONS = ["min", "abs", "exp", "real", "arg", "complex", "isnan", "load", "errno", "stdin"]


@pytest.mark.parametrize("name", [*MACROS, *FUNCTIONS, "value", "x86", "THREADS"])
def test_names_of_macros_and_functions(name):
    assert_same(cuplug.elementwise(f"f({name}: T) -> T", f"{name} * 2")(X), 2 * X)
    op = element_wise._read(f"f({name}: float32[...]) -> float32[...]", f"{name} * 2", "")
    assert nvrtc(element_wise_loops.cuda_code(op, Variant(0, ("float32",) * 2)))


@pytest.mark.parametrize("name", [*MACROS, "i", "x86"])
def test_type_variables_of_the_names_of_macros(name):
    text = f"f(x: {name}) -> {name} where {name}: any"
    assert_same(cuplug.elementwise(text, f"({name})x * 2")(X), 2 * X)
    row = f"f(x: {name}[...]) -> {name}[...] where {name}: float32"
    op = element_wise._read(row, f"({name})x * 2", "")
    assert nvrtc(element_wise_loops.cuda_code(op, Variant(0, ("float32",) * 2)))


@pytest.mark.slow
@pytest.mark.parametrize("header", ["stdint.h", "cstdint", "cub/block/block_reduce.cuh"])
def test_headers_that_know_integers(header):
    """Headers use the same types of <stdint.h>."""
    if "cub" in header and compilers.find().include[-1] == compilers.STANDARD_CPP:
        pytest.skip("CUDA's headers are not here")
    row = "f(x: int64[...]) -> int64[...]"
    op = element_wise._read(row, "least(x, INT64_MAX)", f"#include <{header}>\n{LEAST}")
    assert nvrtc(element_wise_loops.cuda_code(op, Variant(0, ("int64",) * 2)))
    kernel = f"#include <{header}>\n{LEAST}__global__ void f(int64_t *x) {{ *x = least(*x, 1); }}"
    signature = signatures.parse("f(x: int64[n]) -> y: int64[n]")
    texts = ("x", kernel, None, "f", "f")
    made = plan.Plan(formula.read_scope(signature), *texts, ("n",), ("32",), "0", True, ())
    assert nvrtc(plan.cuda_text(made, {}, "f cuda"))


@pytest.mark.parametrize("name", ["double", "for", "typeof", "class", "template", "true"])
def test_keywords_are_refused(name):
    wanted = f"f: {name}: got a keyword of C or C\\+\\+, expected another name"
    with pytest.raises(ValueError, match=wanted):
        cuplug.elementwise(f"f({name}: T) -> T", "1")
    with pytest.raises(ValueError, match=wanted):
        cuplug.reduction(f"f({name}: T) -> T", reduce="a + b")
    with pytest.raises(ValueError, match="f: cuplug_x: got a name of cuplug's own"):
        cuplug.elementwise("f(cuplug_x: T) -> T", "cuplug_x")


def test_texts_are_str():
    with pytest.raises(TypeError, match="elementwise: expression: got int, expected a str"):
        cuplug.elementwise("f(x: T) -> T", 3)
    with pytest.raises(TypeError, match="elementwise: signature: got bytes, expected a str"):
        cuplug.elementwise(b"f(x: T) -> T", "x")
    with pytest.raises(TypeError, match="reduction: reduce: got function, expected a str"):
        cuplug.reduction("f(x: T) -> T", reduce=lambda a, b: a + b)
    with pytest.raises(TypeError, match="options: got str, expected a sequence of str"):
        cuplug.elementwise("f(x: T) -> T", "x", options="--fmad=true")


def test_return_leaves_the_statements():
    f = cuplug.elementwise("f(x: T) -> y: T", "y = -1; if (x > 2) return; y = x;")
    assert f(X).tolist() == [0, 1, 2, -1, -1]
    op = element_wise._read("f(x: float32[...]) -> y: float32[...]", "y = x; return;", "")
    assert nvrtc(element_wise_loops.cuda_code(op, Variant(0, ("float32",) * 2)))


def test_outputs_that_are_not_assigned_are_zero():
    f = cuplug.elementwise("f(x: T) -> (y: T, z: complex64)", "if (x > 2) y = x;")
    y, z = f(X, out=(np.ones(5), np.ones(5, np.complex64)))
    assert y.tolist() == [0, 0, 0, 3, 4]
    assert z.tolist() == [0] * 5


PREAMBLE = """#include <float.h>
#define SQUARE(x) \\
  ((x) * \\
   (x))
#if FLT_DIG == 7
wrong
#else
__device__ T two(void) { return 2; }
#endif
"""


def test_preambles_have_directives():
    f = cuplug.elementwise("f(x: T) -> T", "SQUARE(x) + two()", preamble=PREAMBLE)
    assert_same(f(X), X * X + 2)
    included = PREAMBLE.replace("float.h", "cuda_fp16.h").replace("FLT_DIG", "CUPLUG_NO_MACRO")
    text = "#ifndef __CUDACC__\n#include <no_such_file.h>\n#endif\n" + included
    row = "f(x: T[...]) -> T[...] where T: float32"
    op = element_wise._read(row, "SQUARE(x) + two() + __half2float(__half())", text)
    assert nvrtc(element_wise_loops.cuda_code(op, Variant(0, ("float32",) * 2)))


def shown(text, preamble=""):
    f = cuplug.elementwise("f(x: T) -> T", text, preamble=preamble)
    with pytest.raises(cuplug.CompileError) as raised:
        f(X)
    message = str(raised.value)
    assert "generated code" not in message
    return message.splitlines()


@pytest.mark.parametrize(
    "text",
    [
        "x + größe + unknown".replace("größe", '"größe"[0]'),
        "x\t+ unknown",
        "\n\n  x - unknown",
        "unknown",
    ]
    + [" + ".join(["x"] * n) + " + unknown + x * x" for n in (30, 2000)],
    ids=range(6),
)
def test_errors_point_at_the_place(text):
    head, line, caret, *_ = shown(text)
    assert head.startswith("f: line ")
    assert "unknown" in head
    assert line[caret.index("^") :].startswith("unknown")
    assert len(line) < 100


def test_errors_of_texts_that_are_not_whole():
    assert shown("0); } int other(void) { return (1")[1] == "> f: 0); } int other(void) { return (1"
    assert shown("h(x)", "__device__ T h(T x) {")[1:] == [
        "> f: h(x)",
        "> f preamble: __device__ T h(T x) {",
    ]
    head = shown("x /* open")[0]  # of gcc, or of clang
    assert head.replace("/* ", "") == "f: line 1: unterminated comment"
    assert shown("größe")[1] == "> 1 | größe"


def test_long_expressions():
    f = cuplug.elementwise("f(x: T) -> T", "(" * 200 + " + ".join(["x"] * 5000) + ")" * 200)
    assert_same(f(X), 5000 * X)


def test_first_calls_of_many_threads():
    text = f"x + {np.random.default_rng().integers(1 << 40)}.0 * 0"
    f = cuplug.elementwise("f(x: T) -> T", text)
    results, start = [], threading.Barrier(8)

    def call():
        start.wait()
        results.append(f(X))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all((result == X).all() for result in results)


@pytest.mark.parametrize("name", ["n", "k", "a", "at", "begin", "first", "m", "given", "u", "call"])
def test_any_name_may_be_used(name):
    f = cuplug.elementwise(f"f({name}: T, number: T) -> T", f"{name} * number")
    assert_same(f(X, 3), 3 * X)
    op = element_wise._read(f"f({name}: float32[...], b: float32) -> float32[...]", f"{name}*b", "")
    code = element_wise_loops.cuda_code(op, Variant(0, ("float32",) * 2, width=4, unroll=4))
    assert nvrtc(code)


def test_compiler_errors_show_the_users_line():
    f = cuplug.elementwise("wrong(x: T) -> y: T", "T z = x;\ny = z + unknown;")
    for _ in range(2):
        with pytest.raises(cuplug.CompileError) as raised:
            f(np.zeros(3))
        lines = str(raised.value).splitlines()
        assert lines[0].startswith("wrong: line 2: ")
        assert "unknown" in lines[0]
        assert lines[1] == "> 2 | y = z + unknown;"
        assert lines[2].index("^") == lines[1].index("unknown")
    unclosed = cuplug.elementwise("unclosed(x: T) -> T", "(x + 1")
    with pytest.raises(cuplug.CompileError, match=r"unclosed: line 1: "):
        unclosed(np.zeros(3))

# SPDX-License-Identifier: Apache-2.0
"""Adopted functions: the numbers that they receive, and their results."""

import pickle

import cuplug
import numpy as np
import pytest
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
int Succeeds(int n);
float Dot(const float *x, const float *y, unsigned n);
unsigned long Checksum(const uint8_t *x, unsigned long n);
void Numbers(int64_t *out, int64_t a, uint64_t b, short c);
"""


@pytest.fixture
def library(build_plugin):
    return build_plugin(FIXTURES / "plain.c", "plain", extra=["-fvisibility=default"])


def adopt(library, **operators):
    return cuplug.adopt(library, {"prototypes": PROTOTYPES, **operators})


def numbers(library, a="n", b="k", c="0", scalar="k: int"):
    arguments = f"y, {a}, {b}, {c}"
    described = {
        "signature": f"Numbers(n: int, {scalar}) -> y: int64[3]",
        "arguments": arguments,
    }
    return adopt(library, Numbers=described).Numbers


def test_numbers_are_worked_out_by_the_core(library):
    assert numbers(library, "n // k", "n % k + 10", "-n")(-7, -3).tolist() == [2, 9, 7]
    assert numbers(library, scalar="k: uint64")(1, 2**64 - 1).tolist() == [1, -1, 0]
    wrong = {
        ("n // k", 0): r"arguments: n // k: it divides by zero \(n = 5, k = 0\)",
        ("n * 9223372036854775807", 1): "its value exceeds 64 bits",
    }
    for (text, k), message in wrong.items():
        with pytest.raises(ValueError, match=f"^Numbers: .*{message}"):
            numbers(library, a=text)(5, k)
    with pytest.raises(ValueError, match="Numbers: .*k"):
        numbers(library)(1, -1)
    with pytest.raises(
        ValueError, match="^Numbers: arguments: .*expected an integer of at most 64"
    ):
        numbers(library, a="9" * 20)
    with pytest.raises(
        ValueError, match="^Numbers: arguments: .*expected a dimension that the array has"
    ):
        numbers(library, a="size(y, 7)")


def test_one_may_be_success(library):
    one = {"signature": "Succeeds(n: int)", "arguments": "n", "returns": "one"}
    succeeds = adopt(library, Succeeds=one).Succeeds
    assert succeeds(3) is None
    with pytest.raises(cuplug.PluginError, match="Succeeds: result: got 0, expected 1"):
        succeeds(0)


def test_a_program_whose_main_is_called(build_plugin):
    code = '#include <stdio.h>\nint main(void) { puts("hello"); return 1; }\n'
    hello = build_plugin(code, "hello", extra=["-fvisibility=default"])
    main = {"signature": "main() -> status: int32[]", "arguments": "", "returns": "status"}
    result = cuplug.adopt(hello, {"prototypes": "int main(void);", "main": main}).main()
    assert (result.shape, int(result)) == ((), 1)


DOT = {
    "function": "Dot",
    "signature": "dot(x: float32[n], y: float32[n]) -> sum: float32[]",
    "arguments": "x, y, n",
    "returns": "sum",
}


def returning(output):
    return {"signature": DOT["signature"].replace("float32[]", output)}


CHECKSUM = {
    "signature": "Checksum(x: uint8[n]) -> sum: uint64[]",
    "arguments": "x, n",
    "returns": "sum",
}


def test_what_a_function_returns_can_be_an_output(library):
    operators = adopt(library, dot=DOT, Checksum=CHECKSUM)
    found = operators.dot(np.float32([1, 2, 3]), np.float32([4, 5, 6]))
    assert found.dtype == np.float32
    assert found.shape == ()
    assert found == 32
    assert int(operators.Checksum(np.uint8([250, 250]))) == 2**63 + 500
    assert operators.dot(np.ones(0, np.float32), np.ones(0, np.float32)) == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"arguments": "x, y, n", "returns": "ignored"}, "got no sum, expected every output"),
        ({"returns": "product"}, "returns: got 'product', expected 'zero' or .* or 'sum'"),
        ({"returns": "zero"}, "got float.*, expected int or void, or an output that `returns`"),
        (returning("float64[]"), "got float for float64"),
        (returning("int32[]"), "got float for int32"),
        (returning("float32[1]"), r"float32\[1\], expected"),
        ({"place": "cuda"}, "and a function for the host"),
        ({"arguments": "x, sum, n"}, "arguments: got sum, expected it left out: it is returned"),
    ],
)  # fmt: skip
def test_returned_outputs_are_checked(library, changed, message):
    with pytest.raises(ValueError, match=f"dot: .*{message}"):
        adopt(library, dot={**DOT, **changed})


def test_libraries_that_the_dynamic_linker_finds():
    described = {"signature": "cbrt(x: float) -> y: float64[]", "arguments": "x", "returns": "y"}
    libm = cuplug.adopt("libm.so.6", {"prototypes": "double cbrt(double);", "cbrt": described})
    assert round(float(libm.cbrt(27)), 9) == 3
    assert pickle.loads(pickle.dumps(libm.cbrt)) is libm.cbrt
    with pytest.raises(cuplug.PluginError, match="^libnowhere.so.1: "):
        cuplug.adopt(
            "libnowhere.so.1",
            {"prototypes": "int f();", "f": {"signature": "f()", "arguments": ""}},
        )

# SPDX-License-Identifier: Apache-2.0
"""Dtypes as arguments, which decide the dtypes of outputs."""

import inspect
import textwrap

import cuplug
import numpy as np
import pytest
from cuplug import testing
from cuplug._engine.signature.signature import parse, signatures_of
from cuplug._engine.signature.spec import ArraySpec
from cuplug._engine.signature.symbolic import NoMatch, walk
from cuplug._integration.author.bench_arguments import sized_arguments
from hypothesis import given, settings
from places import FIXTURES

NAMES = ("float32", "float64", "int32")


@pytest.fixture(scope="session")
def dtypes_file(build_plugin):
    return build_plugin(FIXTURES / "dtypes.c", "dtypes", defines=["CUPLUG_ARCHITECTURES=900"])


@pytest.fixture(scope="module")
def ops(dtypes_file):
    return cuplug.load(dtypes_file)


X = np.array([[1.5, -2.5, 3.0]])


@pytest.mark.parametrize("name", NAMES)
def test_all_that_names_a_dtype(ops, name):
    for dtype in (name, np.dtype(name), np.dtype(name).type):
        for _ in range(2):
            y = ops.cast(X, dtype)
            assert y.dtype == name
            assert y.tolist() == X.astype(name).tolist()
    assert ops.cast(X, dtype=name, out=y) is y


def test_types_of_python(ops):
    assert ops.cast(X, float).dtype == np.float64
    with pytest.raises(TypeError, match=r"^cast: dtype: got the dtype int64, expected int32 [|] "):
        ops.cast(X, int)


def test_defaults(ops):
    assert ops.cast(X).dtype == np.float32
    assert inspect.signature(ops.cast).parameters["dtype"].default == "float32"
    assert ops.cast(cuplug.asarray(X)).dtype == np.float32


def test_the_dtype_of_an_array_by_default(ops):
    parameter = inspect.signature(ops.recast).parameters["to"]
    assert parameter.default == "T"
    for _ in range(2):
        for dtype in ("float32", "float64"):
            x = X.astype(dtype)
            for to in ({}, {"to": "T"}, {"to": dtype}):
                assert ops.recast(x, **to).dtype == dtype
                spec = ArraySpec(dtype, (2,))
                found = walk(signatures_of(ops.recast), [spec, *to.values()]).outputs[0]
                assert found.dtype == dtype
            assert ops.recast.infer(ArraySpec(dtype, (2,))).outputs[0].dtype == dtype
    integers = X.astype("int32")
    message = r"^recast: to: got the dtype int32, expected float32 [|] float64$"
    with pytest.raises(TypeError, match=message):
        ops.recast(integers)
    assert ops.recast(integers, "float64").tolist() == [[1, -2, 3]]
    with pytest.raises(TypeError, match='to: got the string "U", expected float32'):
        ops.recast(X, "U")


def test_dtypes_in_turn(ops):
    """The cached match of one call does not affect the next."""
    for name in [*NAMES, *reversed(NAMES)] * 3:
        for dtype in (name, np.dtype(name)):
            assert ops.cast(X, dtype).dtype == name
        assert ops.cast(X).dtype == np.float32


def test_scalars_of_the_dtype(ops):
    assert ops.fill(2, "int32", 3).tolist() == [3, 3]
    assert ops.fill(2, np.float64, 2.5).dtype == np.float64
    with pytest.raises(TypeError, match="^fill: value: got the float 2.5, expected a scalar of"):
        ops.fill(2, "int32", 2.5)


def test_an_array_of_the_dtype(ops):
    assert ops.same(X[0]).tolist() == X[0].tolist()
    message = r"^same: to: got the dtype float32, expected float64 \(as in x\)"
    with pytest.raises(TypeError, match=message):
        ops.same(X[0], np.float32)


def test_overloads(ops):
    assert [int(ops.which(x)) for x in ("float16", np.int8, 3, "int64", np.float64)] == [
        1,
        2,
        2,
        2,
        1,
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("flaot32", 'got the string "flaot32", expected .*; did you mean float32[?]$'),
        ("int16", 'got the string "int16", expected int32 [|] float32 [|] float64$'),
        ("any", 'got the string "any", expected int32 [|] float32 [|] float64$'),
        (np.int16, "got the dtype int16, expected int32 [|] float32 [|] float64$"),
        (np.dtype(">f4"), "got dtype >f4, expected"),
        (np.dtype("datetime64[s]"), r"got dtype datetime64\[s\], expected"),
        (3, "got the integer 3, expected"),
        (None, "got None, expected"),
        (dict, "got type dict, expected"),
    ],
)
def test_what_is_no_allowed_dtype(ops, given, message):
    with pytest.raises(TypeError, match=f"^cast: dtype: {message}"):
        ops.cast(X, given)


def test_a_dtype_is_no_number(ops):
    with pytest.raises(
        TypeError, match="n: got the dtype float32, expected a scalar of dtype int6"
    ):
        ops.fill(np.float32, "int32", 1)


def test_infer(ops):
    assert ops.cast.infer(ArraySpec("float64", (2, 3)), "int32").outputs == (
        ArraySpec("int32", (2, 3)),
    )
    rows = signatures_of(ops.cast)
    spec = ArraySpec("float64", (2,))
    for dtype in ("int32", np.int32, np.dtype("int32")):
        assert walk(rows, [spec, dtype]).outputs[0].dtype == "int32"
    assert walk(rows, [spec]).outputs[0].dtype == "float32"
    with pytest.raises(NoMatch, match="dtype: "):
        walk(rows, [spec, "int16"])


def test_arguments_for_tests(ops):
    seen = set()

    @settings(max_examples=60, database=None, derandomize=True)
    @given(testing.arguments(ops.cast))
    def check(arguments):
        y = ops.cast(**arguments)
        seen.add(y.dtype.name)
        np.testing.assert_array_equal(y, arguments["x"].astype(y.dtype))

    check()
    assert seen == {*NAMES}

    @settings(max_examples=60, database=None, derandomize=True)
    @given(testing.arguments(ops.recast))
    def check_default(arguments):
        y = ops.recast(**arguments)
        seen.add("to" in arguments)
        assert y.dtype == arguments.get("to", arguments["x"].dtype)

    check_default()
    assert seen >= {True, False}
    sized = sized_arguments(parse(ops.fill.signatures[0]), 4000)
    assert sized["to"] == "float32"


def test_on_a_gpu(run_fake, dtypes_file):
    body = """
    for name in ("float64", "int32"):
        x = np.arange(5, dtype=np.float32)
        y = gpu.cast(x, name, device="cuda")
        assert y.dtype == name and y.tolist() == [0, 1, 2, 3, 4]
        y = gpu.cast(cuplug.asarray(x, device="cuda"), np.dtype(name))
        assert y.dtype == name and y.numpy().tolist() == [0, 1, 2, 3, 4]
    assert gpu.recast(cuplug.asarray(x, device="cuda")).dtype == "float32"
    assert counts().misuses == 0
    """
    run_fake(textwrap.dedent(body), plugin=dtypes_file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f(x: T[n], to: dtype) -> to[n] where T: any", "'to' is neither a dtype nor bound by"),
        ("f(to: dtype = int8) -> to[3] where to: floating", "to: this default does not fit its"),
        ("f(to: dtype = None) -> to[3] where to: any", "expected a default"),
        ("f(to: dtype = floating) -> to[3] where to: any", "expected a default"),
        ("f(x: T[n], to: dtype = U) -> to[n] where T: any, to: any", "or a type variable above"),
        ("f(x: T[n], to: dtype = T) -> to[n] where T: integer, to: floating", "to: this default"),
        ("f(x: T[n] = None, to: dtype = T) -> to[3] where T: any, to: any", "has the dtype T"),
        ("f(to: dtype = to) -> to[3] where to: any", "to: this default does not fit its type"),
        ("f(a: to, to: dtype) -> to[3] where to: any", "has the dtype to"),
        ("f(int8: dtype) -> int8[3]", "expected a name that is not a dtype"),
        ("f(to: dtype, n: int) -> float32[to] where to: any", "got to, expected a scalar"),
        ("f(to: dtype) where to: flaot32", "expected a dtype"),
    ],
)
def test_ill_formed(text, message):
    with pytest.raises(cuplug.SignatureError, match=message):
        parse(text)


def test_parsed():
    x = parse("f(to: dtype = int8) -> to[3] where to: int8 | int16").parameters[0]
    assert (x.kind, x.default, x.default_text) == ("dtype", "int8", "int8")
    x = parse("f(x: dtype[n]) -> dtype[n] where dtype: floating").parameters[0]  # a type variable
    assert x.kind == "array"


def test_expressions_take_none():
    text = "cast(x: T[...], to: dtype) -> to[...] where T: float32, to: float32 | float64"
    with pytest.raises(ValueError, match="cast: to: got a dtype, expected an array or a number"):
        cuplug.elementwise(text, "x")

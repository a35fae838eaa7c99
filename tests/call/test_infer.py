# SPDX-License-Identifier: Apache-2.0
"""`Operator.infer` and the walk over a signature: the outputs of a call, without a call."""

import cuplug
import numpy as np
import pytest
from cuplug import ArraySpec
from cuplug._engine.base.dtypes import BY_ID
from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._engine.signature.signature import parse
from cuplug._engine.signature.symbolic import NoMatch, Sizes, walk
from cuplug.ops import gather, relu, scale
from cuplug.testing import arguments
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from places import FIXTURES
from random_rows import random_plugin
from raw_plugins import named_plugin, quoted
from selection import runs_all

N_RANDOM = 60


@pytest.fixture(scope="module")
def operators(build_plugin, tmp_path_factory):
    source = tmp_path_factory.mktemp("rows") / "random_rows.c"
    source.write_text(random_plugin(N_RANDOM))
    drawn = cuplug.load(build_plugin(source, "random_rows")).operators
    written = cuplug.load(build_plugin(FIXTURES / "language.c", "language")).operators
    return (*drawn, *(op for op in written if op.name != "absent"), relu, gather, scale)


def dtype_name(array):
    (name,) = (x.name for x in BY_ID.values() if numpy_dtype(x.name) == array.dtype)
    return name


def spec_of(value):
    if isinstance(value, (list, tuple)):
        return [spec_of(item) for item in value]
    return ArraySpec(dtype_name(value), value.shape) if isinstance(value, np.ndarray) else value


def in_order(operator, given, row):
    """Return arguments for a walk: ones that are omitted in between have their defaults."""
    parameters = parse(operator.signatures[row]).parameters
    last = max((k for k, x in enumerate(parameters) if x.name in given), default=-1)
    return [given.get(x.name, x.default) for x in parameters[: last + 1]]


def agrees(spec, array):
    sizes = zip(spec.shape, array.shape, strict=True)
    return spec.dtype == dtype_name(array) and all(a in (b, -1) for a, b in sizes)


@settings(
    max_examples=2000 if runs_all() else 150,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
    deadline=None,
)
@given(st.data())
def test_is_what_a_call_gives_and_so_is_the_walk(operators, data):
    operator = data.draw(st.sampled_from(operators))
    given = data.draw(arguments(operator))
    specs = {name: spec_of(value) for name, value in given.items()}
    inferred = operator.infer(**specs)
    assert inferred == operator.infer(**given)
    rows = [parse(text) for text in operator.signatures]
    walked = walk(rows, in_order(operator, specs, inferred.overload))
    assert (walked.row, walked.outputs) == inferred
    try:
        result = operator(**given)
    except IndexError:  # gather with an index out of range, which sizes do not show
        assume(False)
    outputs = result if isinstance(result, tuple) else () if result is None else (result,)
    assert len(outputs) == len(inferred.outputs)
    assert all(map(agrees, inferred.outputs, outputs))


@settings(max_examples=1000 if runs_all() else 100, deadline=None)
@given(st.data())
def test_refuses_what_the_walk_refuses(operators, data):
    """Arguments that are drawn for one operator are passed to another."""
    one, other = (data.draw(st.sampled_from(operators)) for _ in range(2))
    given = [spec_of(value) for value in data.draw(arguments(one)).values()]
    rows = [parse(text) for text in other.signatures]
    try:
        inferred = other.infer(*given)
    except (TypeError, ValueError):
        with pytest.raises(NoMatch):
            walk(rows, given)
    else:
        walked = walk(rows, given)
        assert (walked.row, walked.outputs) == inferred


def test_a_number_for_a_list_in_the_second_row(tmp_path):
    rows = {
        "SIGNATURE": quoted("numbered(x: float32[n]) -> float32[n]"),
        "SECOND_SIGNATURE": quoted("numbered(x: int64[n], axes: int[] = None) -> int64[n]"),
    }
    (op,) = cuplug.load(named_plugin(tmp_path / "libnumbered.so", "numbered", **rows)).operators
    assert op.infer(ArraySpec("int64", (3,)), 0).overload == 1


def test_nothing_is_loaded_and_no_memory_is_needed(build_plugin):
    (op,) = (
        x
        for x in cuplug.load(build_plugin(FIXTURES / "language.c", "unloaded")).operators
        if x.name == "diff"
    )
    assert op.infer(ArraySpec("float16", (1 << 40, 5))).outputs == (
        ArraySpec("float16", (1 << 40, 4)),
    )
    assert not op.loaded


def test_the_row_and_its_properties():
    inferred = gather.infer(ArraySpec("float32", (4, 3)), 1)
    assert parse(gather.signatures[inferred.overload]).parameters[1].kind == "scalar"
    assert inferred.outputs == (ArraySpec("float32", (3,)),)
    assert inferred._fields == ("overload", "outputs")


def test_dtypes_of_other_libraries():
    assert ArraySpec(np.dtype("float32"), [2]) == ArraySpec("float32", (2,))
    assert ArraySpec("torch.bfloat16", ()).dtype == "bfloat16"
    with pytest.raises(
        TypeError, match=r"^ArraySpec: dtype: got 'datetime64', expected one of bool"
    ):
        ArraySpec("datetime64", (1,))


@pytest.mark.parametrize(
    ("call", "exception", "message"),
    [
        (lambda: relu.infer(), TypeError, "^relu: x: got nothing, expected T"),
        (lambda: relu.infer(3), TypeError, "^relu: x: got the integer 3"),
        (lambda: relu.infer(ArraySpec("bool", (2,))), TypeError, "^relu: x: got bool"),
        (
            lambda: relu.infer(ArraySpec("float32", (-2,))),
            ValueError,
            "expected sizes of at least 0",
        ),
        (lambda: relu.infer(ArraySpec("float32", (1,) * 65)), ValueError, "expected 0 to 64 dim"),
        (lambda: relu.infer(ArraySpec("float32", ("a",))), TypeError, "'str'"),
        (lambda: relu.infer(ArraySpec("float32", (2**63,))), OverflowError, "too large"),
        (
            lambda: relu.infer(np.ones(2), out=np.ones(2)),
            TypeError,
            "^relu: infer: got out, exp",
        ),
        (lambda: relu.infer(*range(70)), TypeError, "^relu: got 65 arguments, expected at most 64"),
        (lambda: relu(ArraySpec("float32", (2,))), TypeError, "^relu: x: got an ArraySpec, which"),
    ],
)
def test_refusals(call, exception, message):
    with pytest.raises(exception, match=message):
        call()


class Symbol:
    """A size that compares by its name, and records comparisons."""

    def __init__(self, name, asked):
        self.name, self.asked = name, asked

    def __eq__(self, other):
        self.asked.append((self.name, getattr(other, "name", other)))
        return isinstance(other, Symbol) and self.name == other.name

    def __ge__(self, other):
        return True

    def __add__(self, other):
        assert type(other) is int  # as required by sympy symbols
        return Symbol(f"{self.name} + {other}", self.asked)

    __hash__ = None


def test_symbolic_sizes_are_passed_on():
    asked = []
    m, n, unknown = (Symbol(name, asked) for name in ("m", "n", "unknown"))
    specs = [ArraySpec("float32", (m, 3)), ArraySpec("int64", (n,))]
    walked = walk([parse(text) for text in gather.signatures], specs)
    assert [x.shape for x in walked.outputs] == [(n, 3)]
    assert walked.names["m"] is m

    class Unknown(Sizes):
        def unknown(self):
            return unknown

    rows = [parse("select(x: T[n], mask: bool[n]) -> T[?] where T: any")]
    specs = [ArraySpec("float32", (m,)), ArraySpec("bool", (m,))]
    assert walk(rows, specs, Unknown()).outputs[0].shape[0] is unknown
    asked.clear()
    with pytest.raises(NoMatch, match="^select: mask: got sizes"):
        walk(rows, [specs[0], ArraySpec("bool", (n,))])
    assert asked == [("n", "m")]


@pytest.mark.parametrize("include", [False, True])
def test_a_truth_value_counts_beside_symbols(include):
    rows = [parse("sums(x: float32[n], include: bool) -> float32[n + include]")]
    (output,) = walk(rows, [ArraySpec("float32", (Symbol("n", []),)), include]).outputs
    assert output.shape[0].name == f"n + {int(include)}"


def test_a_call_that_a_library_takes(monkeypatch):
    """The module cuplug.<library> handles it if the library is loaded; otherwise, a message."""
    import sys
    from types import ModuleType

    class Traced:
        ndim = 1

    Traced.__name__, Traced.__module__ = "Array", "dask.array.core"
    with pytest.raises(TypeError, match="^relu: x: got a dask array"):
        relu(Traced())
    module = ModuleType("cuplug.dask")
    module.hand_on = lambda operator, args, keywords: (operator.name, len(args), [*keywords])
    monkeypatch.setitem(sys.modules, "dask", ModuleType("dask"))
    monkeypatch.setitem(sys.modules, "cuplug.dask", module)
    assert relu(Traced()) == ("relu", 1, [])
    assert gather(np.ones(3), Traced(), mode="clip") == ("gather", 2, ["mode"])
    assert scale(data=[Traced()], factor=2.0) == ("scale", 0, ["data", "factor"])
    module.hand_on = lambda *call: NotImplemented
    with pytest.raises(TypeError, match="^relu: x: got a dask array"):
        relu(Traced())

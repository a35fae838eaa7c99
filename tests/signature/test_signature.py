# SPDX-License-Identifier: Apache-2.0
"""Signatures in Python. tests/signature/test_signature.c tests the grammar."""

import inspect
import pickle
import re

import cuplug
import pytest
from cuplug._engine.signature import formula
from cuplug._engine.signature.call_signature import to_inspect
from cuplug._engine.signature.evaluate import conditions_hold, shape_of
from cuplug._engine.signature.short_form import expand
from cuplug._engine.signature.signature import SignatureError, parse
from hypothesis import example, given
from hypothesis import strategies as st

GATHER = (
    'gather(source: T[m, *row], index: I[*n], mode: "raise" | "wrap" = "raise") -> T[*n, *row] '
    "where T: float32 | float64, I: int32 | int64"
)


def test_fields():
    signature = parse(GATHER)
    source, index, mode = signature.parameters
    (output,) = signature.outputs
    assert (signature.name, signature.text) == ("gather", GATHER)
    assert [x.name for x in (source, index, mode, output)] == ["source", "index", "mode", ""]
    assert [x.kind for x in (source, index, mode, output)] == ["array", "array", "choice", "output"]
    assert signature.dtypes(source) == signature.dtypes(output) == ("float32", "float64")
    assert signature.dtypes(mode) == ()
    assert [signature.shape(x) for x in signature.arrays] == ["m, *row", "*n", "*n, *row"]
    assert (mode.choices, mode.default, mode.default_text) == (
        ("raise", "wrap"),
        "raise",
        '"raise"',
    )
    assert not source.has_default


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("x: float = 0.5", 0.5),
        ("x: int = -3", -3),
        ("x: uint64 = 18446744073709551615", 2**64 - 1),
        ("x: bool = True", True),
        ('x: str = "a b"', "a b"),
        ("x: float32[n] = None", None),
        ('x: "a" | "b" = "b"', "b"),
    ],
)
def test_defaults(text, default):
    (x,) = parse(f"f({text})").parameters
    assert x.has_default
    assert x.default == default
    assert type(x.default) is type(default)
    assert f"= {x.default_text}" in text


def test_dimensions_and_outputs():
    signature = parse("f(inout x: float32[3, n, ...], y: bool[n]) -> (a: int8[?], b: float32[n])")
    assert [signature.shape(x) for x in signature.arrays] == ["3, n, ...", "n", "?", "n"]
    assert [x.kind for x in signature.arrays] == ["inout", "array", "output", "output"]
    assert [x.name for x in signature.outputs] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("f", 1),
        ("f(x)", 3),
        ("f(x: float33[n])", 5),
        ("f(x: float32[n)", 14),
        ("f(x: T[n])", 5),
        ('f(x: "a" | b)', 11),
        ("f() -> float32", 14),
        ("f() trailing", 4),
        ("f(" + "a" * 64 + ": int)", 2),
        ("f(x: int) " + " " * 65535, 0),
    ],
)
def test_position_of_an_error(text, position):
    with pytest.raises(SignatureError) as raised:
        parse(text)
    assert raised.value.position == position
    assert isinstance(raised.value, ValueError)
    assert raised.value.text == text
    copy = pickle.loads(pickle.dumps(raised.value))
    assert (str(copy), copy.position, copy.text) == (str(raised.value), position, text)


@pytest.mark.parametrize(
    ("make", "text", "line", "column"),
    [
        (parse, "f(x: float32[n)", "f(x: float32[n)", 14),
        (parse, "é(x)", "é(x)", 0),
        (parse, "f(x: int) é", "f(x: int) é", 10),
        (parse, "f(x: int\n)", "f(x: int", 8),
        (parse, "f(" + "x: int, " * 30 + "y)", None, None),
        (expand, "f(x: T -> T", "f(x: T -> T", 7),
        (expand, "f(x: T, slope: T) -> flaot32", "f(x: T, slope: T) -> flaot32", 21),
        (expand, "f(x:T,y:flaot32)->T", "f(x:T,y:flaot32)->T", 8),
        (expand, "f(x: T) -> (y: T, 2)", "f(x: T) -> (y: T, 2)", 18),
        (expand, "f(inout x: T, a: T) -> (T, y: U)", "f(inout x: T, a: T) -> (T, y: U)", 27),
        (expand, "f(x: int8) -> int8 where  k > 0", "f(x: int8) -> int8 where  k > 0", 26),
        (expand, f"f({', '.join(f'x{k}: T' for k in range(7))}) -> T", None, 49),
        (expand, "f(k: int) -> T", "f(k: int) -> T", 14),
        (parse, "f(x: int8[n], y: int8[*n])", "f(x: int8[n], y: int8[*n])", 14),
    ],
)
def test_messages_mark_the_place(make, text, line, column):
    with pytest.raises(cuplug.SignatureError) as raised:
        make(text)
    message, shown, caret = str(raised.value).rsplit("\n", 2)
    assert message.startswith("signature: ")
    assert "where T" not in str(raised.value)
    if line is None:
        assert shown[caret.index("^")] in "),"
        assert len(shown) < 104
    else:
        assert (shown, caret) == (f"  {line}", f"  {' ' * column}^")


TERMS = formula.read_scope(
    parse('g(x: T[n, ...], k: int, p: float, m: "a" | "b", xs: T[*s][]) -> y: T[n] where T: any')
)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("q", 0, "got q, expected a parameter, or a dimension of an input that is always given"),
        ("x, n +", 6, 'byte 6: got "", expected a name or a number'),
        ("x,\n q + 1", 4, "got q, expected a parameter"),
        ("n * p", 4, "got p, expected integers in arithmetic"),
        ("k, 2.5 * n", 3, "expected an integer"),
        ("size(y, 1)", 8, "expected a dimension that the array has"),
        ("size(k)", 5, "expected an array"),
        ("n n", 2, "expected ','"),
        ("x * 2", 0, "got x, expected a parameter, or a dimension"),
        ("k\0", 1, "got a zero byte"),
        (f"{'(' * 20}k", 16, "expected at most 16 nested brackets"),
        ("n" * 70_000, 0, "got more than 65535 bytes"),
    ],
)
def test_terms_that_are_refused_have_a_place(text, position, message):
    with pytest.raises(SignatureError) as raised:
        TERMS.terms(text, "g: arguments", ("fault",))
    assert re.match(f"g: arguments: .*{re.escape(message)}", str(raised.value))
    assert (raised.value.position, raised.value.text) == (position, text)


def test_terms():
    text = " x,(p), (k), m, fault,\tn//2, size(x, -1),\nsize(y)*len(s), prod(s), len(xs) ,"
    found = TERMS.terms(text, "g: arguments", ("call", "fault"))
    texts = ["x", "p", "k", "m", "fault", "n//2", "size(x, -1)", "size(y)*len(s)"]
    assert [x.text for x in found] == [*texts, "prod(s)", "len(xs)"]
    assert [len(x.steps) for x in found] == [0, 0, 1, 1, 0, 3, 1, 3, 1, 1]
    assert TERMS.terms("", "g: arguments") == []
    assert [x.text for x in found if formula.counts_loops([x], TERMS)] == ["size(x, -1)"]
    with pytest.raises(SignatureError, match="g: grid: got x, expected a number"):
        TERMS.number("x", "g: grid")
    with pytest.raises(ValueError, match="g: grid: got 'n, n', expected one number"):
        TERMS.number("n, n", "g: grid")


@given(st.text(alphabet="fxT(){}[]:,|=-> \"'0123456789.?*nint32floatwhereNone", max_size=80))
@example("f(x: float32[n]) -> float32[n]")
def test_any_text_parses_or_is_refused_with_a_place(text):
    signature = refusal = None
    try:
        signature = parse(text)
    except SignatureError as error:
        refusal = error
    if refusal:
        assert 0 <= refusal.position <= len(text.encode())
        assert str(refusal)
    else:
        assert text.strip().startswith(signature.name)
        assert parse(text) == signature


def test_for_the_module_inspect():
    signature = to_inspect([GATHER])
    assert str(signature) == "(source, index, mode='raise', *, out=None, device=None, stream=None)"
    assert signature.bind(1, 2, mode="wrap", out=3).arguments["out"] == 3
    either = to_inspect([GATHER, "gather(x: int8[n])"])
    assert str(either) == "(*args, out=None, device=None, stream=None)"
    longer = GATHER.replace(") ->", ", axis: int = 0) ->")
    for rows in ([GATHER, longer], [longer, GATHER, longer]):
        text = "(source, index, mode='raise', axis=0)"
        assert str(to_inspect(rows, is_own=False)) == text
    assert str(to_inspect(["f(x: int)", "f(x: int, y: int)"], is_own=False)) == "(*args)"
    assert str(to_inspect([GATHER], is_own=False)) == "(source, index, mode='raise')"
    assert to_inspect(["f()"]).parameters["device"].kind is inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("head", ["f(x: int8[n]) -> int8[", "f(x: int8[n]) where 0 < "])
def test_formulas_of_any_length_can_be_worked_out_in_python(head):
    end = "]" if "->" in head else ""
    parsed = parse(f"{head}{' + '.join(['n'] * 5000)}{end}")
    if end:
        assert shape_of(parsed, parsed.outputs[0], {"n": 2}) == (10_000,)
    else:
        assert conditions_hold(parsed, {"n": 2})

# SPDX-License-Identifier: Apache-2.0
"""Symbols, which represent arrays and numbers in a traced function and record operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from cuplug._engine import provider
from cuplug._engine.array.promotion import is_typed_number, kind_of, to_dtype
from cuplug._engine.base.dtypes import DTYPES
from cuplug._source.expressions.functions import FUNCTIONS, REDUCED, known_power, named
from cuplug._source.fusion.promotion import Type, computed_with, dtype_of, is_weak, put_together

NUMBERS = (bool, int, float, complex, np.generic)
_OTHERS = ("where", "clip", "astype", "real", "imag", "mean", "var", "std", *REDUCED)


class Symbol:
    """A value: how it is computed.

    Attributes
    ----------
    kind : str
        "array" or "number": argument `given`; "constant": the number `given`; "call": of the
        function `given`; "cast": a conversion, of a number that may exceed the dtype "below" or
        "above" if `given` is one of these; "rounded": to its narrow dtype (other values are float32
        until they are stored); "where"; "reduced": `given` is (name, axis, keepdims).
    type : numpy.dtype or type
        The type of an element. A Python type is the type of a number, which adapts to arrays.
    """

    __slots__ = ("given", "kind", "parts", "type")

    def __init__(self, kind: str, type: Type, given: Any, *parts: Symbol) -> None:
        self.kind, self.type, self.given, self.parts = kind, type, given, parts

    def __reduce__(self) -> tuple[Any, ...]:
        return Symbol, (self.kind, self.type, self.given, *self.parts)

    # ---- Attributes of arrays --------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The dtype of its elements."""
        return dtype_of(self.type)

    @property
    def real(self) -> Symbol:
        """The real part."""
        return record("real", self)

    @property
    def imag(self) -> Symbol:
        """The imaginary part."""
        return record("imag", self)

    def astype(self, dtype: Any, copy: bool = True) -> Symbol:
        """Return a symbol converted to a dtype."""
        return converted(self, to_dtype(dtype))

    def __array_namespace__(self, *, api_version: str | None = None) -> object:
        return provider("array_api")

    # ---- Protocols of NumPy and of the array API standard ----------------------------------------

    def __cuplug_function__(self, name: str, args: Any, keywords: Any) -> Any:
        return record(name, *args, **keywords)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **keywords: Any) -> Any:
        if method != "__call__":
            name, is_known = named(ufunc.__name__), method == "reduce"
            name = {"add": "sum", "multiply": "prod", "maximum": "max"}.get(name, name)
            if not is_known or name not in REDUCED:
                raise refused(f"numpy.{ufunc.__name__}.{method}")
            keywords.setdefault("axis", 0)
            return record(name, *args, **keywords)
        return record(ufunc.__name__, *args, **keywords)

    def __array_function__(self, function: Any, types: Any, args: Any, keywords: Any) -> Any:
        return record(function.__name__, *args, **keywords)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), keywords: Any = None
    ) -> Any:
        return record(function.__name__, *args, **(keywords or {}))

    def __getattr__(self, name: str) -> Any:
        if name in REDUCED or name in ("mean", "var", "std", "clip", "conj", "round"):
            return lambda *args, **keywords: record(name, self, *args, **keywords)
        if name in ("shape", "size", "ndim", "T", "strides", "device"):
            raise TypeError(
                f"fuse: {name}: a function is compiled for all shapes, and knows none while it is "
                "traced: pass the number as an argument, or do this outside of it"
            )
        raise AttributeError(f"fuse: an array that is traced has no attribute {name!r}")

    # ---- Unsupported conversions -----------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "fuse: a condition that depends on an array, as of `if`, `while`, `and`, `or` and "
            "`not`, is not known while the function is traced: write where(condition, a, b) of "
            "cuplug.array_api or numpy in place of `if`, and `&`, `|`, `~` for the others"
        )

    def _number(self) -> NoReturn:
        raise TypeError(
            "fuse: an array's elements are not known while the function is traced: they are no "
            "Python numbers in it"
        )

    __int__ = __float__ = __complex__ = __index__ = __len__ = __iter__ = __array__ = _number

    def __getitem__(self, key: Any) -> NoReturn:
        raise TypeError(
            "fuse: an array that is traced has no parts: index it before, and pass the part"
        )

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise TypeError(
            "fuse: an array that is traced cannot be changed: write where(mask, value, x) in "
            "place of x[mask] = value"
        )

    def __matmul__(self, other: Any) -> NoReturn:
        raise refused("@")

    __rmatmul__ = __matmul__

    def _in_place(self, other: Any) -> NoReturn:
        raise TypeError(
            "fuse: += and the like change an array in place, which a traced function cannot: "
            "write x = x + y"
        )

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = _in_place
    __ipow__ = __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _in_place
    __hash__ = object.__hash__


def refused(name: str) -> TypeError:
    """Return the error for an operation that fused functions do not support."""
    return TypeError(
        f"fuse: {name}: no function of single elements and no reduction, expected those of "
        "cuplug.array_api and NumPy: call it outside of the fused function"
    )


def symbol_of(x: Any) -> Symbol:
    """Return a symbol for an argument of a function."""
    if isinstance(x, Symbol):
        return x
    if is_typed_number(x):
        return Symbol("constant", x.dtype, x.item())
    if isinstance(x, NUMBERS):
        return Symbol("constant", type(x), x)
    raise TypeError(
        f"fuse: got {type(x).__name__}, expected an argument of the function; pass it as one"
    )


def cast(x: Symbol, dtype: Any) -> Symbol:
    """Return a symbol converted to a dtype; the symbol itself if it has the dtype."""
    if x.kind == "constant" and x.type is int:
        check_fits(x.given, dtype)
        if kind_of(dtype) in ("float", "complex"):
            x = Symbol("constant", float, float(x.given))
    return x if not is_weak(x.type) and x.type == dtype else Symbol("cast", dtype, None, x)


def converted(x: Symbol, dtype: Any) -> Symbol:
    """Return a symbol as `astype` converts it: to a narrow dtype, it is rounded immediately."""
    found = cast(x, dtype)
    is_new = found is not x and found.kind == "cast" and DTYPES[dtype.name].is_narrow
    return Symbol("rounded", dtype, None, found) if is_new else found


def check_fits(number: int, dtype: Any, beyond: str | None = None) -> None:
    """Check that a dtype holds a Python integer, as NumPy does, or that it is "below" or "above".

    Raises
    ------
    OverflowError
        It does not hold it.
    """
    if kind_of(dtype) in ("int", "uint"):
        limits = np.iinfo(dtype)
        is_allowed = number < limits.min if beyond == "below" else number > limits.max
        if not limits.min <= number <= limits.max and not (beyond and is_allowed):
            raise OverflowError(f"fuse: got {number}, expected a value of {dtype} (as the array)")


def call(name: str, *args: Any) -> Symbol:
    """Return a function of elements."""
    parts = [symbol_of(x) for x in args]
    if name == "pow" and parts[1].kind == "constant" and not is_weak(parts[0].type):
        short = known_power(parts[0].type, parts[1].given)
        if short and parts[1].type in (int, float):
            name, parts = short, parts[:1]
    if len(parts) != FUNCTIONS[name].n:
        raise TypeError(f"fuse: {name}: got {len(parts)} arguments, expected {FUNCTIONS[name].n}")
    if name == "abs" and kind_of(parts[0].dtype) == "complex":
        name = "complex_abs"
    if name in _REFLECTED and (compared := _compared_integers(name, *parts)) is not None:
        return compared
    dtypes, result = computed_with(name, [x.type for x in parts])
    parts = [cast(x, dtype) for x, dtype in zip(parts, dtypes, strict=True)]
    return Symbol("call", result, name, *parts)


_REFLECTED = {"equal": "equal", "not_equal": "not_equal", "less": "greater", "greater": "less"}
_REFLECTED |= {"less_equal": "greater_equal", "greater_equal": "less_equal"}


def _compared_integers(name: str, x: Symbol, y: Symbol) -> Symbol | None:
    """Compare integers by value, in no common dtype; None if the types are not two integers.

    Python integers are compared in the dtype of the other operand if they fit.
    """
    if is_weak(x.type) or (not is_weak(y.type) and kind_of(x.type) == "int"):
        name, x, y = _REFLECTED[name], y, x
    if is_weak(x.type) or kind_of(x.type) not in ("int", "uint"):
        return None
    if is_weak(y.type):
        return _compared_number(name, x, y) if y.type is int else None
    is_mixed = kind_of(y.type) == "int" and np.result_type(x.type, y.type).kind == "f"
    return _compared_within(name, x, y) if is_mixed else None


def _compared_number(name: str, x: Symbol, number: Symbol) -> Symbol:
    """Compare with a Python integer, known now or in the call."""
    if number.kind != "constant":
        return _compared_within(name, x, cast(number, np.dtype("int64")))
    limits = np.iinfo(x.type)
    if limits.min <= number.given <= limits.max:
        return Symbol("call", np.dtype(bool), name, x, cast(number, x.type))
    is_true = _beyond(name, number.given > 0)
    return Symbol("call", np.dtype(bool), "equal" if is_true else "not_equal", x, x)


def _compared_within(name: str, x: Symbol, y: Symbol) -> Symbol:
    """Compare where y, signed integers, is in the range of x. Outside, the result is constant."""
    limits, own, result = np.iinfo(x.type), np.iinfo(y.type), np.dtype(bool)
    found = Symbol("call", result, name, x, cast(y, x.type))
    for beyond, limit, is_above in (
        ("greater", int(limits.max), True),
        ("less", int(limits.min), False),
    ):
        if own.min <= limit <= own.max:
            is_beyond = Symbol("call", result, beyond, y, cast(symbol_of(limit), y.type))
            known = symbol_of(np.bool_(_beyond(name, is_above)))
            found = Symbol("where", result, None, is_beyond, known, found)
    return found


def _beyond(name: str, is_above: bool) -> bool:
    """Return the result of comparing elements with a number outside their dtype's range."""
    return name == "not_equal" or (name != "equal" and ("less" in name) == is_above)


def _typed(x: Symbol) -> Symbol:
    """Return the result of a NumPy function, which also has a dtype for Python numbers."""
    return cast(x, x.dtype) if isinstance(x, Symbol) and is_weak(x.type) else x


def record(name: str, *args: Any, **keywords: Any) -> Any:
    """Return the result of a library's function for symbols."""
    name = named(name)
    if name in FUNCTIONS and name not in _OTHERS:
        if keywords:
            raise refused(f"{name} with {', '.join(keywords)}")
        return _typed(call(name, *args))
    if name not in _OTHERS:
        raise refused(name)
    try:
        return _COMPOSED.get(name, _reduced(name))(*args, **keywords)
    except TypeError as error:
        text = str(error)
        raise error if text.startswith("fuse: ") else TypeError(f"fuse: {name}: {text}") from None


# ---- Functions of several expressions ------------------------------------------------------------


def _where(condition: Any, x: Any, y: Any) -> Symbol:
    chosen = [symbol_of(each) for each in (x, y)]
    type_ = put_together([each.type for each in chosen])
    dtype = dtype_of(type_)
    parts = (cast(symbol_of(condition), np.dtype(bool)), *(cast(each, dtype) for each in chosen))
    return Symbol("where", type_, None, *parts)


def _clip(x: Any, min: Any = None, max: Any = None) -> Any:
    found = symbol_of(x)
    for name, bound in (("maximum", min), ("minimum", max)):
        found = found if bound is None else _bounded(name, found, symbol_of(bound))
    return _typed(found)


def _bounded(name: str, x: Symbol, bound: Symbol) -> Symbol:
    """Return the larger or smaller value. Bounds outside of the dtype's range have no effect."""
    if is_weak(x.type) or kind_of(x.type) not in ("int", "uint") or bound.type is not int:
        return call(name, x, bound)
    limits, side = np.iinfo(x.type), "below" if name == "maximum" else "above"
    if bound.kind == "constant":
        number = bound.given
        is_passed = number < limits.min if side == "below" else number > limits.max
        return x if is_passed else call(name, x, bound)
    limit = np.int64(limits.min if side == "below" else min(limits.max, (1 << 63) - 1))
    is_passed = call("less" if side == "below" else "greater", cast(bound, limit.dtype), limit)
    inside = call(name, x, Symbol("cast", x.type, side, bound))
    return Symbol("where", x.type, None, is_passed, x, inside)


def _part(name: str) -> Callable[[Any], Symbol]:
    def part(x: Any) -> Symbol:
        x = symbol_of(x)
        if kind_of(x.dtype) != "complex":
            return x if name == "real" else cast(call("multiply", x, 0), x.type)
        single = np.dtype("float32" if x.dtype.name == "complex64" else "float64")
        return Symbol("call", single, name, cast(x, x.dtype))

    return part


def _reduced(name: str) -> Callable[..., Symbol]:
    def reduced(x: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Symbol:
        x = cast(symbol_of(x), symbol_of(x).dtype)
        if dtype is not None:
            x = cast(x, to_dtype(dtype))
        if name in ("max", "min") and x.type.kind == "c":
            raise TypeError(f"got {x.type}, expected real numbers; use real, imag or abs")
        if name in ("any", "all", "count_nonzero"):
            result = np.dtype("int64" if name == "count_nonzero" else "bool")
        elif x.type.kind == "V" or name in ("max", "min", "var"):
            result = x.type
        else:
            result = getattr(np, name)(np.empty(1, x.type)).dtype
        if name == "mean":
            x = cast(x, result)
        is_narrow = DTYPES[result.name].is_narrow  # the dtype to which it is rounded when stored
        kept = np.dtype("float32") if is_narrow else result
        return cast(Symbol("reduced", kept, (name, axis, keepdims), x), result)

    return reduced


def _spread(is_root: bool) -> Callable[..., Symbol]:
    def spread(
        x: Any, axis: Any = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False
    ) -> Symbol:
        if correction or ddof:
            raise refused("var and std with other degrees of freedom")
        x = symbol_of(x)
        parts = [record("real", x), record("imag", x)] if x.dtype.kind == "c" else [x]
        away = [call("subtract", x, _reduced("mean")(x, axis, keepdims=True)) for x in parts]
        spreads = [_reduced("var")(x, axis, keepdims=keepdims) for x in away]
        found = call("add", *spreads) if spreads[1:] else spreads[0]
        return call("sqrt", found) if is_root else found

    return spread


_COMPOSED: dict[str, Callable[..., Any]] = {
    "where": _where,
    "clip": _clip,
    "astype": lambda x, dtype, copy=True: converted(symbol_of(x), to_dtype(dtype)),
    "real": _part("real"),
    "imag": _part("imag"),
    "var": _spread(False),
    "std": _spread(True),
}

# ---- Python's operators --------------------------------------------------------------------------

_OPERATORS = "add:add sub:subtract mul:multiply truediv:divide floordiv:floor_divide mod:remainder"
_OPERATORS += " pow:pow and:bitwise_and or:bitwise_or xor:bitwise_xor"
_OPERATORS += " lshift:bitwise_left_shift rshift:bitwise_right_shift"
_COMPARED = "eq:equal ne:not_equal lt:less le:less_equal gt:greater ge:greater_equal"
_UNARY = "neg:negative pos:positive abs:abs invert:bitwise_invert"


def _method(name: str, is_reflected: bool = False) -> Callable[..., Any]:
    def method(self: Symbol, *others: Any) -> Any:
        if any(not isinstance(x, (Symbol, *NUMBERS)) and np.ndim(x) == 0 for x in others):
            return NotImplemented
        return call(name, *reversed(others), self) if is_reflected else call(name, self, *others)

    return method


for _short, _name in (pair.split(":") for pair in f"{_OPERATORS} {_COMPARED} {_UNARY}".split()):
    setattr(Symbol, f"__{_short}__", _method(_name))
for _short, _name in (pair.split(":") for pair in _OPERATORS.split()):
    setattr(Symbol, f"__r{_short}__", _method(_name, True))

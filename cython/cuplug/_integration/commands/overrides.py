# SPDX-License-Identifier: Apache-2.0
"""Arguments and sizes set in a command: `--set k=3`, `--set k=0..8`, `--shape x=4,3`.

Also arguments that cannot be drawn: the fixture file creates them, or the plugin, as handles.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.find import load
from cuplug._engine.signature.evaluate import ARRAYS
from cuplug._engine.signature.signature import Parameter, Signature, parse
from cuplug._integration.author.bench_arguments import sized_arguments
from cuplug._integration.commands.properties import code_of
from cuplug._integration.commands.property_outcomes import Fresh

NUMBERS = (bool, int, float, complex)
_MADE = (*ARRAYS, "handle")  # kinds of parameters that text cannot set
MADE_BYTES = 1 << 10  # size of the arrays for an operator that creates a handle
HOW = "a number, or a range as in 0..8"


class Range(NamedTuple):
    """Numbers from `low` to `high`, inclusive."""

    low: Any
    high: Any


def split(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the values of a command's options `NAME=TEXT`, by name."""
    said = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise ValueError(f"{option}: got {text!r}, expected a name and what it is to be: k=3")
        if name in said:
            raise ValueError(f"{option}: {name}: got two values, expected one")
        said[name] = value
    return said


def settable(signature: Signature) -> list[str]:
    """Return the names that can be set: scalars, dimensions, arrays that may be omitted."""
    parameters = [x.name for x in signature.parameters if x.kind not in _MADE or x.has_default]
    return list(dict.fromkeys([*parameters, *_sizes(signature)]))


def read_pins(signature: Signature, said: dict[str, str]) -> dict[str, Any]:
    """Return a value or a Range for each given name.

    Raises
    ------
    ValueError
        A value is invalid for its name.
    """
    parameters = {x.name: x for x in signature.parameters}
    names = settable(signature)
    return {
        name: _read_pin(name, text, parameters.get(name))
        for name, text in said.items()
        if name in names
    }


def check_names(option: str, said: Iterable[str], known: Sequence[str]) -> None:
    """Raise ValueError for a name that no signature has."""
    for name in said:
        if name not in known:
            wanted = f"one of {', '.join(known)}" if known else "no name (nothing can be set)"
            raise ValueError(f"{option}: got unknown name {name}, expected {wanted}")


def read_shapes(signature: Signature, said: dict[str, str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of array parameters by name: "4,3" is (4, 3), "" has no dimensions.

    Raises
    ------
    ValueError
        No such array exists, or its shape is invalid.
    """
    check_names("--shape", said, [x.name for x in signature.parameters if x.kind in ARRAYS])
    return {name: _read_shape(name, text) for name, text in said.items()}


def _read_shape(name: str, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"--shape: {name}: got {text!r}, expected sizes, as in 1024,1024")
    return tuple(int(part) for part in parts)


def _sizes(signature: Signature) -> list[str]:
    named = {value for x in signature.arrays for kind, value in x.dims if kind == "named"}
    return [name for k, name in enumerate(signature.dim_names) if k in named]


def _read_pin(name: str, text: str, x: Parameter | None) -> Any:
    if x is None:
        return _read_range(name, text, _size)
    if x.has_default and x.default is None and text == "None":
        return None
    if x.kind in _MADE:
        raise ValueError(f"--set: {name}: got {text!r}, expected None, which leaves it out")
    if x.kind == "list":
        return _read_list(name, text)
    if x.kind in ("string", "dtype"):
        return text
    if x.kind == "choice":
        if text not in x.choices:
            raise ValueError(f"--set: {name}: got {text!r}, expected {' or '.join(x.choices)}")
        return text
    return _read_range(name, text, _number)


def _read_range(name: str, text: str, read: Callable[[str], Any]) -> Any:
    first, dots, last = text.partition("..")
    try:
        low = read(first)
        if not dots:
            return low
        high = read(last)
        if low <= high:
            return Range(low, high)
    except (ValueError, TypeError, SyntaxError):
        pass
    raise ValueError(f"--set: {name}: got {text!r}, expected {HOW}")


def _read_list(name: str, text: str) -> list[Any]:
    try:
        return [_number(part) for part in text.split(",") if part.strip()]
    except (ValueError, TypeError, SyntaxError):
        raise ValueError(f"--set: {name}: got {text!r}, expected numbers, as in 0,2") from None


def _number(text: str) -> Any:
    value = float(text) if text.strip("+-") in ("inf", "nan") else ast.literal_eval(text.strip())
    if not isinstance(value, NUMBERS):
        raise ValueError(text)
    return value


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def fixture_beside(path: str) -> str:
    """Return the fixture of a library: libtwice.fixture.py next to libtwice.so; "" if absent."""
    file = f"{os.path.splitext(path)[0]}.fixture.py"
    return file if os.path.isabs(path) and os.path.isfile(file) else ""


def function_names(file: str) -> set[str]:
    """Return the names of a fixture's functions. Its code does not run.

    Raises
    ------
    ValueError
        The file is not Python code.
    """
    if not file:
        return set()
    try:
        with open(file, encoding="utf-8") as text:
            tree = ast.parse(text.read(), file)
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"--fixture: got {file!r}, expected a Python file ({error})") from None
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def maker_of_handle(operator: Operator, x: Parameter) -> tuple[Operator, Signature] | None:
    """Return the operator of the same plugin that returns a handle for a parameter."""
    if not operator.path:
        return None
    for other in load(operator.path).operators:
        for text in other.signatures:
            signature = parse(text)
            inputs = [y for y in signature.parameters if y.kind == "handle" and not y.has_default]
            if signature.made and signature.made.tag == x.tag and not inputs:
                return other, signature
    return None


def is_needed(operator: Operator, x: Parameter, functions: set[str]) -> bool:
    """Return True for a handle without a default that no operator creates."""
    named = {x.name, f"{operator.name}_{x.name}"}
    needed = x.kind == "handle" and not x.has_default and not named & functions
    return needed and maker_of_handle(operator, x) is None


class Makers:
    """Functions that create arguments of an operator, by parameter name."""

    def __init__(self, operator: Operator, file: str, said: dict[str, str], device: str) -> None:
        self.operator, self.file, self.said, self.device = operator, file, said, device

    def of(self, signature: Signature) -> dict[str, Callable[[dict[str, Any]], Any]]:
        """Return a function for each parameter that cannot be drawn."""
        names = function_names(self.file)
        found: dict[str, Callable[[dict[str, Any]], Any]] = {}
        for x in signature.parameters:
            own = [name for name in (f"{self.operator.name}_{x.name}", x.name) if name in names]
            how = maker_of_handle(self.operator, x) if x.kind == "handle" else None
            if own:
                found[x.name] = partial(self._by_function, x, own[0])
            elif how:
                found[x.name] = partial(self._by_operator, *how)
        return found

    def _by_function(self, x: Parameter, name: str, names: dict[str, Any]) -> Any:
        """Call a function of the fixture.

        Results other than arrays and numbers are created in each call.
        """
        function = getattr(module_at(self.file), name)

        def make(device: str) -> Any:
            random = np.random.default_rng(0)
            known = {**names, "random": random, "device": device}
            wanted = list(inspect.signature(function).parameters)
            for other in wanted:
                if other not in known:
                    raise ValueError(
                        f"{self.file}: {name}: got the parameter {other}, expected one of "
                        f"{', '.join(sorted(known))}"
                    )
            return function(**{other: known[other] for other in wanted})

        if x.kind in ("array", "inout", "arrays"):
            return make("cpu")
        value = None if x.kind == "handle" else make(self.device)
        if isinstance(value, (bool, int, float, complex, str, list)):
            return value
        return Fresh(make, repr(f"made by {name} of {self.file}"))

    def _by_operator(self, maker: Operator, signature: Signature, names: dict[str, Any]) -> Fresh:
        """Create a handle with the sizes and scalars of the same names."""
        shared = {name: names[name] for name in settable(signature) if names.get(name) is not None}
        pins = read_pins(signature, self.said)
        pinned = {k: x.high if isinstance(x, Range) else x for k, x in pins.items()} | shared
        given = sized_arguments(signature, MADE_BYTES, pinned=pinned)
        code = ", ".join(f"{name}={code_of(x)}" for name, x in given.items())
        call = f"cuplug.load({maker.path!r}).{maker.name}({code})"
        return Fresh(lambda device: maker(**given, device=device), call)


@cache
def module_at(file: str) -> Any:
    """Return the module of a fixture, which runs once."""
    spec = importlib.util.spec_from_file_location("fixture", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{file}: {type(error).__name__}: {error}") from error
    return module

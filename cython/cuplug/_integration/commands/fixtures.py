# SPDX-License-Identifier: Apache-2.0
"""Arguments that `cuplug test` cannot draw: those of a fixture file, and handles of the plugin."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.find import load
from cuplug._engine.signature.signature import Parameter, Signature, parse
from cuplug._integration.author.bench_arguments import sized_arguments
from cuplug._integration.commands.overrides import Range, read_pins, settable
from cuplug._integration.commands.properties import code_of
from cuplug._integration.commands.property_outcomes import Fresh

__all__ = ["Makers", "fixture_beside", "function_names", "maker_of_handle"]

MADE_BYTES = 1 << 10  # of the arrays that an operator gets which makes a handle
Names = Mapping[str, Any]


def fixture_beside(path: str) -> str:
    """Return the fixture of a library: libtwice.fixture.py next to libtwice.so; "" if absent."""
    file = f"{os.path.splitext(path)[0]}.fixture.py"
    return file if os.path.isabs(path) and os.path.isfile(file) else ""


def function_names(file: str) -> set[str]:
    """Return the names of a fixture's functions. None of its code is run.

    Raises
    ------
    ValueError
        It is not a file of Python code.
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
    """Return True for a handle that has no default, and that nothing makes."""
    named = {x.name, f"{operator.name}_{x.name}"}
    needed = x.kind == "handle" and not x.has_default and not named & functions
    return needed and maker_of_handle(operator, x) is None


class Makers:
    """Functions that make arguments of an operator, by parameter name."""

    def __init__(self, operator: Operator, file: str, said: dict[str, str], device: str) -> None:
        self.operator, self.file, self.said, self.device = operator, file, said, device

    def of(self, signature: Signature) -> dict[str, Callable[[dict[str, Any]], Any]]:
        """Return a function for each parameter that is not drawn."""
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

    def _by_function(self, x: Parameter, name: str, names: Names) -> Any:
        """Call a function of the fixture; what is not an array or a number is made in each call."""
        function = getattr(_module(self.file), name)

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
        return Fresh(make, f"...,  # made by {name} of {self.file}\n    ")

    def _by_operator(self, maker: Operator, signature: Signature, names: Names) -> Fresh:
        """Make a handle with the sizes and scalars of the same names."""
        shared = {name: names[name] for name in settable(signature) if names.get(name) is not None}
        pins = read_pins(signature, self.said)
        pinned = {k: x.high if isinstance(x, Range) else x for k, x in pins.items()} | shared
        given = sized_arguments(signature, MADE_BYTES, pinned=pinned)
        code = ", ".join(f"{name}={code_of(x)}" for name, x in given.items())
        call = f"cuplug.load({maker.path!r}).{maker.name}({code})"
        return Fresh(lambda device: maker(**given, device=device), call)


@cache
def _module(file: str) -> Any:
    spec = importlib.util.spec_from_file_location("fixture", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

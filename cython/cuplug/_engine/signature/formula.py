# SPDX-License-Identifier: Apache-2.0
"""What kernels and functions are given, as text: `x, index, y, n, size(x) // 2`.

A name stands for an array, a scalar, a dimension of the signature, or `fault`, the call's fault
record. Numbers are worked out by the core, of + - * // %, min, max, size(x) and size(x, dimension).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import NamedTuple

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.signature.signature import Parameter, Signature

# Kinds of `cuplug_step` in <internal/formula.h>.
NUMBER, SIZE, COUNT, SCALAR, ADD, SUBTRACT, MULTIPLY, DIVIDE, REST, LEAST, GREATEST, NEGATE = range(
    12
)
MAX_SEEN = 200  # characters of a text in a message
MAX_TEXT = 1 << 14  # characters of a list of expressions
Step = tuple[int, int, int]  # kind, operand, value

_OPERATIONS: dict[type[ast.operator], int] = {
    ast.Add: ADD,
    ast.Sub: SUBTRACT,
    ast.Mult: MULTIPLY,
    ast.FloorDiv: DIVIDE,
    ast.Mod: REST,
}
_FUNCTIONS = {"min": LEAST, "max": GREATEST}
_MEMBERS = {"bool": 0, "int": 0, "uint": 1}  # of scalars, as the value of their step


class Term(NamedTuple):
    """A formula of a signature's names, with its text."""

    steps: tuple[Step, ...]
    text: str


class Scope(NamedTuple):
    """The names of a signature, where they are found in a call."""

    signature: Signature
    arrays: dict[str, int]
    scalars: dict[str, int]
    sizes: dict[str, tuple[int, int]]  # of a dimension: array, and number, from its end if < 0

    def parameter(self, name: str) -> Parameter:
        """Return the array or scalar of a name."""
        own = (*self.signature.parameters, *self.signature.outputs)
        return next(x for x in own if x.name == name)

    def member(self, name: str) -> int | None:
        """Return the kind of a scalar's integers, as a step has it; None of other scalars."""
        x = self.parameter(name)
        if x.kind == "choice":
            return 0
        dtypes = self.signature.dtypes(x) if x.kind == "scalar" else ()
        members = {_MEMBERS.get(DTYPES[dtype].kind) for dtype in dtypes}
        return members.pop() if len(members) == 1 else None


def read_scope(signature: Signature) -> Scope:
    """Find the names of a signature."""
    arrays = {x.name: k for k, x in enumerate(signature.arrays) if x.name}
    own = [x for x in signature.parameters if not x.is_array]
    sizes: dict[str, tuple[int, int]] = {}
    for k, x in enumerate(signature.arrays):
        groups = [at for at, (kind, _) in enumerate(x.dims) if kind in ("variadic", "loop")]
        for at, (kind, value) in enumerate(x.dims):
            is_bound = not (x.has_default or x.kind == "output")
            if kind == "named" and isinstance(value, int) and is_bound:
                behind = bool(groups) and at > groups[0]
                place = (k, at - len(x.dims) if behind else at)
                sizes.setdefault(signature.dim_names[value], place)
    return Scope(signature, arrays, {x.name: k for k, x in enumerate(own)}, sizes)


def parse(text: str, name: str) -> list[ast.expr]:
    """Return the expressions of a list with commas."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"{name}: got {len(text)} characters, expected at most {MAX_TEXT}")
    try:
        tree = ast.parse(f"_({text}\n)", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        reason = "it is nested too deep"
        if isinstance(error, SyntaxError | ValueError):
            reason = getattr(error, "msg", str(error))
        raise ValueError(f"{name}: seen {shorten(text)!r}: {reason}") from None
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.keywords:
        raise ValueError(
            f"{name}: seen {shorten(text)!r}, wanted names and numbers with commas between"
        )
    return list(tree.args)


def term(node: ast.expr, scope: Scope, name: str) -> Term:
    """Return the formula of an expression."""
    try:
        return Term(_steps(node, scope, name), ast.unparse(node))
    except RecursionError:
        raise ValueError(f"{name}: got an expression that is nested too deep") from None


def shorten(text: str) -> str:
    """Return a text for a message, which one of any length would make unreadable."""
    return text if len(text) <= MAX_SEEN else f"{text[:MAX_SEEN]}..."


def _steps(node: ast.expr, scope: Scope, name: str) -> tuple[Step, ...]:
    """Return the steps that work out a number."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        if node.value >= 1 << 63:
            raise ValueError(f"{name}: seen {node.value}, wanted numbers below 2**63")
        return ((NUMBER, 0, node.value),)
    if isinstance(node, ast.Name) and node.id in scope.scalars:
        member = scope.member(node.id)
        if member is None:
            raise ValueError(f"{name}: seen {node.id}, wanted integers to work numbers out of")
        return ((SCALAR, scope.scalars[node.id], member),)
    if isinstance(node, ast.Name) and node.id in scope.sizes:
        return ((SIZE, *scope.sizes[node.id]),)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return (*_steps(node.operand, scope, name), (NEGATE, 0, 0))
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        operation = (_OPERATIONS[type(node.op)], 0, 0)
        return (*_steps(node.left, scope, name), *_steps(node.right, scope, name), operation)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _call_steps(node.func.id, node, scope, name)
    raise _refuse(node, scope, name)


def _call_steps(function: str, node: ast.Call, scope: Scope, name: str) -> tuple[Step, ...]:
    if function in _FUNCTIONS and len(node.args) == 2:
        left, right = (_steps(x, scope, name) for x in node.args)
        return (*left, *right, (_FUNCTIONS[function], 0, 0))
    place = _size_of(node, scope)
    if place is None:
        raise _refuse(node, scope, name)
    array, dimension = place
    if dimension is None:
        return ((COUNT, array, 0),)
    dims = scope.signature.arrays[array].dims
    is_known = all(kind not in ("variadic", "loop", "slice", "listed") for kind, _ in dims)
    if is_known and not -len(dims) <= dimension < len(dims):
        raise ValueError(
            f"{name}: seen {ast.unparse(node)}, wanted a dimension from {-len(dims)} to "
            f"{len(dims) - 1}"
        )
    return ((SIZE, array, dimension),)


def _size_of(node: ast.Call, scope: Scope) -> tuple[int, int | None] | None:
    """Return the array and the dimension of size(x, dimension); None for something else."""
    first = node.args[0] if node.args else None
    if not (isinstance(node.func, ast.Name) and node.func.id == "size" and len(node.args) < 3):
        return None
    if not (isinstance(first, ast.Name) and first.id in scope.arrays):
        return None
    if len(node.args) == 1:
        return scope.arrays[first.id], None
    try:
        dimension = ast.literal_eval(node.args[1])
    except ValueError:
        return None
    return (scope.arrays[first.id], dimension) if type(dimension) is int else None


def n_behind_loops(x: Parameter) -> int | None:
    """Return how many dimensions an array has besides its loop dimensions; None without these."""
    return len(x.dims) - 1 if any(kind == "loop" for kind, _ in x.dims) else None


def counts_loops(nodes: Sequence[ast.expr], scope: Scope) -> bool:
    """Return whether expressions say how many elements the loop dimensions make.

    They do by the size of an array that has them: of all of it, or of a dimension among them.
    """
    for call in (x for node in nodes for x in ast.walk(node) if isinstance(x, ast.Call)):
        place = _size_of(call, scope)
        n_own = n_behind_loops(scope.signature.arrays[place[0]]) if place else None
        if place and n_own is not None and not (place[1] and -n_own <= place[1] < 0):
            return True
    return False


def _refuse(node: ast.expr, scope: Scope, name: str) -> ValueError:
    """Return the error for what cannot be worked out."""
    known = ", ".join([*scope.arrays, *scope.scalars, *scope.sizes])
    return ValueError(
        f"{name}: seen {ast.unparse(node)!r}, wanted names of the signature ({known}), fault, "
        "numbers, + - * // %, min, max or size(array)"
    )

# SPDX-License-Identifier: Apache-2.0
"""What kernels and functions are given, as text: `x, index, y, n, size(x) // 2`.

A name stands for an array, a scalar, a dimension of the signature, or `fault`, the call's fault
record. Numbers are worked out by + - * // %, min, max, size(x) and size(x, dimension).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from cuplug.base.dtypes import Dtype
from cuplug.signature.signature import Parameter, Signature

NUMBER, SIZE, COUNT, SCALAR, ADD, SUBTRACT, MULTIPLY, DIVIDE, REST, LEAST, GREATEST = range(11)
Step = tuple[int, int, int]  # kind, operand, value: see `cuplug_step` in <cuplug/host.h>

_OPERATIONS: dict[type[ast.operator], tuple[int, str]] = {
    ast.Add: (ADD, "+"),
    ast.Sub: (SUBTRACT, "-"),
    ast.Mult: (MULTIPLY, "*"),
    ast.FloorDiv: (DIVIDE, "/"),
    ast.Mod: (REST, "%"),
}
_FUNCTIONS = {"min": (LEAST, "<"), "max": (GREATEST, ">")}


@dataclass(frozen=True)
class Scope:
    """The names of a signature, where they are found in a call."""

    signature: Signature
    arrays: dict[str, int]
    scalars: dict[str, int]
    sizes: dict[str, tuple[int, int]]  # of a dimension: array, and number, from its end if < 0

    def parameter(self, name: str) -> Parameter:
        """Return the array or scalar of a name."""
        own = (*self.signature.parameters, *self.signature.outputs)
        return next(x for x in own if x.name == name)


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
    try:
        tree = ast.parse(f"_({text})", mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{name}: seen {text!r}: {error.msg}") from None
    assert isinstance(tree, ast.Call)
    return list(tree.args)


def steps(node: ast.expr, scope: Scope, name: str) -> tuple[Step, ...]:
    """Return the steps that work out a number."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ((NUMBER, 0, node.value),)
    if isinstance(node, ast.Name) and node.id in scope.sizes:
        return ((SIZE, *scope.sizes[node.id]),)
    if isinstance(node, ast.Name) and node.id in scope.scalars:
        return ((SCALAR, scope.scalars[node.id], 0),)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        operation = (_OPERATIONS[type(node.op)][0], 0, 0)
        return (*steps(node.left, scope, name), *steps(node.right, scope, name), operation)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call_steps(node.func.id, node, scope, name)
    raise refuse(node, scope, name)


def _call_steps(function: str, node: ast.Call, scope: Scope, name: str) -> tuple[Step, ...]:
    if function in _FUNCTIONS and len(node.args) == 2:
        left, right = (steps(x, scope, name) for x in node.args)
        return (*left, *right, (_FUNCTIONS[function][0], 0, 0))
    place = size_of(node, scope)
    if place is None:
        raise refuse(node, scope, name)
    array, dimension = place
    return ((COUNT, array, 0) if dimension is None else (SIZE, array, dimension),)


def size_of(node: ast.Call, scope: Scope) -> tuple[int, int | None] | None:
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


def c_text(node: ast.expr, scope: Scope, dtypes: dict[str, Dtype], name: str) -> str:
    """Return an argument of a host function as C."""
    if isinstance(node, ast.Name):
        if node.id == "fault":
            return "&cuplug_record"
        if node.id in scope.arrays:
            x = scope.parameter(node.id)
            const = "const " if x.kind == "array" else ""
            kind = dtypes[node.id].stored
            return f"({const}{kind} *)call->tensors[{scope.arrays[node.id]}].data"
        if node.id in scope.scalars:
            return _c_scalar(scope, node.id, dtypes)
        if node.id in scope.sizes:
            return _c_size(*scope.sizes[node.id])
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return f"INT64_C({node.value})"
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = (c_text(x, scope, dtypes, name) for x in (node.left, node.right))
        return f"({left} {_OPERATIONS[type(node.op)][1]} {right})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id in _FUNCTIONS and len(node.args) == 2:
            left, right = (c_text(x, scope, dtypes, name) for x in node.args)
            return f"({left} {_FUNCTIONS[node.func.id][1]} {right} ? {left} : {right})"
        if place := size_of(node, scope):
            array, dimension = place
            whole = f"cuplug_n_elements(&call->tensors[{array}])"
            return whole if dimension is None else _c_size(array, dimension)
    raise refuse(node, scope, name)


def _c_scalar(scope: Scope, name: str, dtypes: dict[str, Dtype]) -> str:
    x, place = scope.parameter(name), f"call->scalars[{scope.scalars[name]}]"
    if x.type_variable < 0:
        return f"{place}.{'s' if x.kind == 'string' else 'i'}"
    dtype = dtypes[name]
    value = f"{place}.{dtype.member}"
    if dtype.kind == "complex":
        value = f"__builtin_complex({value}[0], {value}[1])"
    return f"({dtype.computed}){value}"


def _c_size(array: int, dimension: int) -> str:
    from_end = f"call->tensors[{array}].ndim - {-dimension}"
    return f"call->tensors[{array}].shape[{dimension if dimension >= 0 else from_end}]"


def refuse(node: ast.expr, scope: Scope, name: str) -> ValueError:
    """Return the error for what cannot be worked out."""
    known = ", ".join([*scope.arrays, *scope.scalars, *scope.sizes])
    return ValueError(
        f"{name}: seen {ast.unparse(node)!r}, wanted names of the signature ({known}), fault, "
        "numbers, + - * // %, min, max or size(array)"
    )

# SPDX-License-Identifier: Apache-2.0
"""The stubs of Cython modules, for type checkers, match the modules."""

import ast
import inspect
import sys
from importlib import import_module
from pathlib import Path

import cuplug
import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "build_backend"))
from stubs import module_stub

sys.path.pop(0)
PACKAGE = Path(cuplug.__file__).parent
WRITTEN = [path for path in PACKAGE.rglob("*.pyi") if not path.is_symlink()]
MODULES = [path.relative_to(PACKAGE).with_suffix("") for path in WRITTEN]
STUBS = sorted(x for x in MODULES if (ROOT / "cython" / "cuplug" / x).with_suffix(".pyx").exists())
TEXT = """
import os
from collections import namedtuple

LIMIT = 3
Pair: tuple[int, str] = public(namedtuple("Pair", "first second"))

cdef extern from *:
    int (*variable_of_c)(int)
variable_of_c = hidden

cdef int hidden(int n):
    return n

def scale(list values: list[int], uint32_t times, str name=None, *, in_place=False, factor=None):
    def inside():
        return times
    values.extend(inside())

@public
@cython.final
cdef class Thing(Base):
    cdef int n
    cdef readonly object dtype
    cdef public str name

    def __cinit__(self, Thing other=None, /, *more: int, **others):
        pass

    @property
    def size(self) -> int:
        return self.n

    def __repr__(self):
        return "thing"

    def __enter__(self):
        return self

    @size.setter
    def size(self, n):
        self.n = n

    def each(self):
        yield 1
"""
STUB = """
LIMIT: int
class Pair(NamedTuple):
    first: int
    second: str
def scale(values: list[int], times: int, name: str | None = None, *, in_place: bool = False, \
factor: Any = None) -> None: ...
@final
class Thing(Base):
    @property
    def dtype(self) -> np.dtype[Any]: ...
    name: str
    def __init__(self, other: Thing | None = None, /, *more: int, **others: Any) -> None: ...
    @property
    def size(self) -> int: ...
    @size.setter
    def size(self, n: Any) -> None: ...
    def __enter__(self) -> Self: ...
    def each(self) -> Any: ...
"""


def test_a_stub_has_the_types_of_the_source(tmp_path):
    (tmp_path / "thing.pyx").write_text(TEXT)
    assert module_stub(tmp_path / "thing.pyx") == STUB.strip().splitlines()


def parameters_of(function):
    """Return the parameters of a function in a stub, as `inspect` names them."""
    given = function.args
    named = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [x.arg for x in named if x]


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_stubs_have_the_names_and_parameters_of_modules(stub):
    if "torch" in stub.parts:
        pytest.importorskip("torch")
    module = import_module(".".join(("cuplug", *stub.parts)))
    for node in ast.parse((PACKAGE / stub).with_suffix(".pyi").read_text()).body:
        if isinstance(node, ast.FunctionDef):
            seen = inspect.signature(getattr(module, node.name)).parameters
            assert parameters_of(node) == [*seen], node.name
        elif isinstance(node, ast.ClassDef):
            found = getattr(module, node.name)
            members = [x for x in node.body if isinstance(x, (ast.FunctionDef, ast.AnnAssign))]
            names = {getattr(x, "name", None) or x.target.id for x in members}
            assert names <= {*dir(found), *getattr(found, "__annotations__", ())}, node.name
        elif isinstance(node, ast.AnnAssign):
            assert hasattr(module, node.target.id)

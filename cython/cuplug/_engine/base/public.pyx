# SPDX-License-Identifier: Apache-2.0
"""Public names, which pickles, messages and help show instead of the private modules."""

from functools import partial

cdef extern from "Python.h":
    const unsigned long Py_TPFLAGS_HEAPTYPE
    ctypedef struct AnyType "PyTypeObject":
        const char *tp_name
        unsigned long tp_flags

cdef list static_names = []  # never freed, like the types


def public(x: _T) -> _T:
    """Make a function or a class a member of `cuplug`, under its name."""
    if isinstance(x, type) and not (<AnyType *>x).tp_flags & Py_TPFLAGS_HEAPTYPE:
        static_names.append(f"cuplug.{x.__name__}".encode())
        (<AnyType *>x).tp_name = <const char *><bytes>static_names[-1]
    else:
        x.__module__ = "cuplug"
    return x


class PublicCall:
    """A call of public functions, as which its result is pickled."""

    def __init__(self, function: Callable[..., Any], /, *args, **keywords):
        self.function, self.args, self.keywords = function, args, keywords

    def __reduce__(self) -> tuple[Any, ...]:
        called = partial(self.function, **self.keywords) if self.keywords else self.function
        return called, self.args

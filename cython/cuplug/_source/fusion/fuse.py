# SPDX-License-Identifier: Apache-2.0
"""The decorator that compiles a Python function of arrays into one operator."""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cuplug._engine.array.promotion import kind_of
from cuplug._engine.base.numpy_dtypes import numpy_dtype
from cuplug._engine.base.public import PublicCall, public
from cuplug._source.expressions.expression import KEYWORDS
from cuplug._source.fusion.fused_call import OPTIONS, FusedCall, called_at_once
from cuplug._source.fusion.plan import Plan
from cuplug._source.fusion.symbol import Symbol

_NUMBERS = (int, float, complex)


@public
@called_at_once
class Fused(FusedCall):
    """The result of `fuse`: the function, traced once for each set of dtypes and compiled.

    Attributes
    ----------
    function : callable
        The original function.

    Examples
    --------
    >>> cuplug.fuse(lambda x: 2 * x)(numpy.ones(2))
    array([2., 2.])
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._signature = _signature(function)
        functools.update_wrapper(self, function)
        kinds = {x.kind for x in self._signature.parameters.values()}
        if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            raise TypeError(f"fuse: {self._name}: got * or **, expected parameters with names")
        self._options = sorted(OPTIONS - self._signature.parameters.keys())
        self._n = len(self._signature.parameters)
        self._has_names = inspect.Parameter.KEYWORD_ONLY in kinds
        self._plans: dict[Any, Plan] = {}

    @property
    def _name(self) -> str:
        name = getattr(self.function, "__name__", "fused")
        return name if name.isidentifier() and name not in KEYWORDS else "fused"

    def _call_anew(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Compute a call with dtypes that no earlier call had."""
        given = args
        options = {x: keywords.pop(x) for x in self._options if x in keywords} if keywords else {}
        if keywords or len(args) != self._n or self._has_names:
            try:
                bound = self._signature.bind(*args, **keywords)
            except TypeError as error:
                raise TypeError(f"fuse: {self._name}: {error}") from None
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        if Symbol in map(type, args):  # a traced function that includes this one
            if options:
                seen = ", ".join(options)
                raise TypeError(
                    f"fuse: {self._name}: got {seen} in a fused function, expected none"
                )
            return self._apply(args)
        key = tuple([self._key(x) for x in args])
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = self._trace(args)
        found = plan(args, options)
        if args is given and len(self._options) == len(OPTIONS) and plan.direct is not None:
            self._remember(args, *plan.direct)
        return found

    def _key(self, x: Any) -> Any:
        """Return the dtype, type or constant that the code is compiled for."""
        if type(x) is int and not -(1 << 63) <= x < 1 << 63:  # no parameter can hold its value
            return "constant", x
        if type(x) in _NUMBERS:
            return type(x)
        if x is None or isinstance(x, (bool, str)):
            return "constant", x
        dtype = getattr(x, "dtype", None)
        if dtype is None:
            wanted = "an array, a number, a bool, a string or None"
            raise TypeError(f"fuse: {self._name}: got {type(x).__name__}, expected {wanted}")
        return isinstance(x, np.generic), dtype

    def _trace(self, args: Sequence[Any]) -> Plan:
        given = [self._symbol(k, x) for k, x in enumerate(args)]
        try:
            return Plan(self._name, self._apply(given), list(self._signature.parameters))
        except RecursionError:
            raise RecursionError(f"fuse: {self._name}: it calls itself without end") from None

    def _apply(self, args: Sequence[Any]) -> Any:
        """Call the original function."""
        given = iter(args)
        positional, named = [], {}
        for name, parameter in self._signature.parameters.items():
            if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
                named[name] = next(given)
            else:
                positional.append(next(given))
        return self.function(*positional, **named)

    def _symbol(self, k: int, x: Any) -> Any:
        if type(self._key(x)) is tuple and self._key(x)[0] == "constant":
            return x
        if type(x) in _NUMBERS:
            return Symbol("number", type(x), k)
        kind = "number" if isinstance(x, np.generic) else "array"
        return Symbol(kind, self._dtype_of(x), k)

    def _dtype_of(self, x: Any) -> Any:
        dtype = x.dtype
        try:
            if not isinstance(dtype, np.dtype):
                dtype = numpy_dtype(str(dtype).rpartition(".")[2])
            kind_of(dtype)
        except TypeError as error:
            raise TypeError(f"fuse: {self._name}: {error}") from None
        return dtype

    def __get__(self, instance: Any, owner: type | None = None) -> Fused:
        """Return a method of an object, whose attributes are constants in the trace."""
        return self if instance is None else Fused(self.function.__get__(instance, owner))

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._is_global():
            return str(self.function.__qualname__)
        try:
            import cloudpickle
        except ImportError:
            raise pickle.PicklingError(
                f"fuse: {self._name}: to pickle functions that no module has, install the package "
                "cloudpickle: pip install cloudpickle"
            ) from None
        return fuse, (PublicCall(pickle.loads, cloudpickle.dumps(self.function)),)

    def __copy__(self) -> Fused:
        return self  # as functions are, so objects that hold one can be copied without cloudpickle

    def __deepcopy__(self, memo: dict[int, Any]) -> Fused:
        return self

    def _is_global(self) -> bool:
        """Return whether other processes can import it: workers have another `__main__`."""
        name = str(getattr(self.function, "__module__", "__main__"))
        found: Any = sys.modules.get(name) if name != "__main__" else None
        for part in str(getattr(self.function, "__qualname__", "?")).split("."):
            found = getattr(found, part, None)
        return found is self

    def __dask_tokenize__(self) -> Any:
        from dask.base import normalize_token

        return "cuplug.Fused", normalize_token(self.function)

    def __repr__(self) -> str:
        return f"<fused function {self._name}{self._signature}>"


def _signature(function: Any) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # not a function, or one without a signature
        wanted = "a Python function of arrays"
        raise TypeError(f"fuse: function: got {function!r}, expected {wanted}") from None


@public
def fuse(function: Callable[..., Any]) -> Fused:
    """Turn a Python function of arrays into one operator: `@cuplug.fuse`.

    It is called once for each set of dtypes, with symbols that record the operations on them, and
    compiled into one `elementwise` operator, or a `reduction`; the compiled code is cached on disk.
    dtypes of results follow NumPy. If reduced values are used element by element again, as in a
    softmax, it becomes one function of rows if all reductions are along the last axis, with
    `keepdims`; otherwise there is one operator for each reduction and one for the code after it.

    It also decorates methods. Each access to `object.method` traces it again, with the object's
    current attributes as constants; keep the result if you call it often. Functions that cannot be
    imported, such as lambdas and functions of the main program, are pickled whole, by the package
    cloudpickle.

    Parameters
    ----------
    function : callable
        A function of arrays of one library and of numbers, with Python's operators and the
        functions of `cuplug.array_api`, NumPy or `x.__array_namespace__()`: functions of single
        elements, `where`, `clip`, `astype`, and reductions. Arguments that are bool, str or None
        are constants, and may decide an `if`. It returns an array, or a tuple or list of arrays.

    Returns
    -------
    Fused
        Called like the function, and with `out`, `device` and `stream` like operators.

    Raises
    ------
    TypeError
        At a call, if the function uses an array in a way that no element-wise operator can.

    Examples
    --------
    >>> @cuplug.fuse
    ... def scaled(x, y):
    ...     return 2 * x + y
    >>> scaled(numpy.array([1.0, 2.0]), 1.0)
    array([3., 5.])
    """
    return Fused(function)

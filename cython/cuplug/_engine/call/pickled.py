# SPDX-License-Identifier: Apache-2.0
"""The pickled form of operators of files: they are found again, or the reason is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cuplug._engine.base.public import public
from cuplug._engine.call.operator import Operator
from cuplug.errors import NotFoundError, OperatorMissingError

__all__ = ["OperatorFunction", "PickledOperator"]


@public
class PickledOperator:
    """An operator that could not be unpickled: its plugin is missing, or is another build.

    Unpickling returns the operator itself if the process has its code. Otherwise it returns this
    object instead of an error, which would end not the task but the process that unpickles, such as
    a cluster's worker. Each use searches again, and raises the error.

    Parameters
    ----------
    find : callable
        `cuplug.find`, or another function that returns the operator.
    arguments : tuple
        Arguments of `find`, the operator's name first.
    member : str, optional
        The operator among those that `find` returns.

    Examples
    --------
    >>> missing = cuplug.PickledOperator(cuplug.find, ("no_such_operator",))
    >>> missing.name
    'no_such_operator'
    """

    find: Callable[..., Any]
    arguments: tuple[Any, ...]
    member: str

    def __new__(cls, find: Callable[..., Any], arguments: tuple[Any, ...], member: str = "") -> Any:
        """Return the operator; an object of this class if it cannot be found."""
        self = super().__new__(cls)
        self.find, self.arguments, self.member = find, arguments, member
        try:
            return self.operator()
        except Exception:  # any error: the first call raises it
            return self

    @property
    def name(self) -> str:
        """The operator's name, without the plugin's name.

        Examples
        --------
        >>> cuplug.PickledOperator(cuplug.find, ("no_such_plugin.twice",)).name
        'twice'
        """
        return self.member or str(self.arguments[0]).rpartition(".")[2]

    __name__ = name

    def operator(self) -> Operator:
        """Return the operator.

        Raises
        ------
        PluginError
            If the file is another build, or is rejected; the message has both versions and digests.
        NotFoundError
            If the plugin does not exist; the exception is also a PluginError.

        Examples
        --------
        >>> missing = cuplug.PickledOperator(cuplug.find, ("no_such_plugin.twice",))
        >>> try:
        ...     missing.operator()
        ... except cuplug.NotFoundError:
        ...     print("install the plugin, then try again")
        install the plugin, then try again
        """
        try:
            found = self.find(*self.arguments)
        except NotFoundError as missing:
            raise OperatorMissingError(self._missing(missing)) from None
        return getattr(found, self.member) if self.member else found

    def _missing(self, error: NotFoundError) -> str:
        name, *known = self.arguments
        if self.member or len(known) != 2 or not all(known):
            return str(error)
        version, digest = known
        wanted = f"version {version} with SHA-256 {digest}"
        bring = "install its file here, or bring it with cuplug.dask.Plugins"
        return f"{name}: got no such plugin, expected {wanted}; {bring}\n  {error}"

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Call the operator, if it can be found now."""
        return self.operator()(*args, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(Operator, name):
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")
        return getattr(self.operator(), name)

    def __reduce__(self) -> tuple[Any, ...]:
        last = (self.member,) if self.member else ()
        return PickledOperator, (self.find, self.arguments, *last)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PickledOperator):
            return NotImplemented
        return self.__reduce__() == other.__reduce__()

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<pickled operator {self.name}, which is not here>"


class OperatorFunction:
    """An operator as a function of a library, which may have been unpickled without its plugin.

    Derived classes receive an operator in `_take`, at the first use if it is missing.
    """

    operator: Operator

    def __init__(self, operator: Operator | PickledOperator) -> None:
        if not isinstance(operator, (Operator, PickledOperator)):
            kind = type(operator).__name__
            raise TypeError(f"Function: operator: got {kind}, expected a cuplug.Operator")
        self.__name__ = self.__qualname__ = operator.name
        if isinstance(operator, PickledOperator):
            self._pickled = operator
        else:
            self._take(operator)

    def _take(self, operator: Operator) -> None:
        self.operator = operator
        self.__doc__ = operator.__doc__

    def __getattr__(self, name: str) -> Any:
        pickled = self.__dict__.get("_pickled")
        if pickled is not None and not name.startswith("__"):
            self._take(pickled.operator())
            if name in self.__dict__:
                return self.__dict__[name]
        raise AttributeError(f"{type(self).__name__} of {self.__name__} has no attribute {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.__dict__.get("operator") or self.__dict__["_pickled"],)

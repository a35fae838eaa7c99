# SPDX-License-Identifier: Apache-2.0
"""What operators of files are pickled as: how they are found again, or why they are not."""

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

    Unpickling gives the operator itself if the process has its code. If not, it gives this object
    instead of an error, which would end not the task but the process that unpickles, as a worker of
    a cluster. Each use searches again, and raises what is wrong.

    Parameters
    ----------
    find : callable
        `cuplug.find`, or what else returns the operator.
    arguments : tuple
        Its arguments, the operator's name first.
    member : str, optional
        The operator among those that `find` returns.
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
        except Exception:  # any: it is raised by the first call
            return self

    @property
    def name(self) -> str:
        """The operator's name, without that of its plugin."""
        return self.member or str(self.arguments[0]).rpartition(".")[2]

    __name__ = name

    def operator(self) -> Operator:
        """Return the operator.

        Raises
        ------
        PluginError
            The file is another build, or is rejected; both versions and digests are in the message.
        NotFoundError
            There is no such plugin; also a PluginError.
        """
        try:
            found = self.find(*self.arguments)
        except NotFoundError as missing:
            raise OperatorMissingError(self._missing(missing)) from None
        return getattr(found, self.member) if self.member else found

    def _missing(self, error: NotFoundError) -> str:
        name, *known = self.arguments
        if self.member or not all(known):
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

    Derived classes take an operator in `_take`, which is put off to the first use if it is missing.
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

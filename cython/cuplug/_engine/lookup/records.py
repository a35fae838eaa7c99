# SPDX-License-Identifier: Apache-2.0
"""Records of plugins and directories in listings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from cuplug._engine.base.public import public
from cuplug._engine.call.operator import Operator

if TYPE_CHECKING:  # which no other process needs
    from cuplug._engine.modules.function import ModuleFunction

__all__ = ["Directory", "Plugin", "PluginFile"]


@public
class PluginFile(NamedTuple):
    """A library on the search path, from its symbol table; its code was not run.

    Examples
    --------
    >>> gather = next(x for x in cuplug.plugins() if "gather" in x.operators)
    >>> gather.name, gather.state
    ('gather', 'ok')
    """

    name: str  # "" if it could not be read
    version: str
    path: str
    state: str  # "ok", "shadowed", "duplicate", "rejected" or "changed"
    reason: str  # "" for "ok"
    origin: str  # the origin of the directory on the search path
    operators: tuple[str, ...]
    signatures: tuple[str, ...]
    device_types: tuple[str, ...]  # "cpu", "cuda"
    architectures: tuple[int | str, ...]  # compute capabilities: 900 for 9.0, "900a" for 9.0a
    abi: str  # "1.0"
    loaded: bool  # its code is in the process
    # Or "adopted": a library with a description instead of a table; or "module", of tvm-ffi.
    kind: str = "plugin"


class Listing(list[PluginFile]):
    """The libraries on the search path, which notebooks show as a table."""

    def __reduce__(self) -> tuple[type, tuple[list[PluginFile]]]:
        return list, (list(self),)

    def _repr_html_(self) -> str:
        from html import escape

        def row(tag: str, *cells: str) -> str:
            return f"<tr>{''.join(f'<{tag}>{escape(x)}</{tag}>' for x in cells)}</tr>"

        rows = [row("th", "Name", "Version", "State", "Devices", "Operators", "File")]
        for x in self:
            state = f"{x.state}: {x.reason}" if x.reason else x.state
            own = ", ".join(x.operators), x.path
            rows.append(row("td", x.name, x.version, state, ", ".join(x.device_types), *own))
        return f"<table>{''.join(rows)}</table>"


@public
class Directory(NamedTuple):
    """A directory of the search path.

    Examples
    --------
    >>> {"ok", "missing", "rejected", "duplicate"} >= {x.state for x in cuplug.search_path()}
    True
    """

    path: str
    origin: str
    state: str  # "ok", "missing", "rejected" or "duplicate"
    reason: str  # "" for "ok"


@public
class Plugin:
    """A plugin that was passed to `cuplug.load`; its operators are attributes.

    Attributes
    ----------
    name, version, path : str
    operators : tuple of Operator
    functions : tuple
        The functions of a tvm-ffi module without a description; they have no signatures.

    Examples
    --------
    >>> plugin = cuplug.Plugin((cuplug.find("gather"),))  # as cuplug.load returns it
    >>> plugin.gather(numpy.array([1.0, 2.0]), numpy.array([1]))
    array([2.])
    """

    def __init__(
        self,
        operators: tuple[Operator, ...] = (),
        functions: tuple[ModuleFunction, ...] = (),
    ) -> None:
        if not isinstance(operators, tuple) or not operators + functions:
            raise TypeError("cuplug.Plugin: get one with cuplug.load")
        if wrong := [x for x in operators if not isinstance(x, Operator)]:
            seen = type(wrong[0]).__name__
            raise TypeError(f"cuplug.Plugin: operators: got {seen}, expected cuplug.Operator")
        self._take(operators, functions)

    def _take(
        self, operators: tuple[Operator, ...], functions: tuple[ModuleFunction, ...] = ()
    ) -> None:
        """Replace the operators."""
        first = operators[0] if operators else functions[0]
        self.name: str = first.plugin
        self.version: str = first.version
        self.path: str = first.path
        self.operators, self.functions = operators, functions

    def _own(self) -> tuple[Operator | ModuleFunction, ...]:
        return (*self.__dict__.get("operators", ()), *self.__dict__.get("functions", ()))

    def __getattr__(self, name: str) -> Callable[..., object]:
        for operator in self._own():
            if operator.name == name:
                return operator
        raise AttributeError(f"plugin {self.__dict__.get('name')} has no operator {name}")

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *(operator.name for operator in self._own())])

    def _repr_html_(self) -> str:
        """Return all operators, for notebooks."""
        return "".join(f"<p>{operator._repr_html_()}</p>" for operator in self.operators)

    def __repr__(self) -> str:
        names = ", ".join(operator.name for operator in self._own())
        return f"<plugin {self.name} {self.version} from {self.path}: {names}>"

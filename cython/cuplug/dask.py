# SPDX-License-Identifier: Apache-2.0
"""All operators on dask arrays: `from cuplug.dask import gather`.

y = gather(x, index)  # x: dask.array; nothing is computed yet

Function    an operator that takes dask arrays
Plugins     transfers plugin files to the workers of a cluster
"""

# Names without an underscore would hide operators.
from typing import Any as _Any

from cuplug import ops as _ops
from cuplug._engine.call.operator import Operator as _Operator
from cuplug._engine.call.pickled import OperatorFunction as _OperatorFunction
from cuplug._engine.lookup.attribute import operator_attribute as _operator_attribute
from cuplug._integration.dask.block import Block, Item
from cuplug._integration.dask.call import call_on_blocks as hand_on

__all__ = ["Block", "Function", "Item", "PluginFiles", "Plugins", "hand_on"]  # noqa: F822  (below)


class Function(_OperatorFunction):
    """An operator that takes and returns dask arrays.

    Parameters
    ----------
    operator : Operator
        `cuplug.dask.gather` is `Function(cuplug.find("gather"))`.

    Examples
    --------
    >>> gather = cuplug.dask.Function(cuplug.find("gather"))
    >>> gather(dask.array.arange(4), numpy.array([3, 0])).compute()
    array([3, 0])
    """

    def _take(self, operator: _Operator) -> None:
        super()._take(operator)
        self.__signature__ = operator.__signature__

    def __call__(self, *args: _Any, **keywords: _Any) -> _Any:
        """Call the operator; the result is computed at once if no argument is a dask array."""
        return self.operator(*args, **keywords)  # which delegates dask arrays to `hand_on`

    def __repr__(self) -> str:
        return f"cuplug.dask.Function({self.operator!r})"


def __getattr__(name: str) -> _Any:
    if name in ("Plugins", "PluginFiles"):  # for clusters; require the package distributed
        from cuplug._integration.dask import plugins

        return getattr(plugins, name)
    return Function(_operator_attribute(__name__, name))


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_ops)})

# SPDX-License-Identifier: Apache-2.0
"""All operators as PyTorch operators: `from cuplug.torch import gather`.

y = gather(x, index)  # torch.ops.cuplug.gather: recorded, traced and run like PyTorch's operators

Function    any operator as a PyTorch function
"""

# Names without an underscore would hide operators.
from typing import Any as _Any

from cuplug import ops as _ops
from cuplug._engine.call.operator import Operator as _Operator
from cuplug._engine.call.pickled import OperatorFunction as _OperatorFunction
from cuplug._engine.lookup.attribute import operator_attribute as _operator_attribute
from cuplug._engine.signature.call_signature import to_inspect as _to_inspect
from cuplug._integration.torch.register import hand_on
from cuplug._integration.torch.register import register as _register

__all__ = ["Function", "hand_on"]


class Function(_OperatorFunction):
    """An operator as a PyTorch function.

    Parameters
    ----------
    operator : Operator
        `cuplug.torch.gather` is `Function(cuplug.find("gather"))`.

    Attributes
    ----------
    operator : Operator
    packet : OpOverloadPacket
        The PyTorch operator: `torch.ops.cuplug.gather`.

    Examples
    --------
    >>> gather = cuplug.torch.Function(cuplug.find("gather"))
    >>> gather(torch.tensor([1.0, 2.0]), torch.tensor([1, 0]))
    tensor([2., 1.])
    """

    def _take(self, operator: _Operator) -> None:
        super()._take(operator)
        whole = _register(operator)
        self.packet = whole.packet
        self._call = whole if whole.spelled or whole.choose or whole.dtypes else whole.packet
        self.__signature__ = _to_inspect(operator.signatures, is_own=False)

    def __call__(self, *args: _Any, **keywords: _Any) -> _Any:
        """Call the operator on tensors;several outputs are returned as a tuple."""
        return self._call(*args, **keywords)

    def __repr__(self) -> str:
        return f"cuplug.torch.Function({self.operator!r})"


def __getattr__(name: str) -> _Any:
    return Function(_operator_attribute(__name__, name))


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_ops)})

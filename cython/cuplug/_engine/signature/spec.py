# SPDX-License-Identifier: Apache-2.0
"""Arrays without elements: only shapes and dtypes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.base.numpy_dtypes import name_of_descr
from cuplug._engine.base.public import public

__all__ = ["ArraySpec", "Inferred"]


@public
class ArraySpec:
    """An array without elements, for `Operator.infer`.

    Parameters
    ----------
    dtype : str, or dtype of NumPy, PyTorch or JAX
        Stored as the name that signatures have: "float32".
    shape : sequence of int
        Sizes. -1 in a result of `infer` is known after the run.

    Raises
    ------
    TypeError
        If operators take no arrays of such a dtype.

    Examples
    --------
    >>> x, index = cuplug.ArraySpec("float32", (1000, 3)), cuplug.ArraySpec("int64", (10,))
    >>> cuplug.ops.gather.infer(x, index).outputs[0].shape
    (10, 3)
    """

    __slots__ = ("dtype", "shape")  # no dataclass: every process would load that module

    def __init__(self, dtype: Any, shape: Iterable[Any]) -> None:
        is_structure = getattr(dtype, "names", None) is not None
        name = name_of_descr(dtype) if is_structure else str(getattr(dtype, "name", dtype))
        name = name.rpartition(".")[2]
        if name not in DTYPES:
            raise TypeError(f"ArraySpec: dtype: got {dtype!r}, expected one of {', '.join(DTYPES)}")
        self.dtype = name
        self.shape = tuple(shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Examples
        --------
        >>> cuplug.ArraySpec("float32", (3, 4)).ndim
        2
        """
        return len(self.shape)

    def __repr__(self) -> str:
        return f"ArraySpec(dtype={self.dtype!r}, shape={self.shape})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArraySpec):
            return NotImplemented
        return (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))

    def __reduce__(self) -> tuple[Any, ...]:
        return ArraySpec, (self.dtype, self.shape)


@public
class Inferred(NamedTuple):
    """The result of `Operator.infer`.

    Examples
    --------
    >>> spec = cuplug.ArraySpec("float32", (3, 4))
    >>> cuplug.find("relu").infer(spec)
    Inferred(overload=0, outputs=(ArraySpec(dtype='float32', shape=(3, 4)),))
    """

    overload: int  # of `signatures` and `properties`
    outputs: tuple[ArraySpec, ...]

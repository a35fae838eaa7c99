# SPDX-License-Identifier: Apache-2.0
"""Arrays without elements: what is asked, and said, of shapes and dtypes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from cuplug.base.dtypes import DTYPES
from cuplug.base.public import public

__all__ = ["ArraySpec", "Inferred"]


@public
@dataclass(frozen=True)
class ArraySpec:
    """An array without elements, for `Operator.infer`.

    Parameters
    ----------
    dtype : str, or dtype of NumPy, PyTorch or JAX
        Kept as the name that signatures have: "float32".
    shape : sequence of int
        A size of -1 in what `infer` returns is known only after the run.

    Raises
    ------
    TypeError
        Operators take no arrays of such a dtype.
    """

    dtype: str
    shape: tuple[Any, ...]

    def __post_init__(self) -> None:
        name = str(getattr(self.dtype, "name", self.dtype)).rpartition(".")[2]
        if name not in DTYPES:
            raise TypeError(
                f"ArraySpec: dtype: seen {self.dtype!r}, wanted one of {', '.join(DTYPES)}"
            )
        object.__setattr__(self, "dtype", name)
        object.__setattr__(self, "shape", tuple(self.shape))

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


@public
class Inferred(NamedTuple):
    """What a call would give: by `Operator.infer`."""

    row: int  # of `signatures` and `properties`
    outputs: tuple[ArraySpec, ...]

# SPDX-License-Identifier: Apache-2.0
"""The variants for which code is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Variant(NamedTuple):
    """One combination of device, dtypes and layout, with the fields of `cuplug_variant`."""

    device: int  # the number of a GPU; -1: the host
    types: tuple[str, ...]  # of each array; "" for an omitted optional one
    still: int = 0
    fixed: int = 0
    near: int = 0
    across: int = 0
    width: int = 1
    unroll: int = 1
    ndim: int = 0
    n_reduced: int = 0
    wide: bool = False
    columns: bool = False
    alone: bool = False
    flat: bool = False
    few: bool = False
    stores: bool = False
    walk: int = 0

    @property
    def on_host(self) -> bool:
        """True for code that runs on the CPU."""
        return self.device < 0


Compile: TypeAlias = Callable[[Variant], tuple[int, int]]

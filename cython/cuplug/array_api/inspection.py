# SPDX-License-Identifier: Apache-2.0
"""What the library can do, as the standard asks for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from cuplug._engine.array.make import empty
from cuplug._engine.array.promotion import DEFAULTS
from cuplug._engine.cuda.devices import devices
from cuplug._engine.cuda.placement import HOST
from cuplug.array_api.dtypes import NAMES, isdtype


class Info:
    """What `__array_namespace_info__` returns."""

    def capabilities(self) -> dict[str, Any]:
        """Return what depends on values, and limits."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Return where new arrays are made."""
        return empty(0).device

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the dtypes of arrays that are made without one."""
        return {kind: np.dtype(name) for kind, name in DEFAULTS.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the dtypes of a kind, by their names."""
        every = {name: np.dtype(name) for name in NAMES}
        return {name: x for name, x in every.items() if kind is None or isdtype(x, kind)}

    def devices(self) -> list[Any]:
        """Return the host and the GPUs."""
        return [HOST, *devices()]


def __array_namespace_info__() -> Info:
    """Return what the library can do."""
    return Info()

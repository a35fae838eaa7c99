# SPDX-License-Identifier: Apache-2.0
"""cuplug's own array, on the host or a GPU: memory, layout, views, exports. Computes nothing."""

import sys
from types import ModuleType
from typing import Any, NoReturn


class _Package(ModuleType):
    """This package, which has the name of a function of NumPy's and CuPy's."""

    def __call__(self, *arguments: Any, **keywords: Any) -> NoReturn:
        raise TypeError("cuplug.array: seen a call of a package; cuplug.asarray makes arrays")


sys.modules[__name__].__class__ = _Package

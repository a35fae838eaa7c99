# SPDX-License-Identifier: Apache-2.0
"""The GPU memory that the array libraries of this process hold."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any


def free_caches(device: int) -> str:
    """Make the libraries release unused memory, and return the amounts that they then hold.

    Returns
    -------
    str
        ", PyTorch 3.00 GiB, CuPy 0.50 GiB": those that are imported and hold something.
    """
    text = ""
    for name, title, free in (("torch", "PyTorch", _free_torch), ("cupy", "CuPy", _free_cupy)):
        library = sys.modules.get(name)
        with suppress(Exception):  # such as in a library that is being imported
            held = free(library, device) if library else 0
            text += f", {title} {held / 2**30:.2f} GiB" if held else ""
    return text


def _free_torch(torch: Any, device: int) -> int:
    if not torch.cuda.is_initialized():
        return 0
    torch.cuda.empty_cache()
    return int(torch.cuda.memory_reserved(device))


def _free_cupy(cupy: Any, device: int) -> int:
    with cupy.cuda.Device(device):
        pool = cupy.get_default_memory_pool()
        pool.free_all_blocks()
        return int(pool.total_bytes())

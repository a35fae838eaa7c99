# SPDX-License-Identifier: Apache-2.0
"""What the kernels of a plugin take on a GPU, for `cuplug info`."""

from __future__ import annotations

from typing import Any

from cuplug._engine.cuda.devices import devices
from cuplug._integration.author import elf, fatbin
from cuplug._source.kernels.function import Function, Image
from cuplug.errors import CudaError


def kernels_of(path: str) -> list[dict[str, Any]]:
    """Return the facts of the kernels in a library on the first GPU; none without a GPU."""
    if not devices():
        return []
    found = []
    try:
        library = elf.read_library(path)
        sections = library.fatbins or library.relocatable_fatbins
        images = [Image(code, path) for code in fatbin.containers(sections)]
    except (elf.ElfError, OSError, ValueError):
        return []
    for image in images:
        try:
            found += [_facts(Function(image, x, x, None, 0)) for x in image.list_kernels()]
        except CudaError:  # code for other GPUs, or without kernels
            continue
    return found


def _facts(kernel: Function) -> dict[str, Any]:
    n_threads, _ = kernel.suggest_block()
    attributes = kernel.attributes()._asdict()
    most = kernel.max_active_blocks(n_threads) * n_threads
    return {"kernel": kernel.name, **attributes, "block": n_threads, "active_threads": most}

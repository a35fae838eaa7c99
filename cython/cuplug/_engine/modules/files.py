# SPDX-License-Identifier: Apache-2.0
"""Detection of tvm-ffi modules, and the names that they export. Their code is not run."""

from __future__ import annotations

from cuplug._engine.adoption.description import read_sidecar
from cuplug._engine.discovery.symbols import symbol_reader

PREFIX = "__tvm_ffi_"
OWN = "__tvm_ffi__"  # exports other than functions: a context, metadata, documentation
RUNTIME = "TVMFFI"

read_symbols = symbol_reader(PREFIX, RUNTIME)


def functions_in(path: str) -> list[str]:
    """Return the functions that a file exports as a tvm-ffi module."""
    names = [x for x in read_symbols(path).defined if x.startswith(PREFIX)]
    return sorted(x.removeprefix(PREFIX) for x in names if not x.startswith(OWN))


def is_module(path: str) -> bool:
    """Return whether a file is a module, and is not adopted by C prototypes."""
    if not functions_in(path):
        return False
    try:
        return "prototypes" not in read_sidecar(path)
    except ValueError:
        return True

# SPDX-License-Identifier: Apache-2.0
"""Compilation of generated CUDA C++ to functions on a GPU, by NVRTC."""

from __future__ import annotations

from collections.abc import Sequence

from cuplug._source.compilers.program import architecture_of
from cuplug._source.expressions.definitions import load_functions

# Each operation rounds, as on the host. Users' options follow and override these.
OPTIONS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space")


def compile_cuda(
    source: str,
    symbols: list[str],
    device: int,
    name: str,
    texts: dict[str, str],
    options: Sequence[str],
) -> list[int]:
    """Compile and load CUDA C++ and return the addresses of kernels.

    Parameters
    ----------
    source : str
        Its `#line` directives refer to the texts in `texts`.
    symbols : list of str
        Kernels with C linkage.
    device : int
    name : str
        The operator's name, for messages.
    texts : dict
        The user's texts, by the names that error messages use.
    options : sequence of str
        The user's options for NVRTC.

    Raises
    ------
    CompileError
        The text has an error: the message shows the user's lines. Or NVRTC is missing.
    """
    # imported here, since the host needs none of it
    from cuplug._source.compilers.jit import compile_to_binary

    binary = compile_to_binary(
        source,
        options=[*OPTIONS, *options],
        architecture=architecture_of(device),
        name=f"{name}.cu",
        headers=texts,
    )
    return load_functions(binary.image, name, symbols, device)

# SPDX-License-Identifier: Apache-2.0
"""Generated CUDA C++ -> functions on a GPU, by NVRTC."""

from __future__ import annotations

from collections.abc import Sequence

from cuplug._source.compilers.program import architecture_of
from cuplug._source.expressions.definitions import load_functions

# Each operation rounds, as on the host; options that users give come later and win.
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
        Its `#line` directives name the texts of `texts`.
    symbols : list of str
        Kernels with C linkage.
    device : int
    name : str
        Of the operator, for messages.
    texts : dict
        The user's texts by the names that error messages give them.
    options : sequence of str
        The user's, for NVRTC.

    Raises
    ------
    CompileError
        The text is wrong: the message shows the user's lines. Or there is no NVRTC.
    """
    from cuplug._source.compilers.jit import compile_to_binary  # which nothing on the host needs

    binary = compile_to_binary(
        source,
        options=[*OPTIONS, *options],
        architecture=architecture_of(device),
        name=f"{name}.cu",
        headers=texts,
    )
    return load_functions(binary.image, name, symbols, device)

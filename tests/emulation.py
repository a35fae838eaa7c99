# SPDX-License-Identifier: Apache-2.0
"""Modules without a GPU: NVRTC compiles for names and types, the C++ compiler for the emulated
driver (tests/fixtures/emulated_cuda.c), where kernels run thread after thread."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

from cuplug.compilers import jit, kernel_types
from cuplug.compilers.program import compile_program

HEAD = Path(__file__).parent / "fixtures" / "emulated_kernel.h"
VARIABLE = re.compile(r"__(?:device|constant)__[^;(){}=]*?(\w+)\s*(?:\[[^;{}]*?\])*\s*[;=]")


def install(directory: str) -> None:
    """Make `cuplug.compile` compile for the emulated driver in this process."""

    def emulate(path, text, name, architecture, options, names, headers, *rest):
        _, lowered, is_ptx, log = compile_program(
            path, text, name, architecture, options, names, headers, *rest
        )
        source = text.removesuffix(kernel_types.PROBE)
        launches = []
        for k, symbol in enumerate(lowered[: len(names) // 2]):
            codes = kernel_types.read_probe(lowered[len(names) // 2 + k])
            launches.append(_launch(names[k], symbol, codes))
        qualified = {each.rpartition("::")[2] for each in names if each.startswith("&")}
        variables = [each for each in VARIABLE.findall(source) if each not in qualified]
        launches += [_size(variable, variable) for variable in variables]
        defines = [option for option in options if option.startswith("-D")]
        library = _build(directory, source + "".join(dict.fromkeys(launches)), defines)
        return library.encode(), lowered, is_ptx, log

    jit.compile_program = emulate


def _launch(name: str, symbol: str, codes: tuple[int, ...] | None) -> str:
    if codes is None:
        return _size(symbol, name.removeprefix("&"))
    sizes = "".join(f"{code >> 16 & 0xFFFFFF}, " for code in codes)
    return (
        f'\nextern "C" const size_t sizes_{symbol}[] = {{{sizes}0}};'
        f'\nextern "C" void emulated_{symbol}(const unsigned size[6], void **arguments) {{'
        f" emulated::run_grid({name}, size, arguments); }}\n"
    )


def _size(symbol: str, name: str) -> str:
    return f'\nextern "C" const size_t sizes_{symbol} = sizeof({name});\n'


def _build(directory: str, source: str, defines: list[str]) -> str:
    head = f'#include "{HEAD}"\n#define __constant__\n#define __restrict__\n'
    text = f"{head}{source}"
    path = f"{directory}/{hashlib.sha256(repr((text, defines)).encode()).hexdigest()}"
    if not os.path.exists(f"{path}.so"):
        Path(f"{path}.cpp").write_text(text)
        command = ["c++", "-std=c++17", "-O1", "-g0", "-w", "-fPIC", "-shared", "-ffp-contract=off"]
        subprocess.run([*command, *defines, f"{path}.cpp", "-o", f"{path}.so"], check=True)
    return f"{path}.so"

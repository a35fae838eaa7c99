# SPDX-License-Identifier: Apache-2.0
"""CUDA code in a process with the emulated driver (fixtures/emulated_cuda.c). The C++ compiler
turns it into code that runs one thread after another. $EMULATED is the folder for that code.

NVRTC returns names and types for modules. The code of expressions is known when generated."""

import ctypes
import fcntl
import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cuplug._source.compilers import jit, kernel_types, linking, toolkit
from cuplug._source.compilers.program import compile_program, link_program
from cuplug._source.expressions import element_wise, reductions
from cuplug._source.fusion import rowwise
from places import FIXTURES, ROOT

HEAD = "emulated_kernel.h"
# The C++ library is not used, and linking is faster without it.
FLAGS = ["-std=c++17", "-O0", "-w", "-fPIC", "-ffp-contract=off", "-fno-threadsafe-statics"]
LIBRARIES = ["-nodefaultlibs", "-lm", "-lgcc", "-lc"]
COMPILER = [os.environ.get("CXX", "c++"), *FLAGS]
OPTIMIZED = ["-O1"]  # for kernels that run longer than they are compiled
CLUSTERS = ["-DEMULATED_BLOCKS=1", *OPTIMIZED]
VARIABLE = re.compile(r"__(?:device|constant)__[^;(){}=]*?(\w+)\s*(?:\[[^;{}]*?\])*\s*[;=]")

seen: list[str] = []  # the code of expressions
defines: list[str] = []  # for it


def install_expressions(n_blocks: int = 0) -> None:
    """Make operators from expressions run on the emulated driver in this process.

    With `n_blocks`, this number of blocks runs at once.
    """
    defines[:] = [f"-DEMULATED_BLOCKS={n_blocks}"] if n_blocks else []
    element_wise.compile_cuda = reductions.compile_cuda = rowwise.compile_cuda = emulate


def emulate(source, symbols, device, name, texts, options, space="cuplug") -> list[int]:
    """Compile like `compile_cuda`; return the functions that launch the kernels."""
    seen.append(source)
    launches = "".join(f"EMULATE({space}, {symbol})\n" for symbol in symbols)
    if space:  # a unique one, as all libraries would share one definition of a name
        source = f"#define {space} {space}_{hashlib.sha256(source.encode()).hexdigest()}\n{source}"
    library = ctypes.CDLL(_build(f"{source}\n{launches}", defines))
    functions = (library[f"emulated_{symbol}"] for symbol in symbols)
    return [ctypes.cast(function, ctypes.c_void_p).value for function in functions]


def install_modules() -> None:
    """Make `cuplug.compile` compile for the emulated driver in this process."""

    def emulate(path, text, name, architecture, options, names, headers, *rest):
        image, lowered, is_ptx, log = compile_program(
            path, text, name, architecture, options, names, headers, *rest
        )
        if architecture.startswith("compute_"):  # PTX, to be read
            return image, lowered, is_ptx, log
        source = text.removesuffix(kernel_types.PROBE)
        launches = []
        for k, symbol in enumerate(lowered[: len(names) // 2]):
            codes = kernel_types.read_probe(lowered[len(names) // 2 + k])
            launches.append(_launch(names[k], symbol, codes))
        qualified = {each.rpartition("::")[2] for each in names if each.startswith("&")}
        variables = [each for each in VARIABLE.findall(source) if each not in qualified]
        launches += [_size(variable, variable) for variable in variables]
        defines = [option for option in options if option.startswith("-D")]
        whole = source + "".join(dict.fromkeys(launches))
        if rest[-1]:  # a part, to be linked
            return whole.encode(), lowered, is_ptx, log
        return _build(whole, defines).encode(), lowered, is_ptx, log

    def link(path, name, parts, options, is_ptx):
        if is_ptx:
            return link_program(path, name, parts, options, is_ptx)
        return _build(b"\n".join(parts.values()).decode()).encode()

    jit.compile_program, linking.link_program = emulate, link


def build_plugin(name: str, cuda: Sequence[str | Path] = (), options: Sequence[str] = ()) -> None:
    """Build a stock plugin whose CUDA entries run on the emulated driver, into $EMULATED.

    `cuda` names its files of CUDA code; the default is all. `options` is for these: OPTIMIZED, or
    CLUSTERS for the blocks of a cluster to run at once. Of processes that request the same plugin,
    the first one builds it.
    """
    path = Path(os.environ["EMULATED"], f"lib{name}.so")
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _compile_plugin(path, ROOT / "plugins" / name, cuda, options)


def _compile_plugin(
    path: Path, folder: Path, cuda: Sequence[str | Path], options: Sequence[str]
) -> None:
    include = [f"-I{ROOT / each}" for each in ("plugins", "include")]
    include += [f"-I{FIXTURES}", f"-I{Path(toolkit.find_nvcc()).resolve().parents[1] / 'include'}"]
    host = ["-x", "c", "-std=gnu11", "-O1", "-w", "-fPIC", "-DCUPLUG_ARCHITECTURES=900"]
    device = ["-x", "c++", "-fpermissive", "-include", "emulated_plugin.h", *options]
    sources = [folder / f"{each}.cu" for each in cuda] or sorted(folder.rglob("*.cu"))
    commands = [[*COMPILER, *device, each] for each in sources]  # they take longest
    commands += [[COMPILER[0], *host, each] for each in sorted(folder.rglob("*.c"))]
    parts = [path.with_suffix(f".{k}.o") for k in range(len(commands))]

    def compile_part(command: list, part: Path) -> None:
        subprocess.run([*command, *include, "-c", "-o", part], check=True)

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(compile_part, commands, parts))
    built = path.with_suffix(".built")
    subprocess.run([COMPILER[0], "-shared", *parts, "-lm", "-o", built], check=True)
    built.rename(path)


def build_sorting() -> None:
    """Build the plugin `sorting` for the emulated driver, with a replacement for CUB's sort."""
    files = ["sorting", "topk", "unique", "searchsorted", "permutation"]
    gpu = [
        "keys",
        "short",
        "tiles",
        "merge",
        "counting",
        "radix_select",
        "few",
        "unique_small",
        "restore",
    ]
    files += [f"gpu/{each}" for each in gpu]
    build_plugin("sorting", [*files, FIXTURES / "emulated_sort"], OPTIMIZED)


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


def _build(source: str, defines: Sequence[str] = ()) -> str:
    """Return the path of the library for a source, which other processes may also request."""
    directory = os.environ["EMULATED"]
    text = f"#include <{HEAD}>\n{source}"
    path = f"{directory}/{hashlib.sha256(repr((text, defines)).encode()).hexdigest()[:32]}"
    if not os.path.exists(f"{path}.so"):
        mine = f"{path}-{os.getpid()}"
        Path(f"{mine}.cpp").write_text(text)
        # The directory has the header precompiled.
        command = [*COMPILER, f"-I{directory}", f"-I{FIXTURES}", *defines, f"{mine}.cpp"]
        subprocess.run([*command, "-shared", *LIBRARIES, "-o", f"{mine}.so"], check=True)
        os.replace(f"{mine}.so", f"{path}.so")
    return f"{path}.so"

# SPDX-License-Identifier: Apache-2.0
"""Compilation of CUDA source by nvcc, for sources that NVRTC rejects.

Such sources include headers of the C++ standard library, or contain host functions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache as once
from functools import cached_property
from pathlib import Path

from cuplug._engine.base import flags
from cuplug._source.compilers import cache, processes, toolkit
from cuplug._source.compilers.nvrtc import NAMES
from cuplug.errors import CompileError

SOURCE = "source.cu"


class Compiler:
    """An nvcc, and the directory of cuplug's headers. nvcc finds the headers of CUDA."""

    def __init__(self, path: str, include: tuple[str, ...]) -> None:
        self.path = path
        self.include = include

    @cached_property
    def identity(self) -> str:
        """Return a text that changes with the compiler."""
        path = os.path.realpath(self.path)
        status = os.stat(path)
        return f"{path} {status.st_size} {status.st_mtime_ns}"

    def compile(
        self,
        text: str,
        name: str,
        architecture: str,
        options: Sequence[str],
        names: Sequence[str],
        headers: Mapping[str, str],
        is_part: bool,
    ) -> tuple[bytes, list[str], str]:
        """Return the image, the lowered names, and the log.

        For each name, a variable whose value is the symbol is appended. PTX shows the value.
        """
        number = architecture.removeprefix("compute_")
        marker = f"cuplug_name_{cache.key(text)[:12]}_"
        relocatable = ["-rdc=true"] if is_part else []
        with processes.working_directory() as directory:
            run = _Run(self, name, options, directory)
            _write(directory, SOURCE, _with_names(text, name, names, marker))
            for title, header in headers.items():
                _write(directory, title, header)
            ptx = run("-ptx", SOURCE, f"-arch=compute_{number}", *relocatable).decode()
            lowered, ptx = _take_names(ptx, marker, len(names))
            if is_part:
                target = f"arch=compute_{number},code=lto_{number}"
                image = run("-ltoir", SOURCE, "-gencode", target, *relocatable)
            elif architecture != number:
                image = ptx.encode()
            else:
                _write(directory, "source.ptx", ptx)
                image = run("-cubin", "source.ptx", f"-arch=sm_{number}")
        return image, lowered, run.log


class _Run:
    """Runs of nvcc on files in a directory; `log` is the output of the first."""

    def __init__(
        self, compiler: Compiler, name: str, options: Sequence[str], directory: str
    ) -> None:
        here = os.path.dirname(name) or "."
        folders = [f"-I{folder}" for folder in (*compiler.include, directory, here)]
        self.command = [compiler.path, "-lineinfo", *options, *folders]
        self.name = name
        self.directory = directory
        self.log = ""

    def __call__(self, kind: str, file: str, *options: str) -> bytes:
        output = os.path.join(self.directory, f"image{kind}")
        files = [os.path.join(self.directory, file), "-o", output]
        # It runs here, so that relative paths in the user's options stay valid.
        command = [*self.command, *options, kind, *files]
        done = processes.run(command, self.directory, os.getcwd(), output)
        said = done.output.strip()
        if not done.succeeded:
            raise CompileError(f"{self.name}: nvcc refuses it:\n{said}", said)
        self.log = self.log or said
        return Path(output).read_bytes()


@once
def find() -> Compiler:
    """Return the nvcc of this machine.

    Raises
    ------
    CompileError
        It does not exist.
    """
    path = toolkit.find_nvcc()
    if path is None:
        raise CompileError(
            "there is no nvcc in $CUDACXX, $NVCC, PATH, $CUDA_HOME or the usual places: install "
            f"the CUDA toolkit, or the Python package {toolkit.WHEELS}; or compile with NVRTC"
        )
    return Compiler(path, (flags.get_include(),))


def _with_names(text: str, name: str, names: Sequence[str], marker: str) -> str:
    """Return the source, under its own name in messages, with a variable for each name."""
    line = f"#line 1 {json.dumps(name, ensure_ascii=False)}"
    addresses = [each if each.startswith("&") else f"&{each}" for each in names]
    variables = [
        f'extern "C" __device__ void *{marker}{k} = (void *)({address});'
        for k, address in enumerate(addresses)
    ]
    return "\n".join([line, text, f'#line 1 "{NAMES}"', *variables, ""])


def _write(directory: str, name: str, text: str) -> None:
    path = Path(directory, name)
    if not path.resolve().is_relative_to(Path(directory).resolve()):
        raise ValueError(f"compile: headers: got {name!r}, expected a name of no folder above")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _take_names(ptx: str, marker: str, n: int) -> tuple[list[str], str]:
    """Return the symbols that the marked variables contain, and PTX without these variables."""
    pattern = rf"^.*\b{marker}(\d+) = (?:generic\()?([\w$]+)\)?;\n"
    found = {int(k): symbol for k, symbol in re.findall(pattern, ptx, re.M)}
    if len(found) != n:
        raise CompileError(f"nvcc: got the symbols of {len(found)} names in its PTX, expected {n}")
    return [found[k] for k in range(n)], re.sub(pattern, "", ptx, flags=re.M)

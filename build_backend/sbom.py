# SPDX-License-Identifier: Apache-2.0
"""The contents of a wheel as CycloneDX: cuplug, and code that compilers and linkers add to it."""

import re
import subprocess
import uuid
from datetime import UTC, datetime
from importlib.metadata import version

from archive import epoch
from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from link import read_version
from packageurl import PackageURL

NAME = "cuplug.cdx.json"
# A bundled component: its name, the type of its package URL, its license.
CYTHON = ("cython", "pypi", "Apache-2.0")
NUMPY = ("numpy", "pypi", "BSD-3-Clause")
LIBGCC = ("libgcc", "generic", "GPL-3.0-or-later WITH GCC-exception-3.1")
COMPILER_RT = ("compiler-rt", "generic", "Apache-2.0 WITH LLVM-exception")
GLIBC = ("libc_nonshared", "generic", "LGPL-2.1-or-later")
CUDART = ("libcudart_static", "generic", "LicenseRef-NVIDIA-CUDA-Toolkit-EULA")
CCCL = ("cccl", "generic", "Apache-2.0 WITH LLVM-exception AND BSD-3-Clause")


def _first_number(command: list[str], pattern: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return re.search(pattern, done.stdout).group(1)


def bundled(python: str, compiler: str, nvcc: str, glibc: str) -> dict[tuple[str, str, str], str]:
    """Return the components of a wheel, and their versions."""
    ask = "from importlib.metadata import version as v; print(v('cython'), v('numpy'))"
    cython, numpy = subprocess.check_output([python, "-c", ask], text=True).split()
    zig = version("ziglang")
    parts = {CYTHON: cython, NUMPY: numpy, COMPILER_RT: f"zig-{zig}", GLIBC: glibc}
    asked = [*compiler.split(), "-dumpfullversion"]  # gcc's: others bring no libgcc
    done = subprocess.run(asked, capture_output=True, text=True)
    if done.returncode == 0:
        parts[LIBGCC] = done.stdout.strip()
    if nvcc:
        parts[CUDART] = parts[CCCL] = _first_number([nvcc, "--version"], r"V([\d.]+)")
    return parts


def component(name: str, kind: str, licence: str, number: str) -> Component:
    """Return one component."""
    licences = LicenseFactory()
    return Component(
        name=name,
        version=number,
        type=ComponentType("library"),
        purl=PackageURL(kind, None, name, number),
        bom_ref=name,
        licenses=[
            licences.make_with_expression(licence)
            if " " in licence
            else licences.make_from_string(licence)
        ],
    )


def describe(parts: dict[tuple[str, str, str], str]) -> bytes:
    """Return the bill of materials of a wheel with these parts, the same for the same parts."""
    whole = component("cuplug", "pypi", "Apache-2.0", read_version())
    inside = [component(*what, number) for what, number in sorted(parts.items())]
    listed = repr([(what, number) for what, number in sorted(parts.items())])
    bom = Bom(
        components=inside,
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"cuplug {read_version()} {listed}"),
    )
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.fromtimestamp(epoch(), UTC)
    bom.register_dependency(whole, inside)
    return f"{JsonV1Dot6(bom).output_as_string(indent=1)}\n".encode()

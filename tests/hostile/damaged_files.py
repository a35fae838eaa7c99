# SPDX-License-Identifier: Apache-2.0
"""Damaged plugins, descriptions and compiled code on disk, and files that change while they run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import cuplug
import numpy as np
from attacks import attack, refusals
from cuplug._engine.base import flags
from cuplug._engine.discovery.table import read_table

STOCK = Path(flags.lib_directory()) / "cuplug"
X = np.arange(-50, 50, dtype=np.float32)


def damage(random: Random, data: bytes) -> bytes:
    """Flip bytes, overwrite numbers, cut, or repeat a part; mostly where headers and tables are."""
    whole = bytearray(data)
    note = data.find(b"cuplug\0\0")
    for _ in range(random.choice([1, 1, 2, 8, 64])):
        place = random.choice([0, 0, max(note - 64, 0), random.randrange(len(whole))])
        at = min(place + random.randrange(512), len(whole) - 9)
        match random.randrange(4):
            case 0:
                whole[at] = random.randrange(256)
            case 1:
                value = random.choice([0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, len(whole)])
                whole[at : at + 8] = value.to_bytes(8, "little")
            case 2:
                whole[at : at + 8] = whole[at + 1 : at + 9]
            case 3:
                whole[at] ^= 1 << random.randrange(8)
    return bytes(whole[: random.randrange(len(whole))] if random.random() < 0.2 else whole)


@attack
def damaged_plugins(random: Random, folder: Path) -> int:
    """Tables of damaged files are read, and the files are listed, without running their code."""
    os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(folder)
    sources = [path.read_bytes() for path in sorted(STOCK.glob("lib*.so"))]
    for k in range(400):
        path = folder / f"libdamaged{k % 40}.so"
        path.write_bytes(damage(random, random.choice(sources)))
        table = read_table(str(path))
        assert table.state in ("ok", "rejected", "no plugin"), table.state
        assert bool(table.reason) == (table.state != "ok"), table
        assert table.rows or table.state != "ok", table
        if k % 40 == 39:
            assert {file.path for file in cuplug.plugins()} >= {str(path)}
            with refusals(cuplug.NotFoundError):
                cuplug.find("none_of_this_name")
    return 400


PIECES = [
    *(
        "[gather]\n",
        "[[",
        "]]",
        "signature = ",
        '"gather(x: float32[n]) -> float32[n]"\n',
        "= = =\n",
    ),
    *(
        "symbol = ",
        "arguments = ",
        '"x, out, n"\n',
        "\0",
        "\xff",
        "a.b.c.d = 1\n",
        "'''",
        '"""',
        "#",
    ),
    *("[" * 2000, "x = {" * 500, "place = 3\n", '["a\\nb"]\n', "9" * 5000, "returns = [1, 2]\n"),
]


@attack
def damaged_descriptions(random: Random, folder: Path) -> int:
    """A damaged description does not end a listing."""
    os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(folder)
    (folder / "libplain.so").write_bytes((STOCK / "librelu.so").read_bytes())
    for _ in range(150):
        text = "".join(random.choice(PIECES) for _ in range(random.randrange(12)))
        (folder / "libplain.cuplug.toml").write_bytes(text.encode("latin-1"))
        names = {file.name for file in cuplug.plugins()}
        assert {"gather", "relu"} <= names, names
        with refusals(cuplug.NotFoundError):
            cuplug.find("none_of_this_name")
    return 150


EXPRESSION = """
import cuplug, numpy as np
x = np.arange(-50, 50, dtype=np.float32)
f = cuplug.elementwise("double_plus(x: float32[...]) -> float32[...]", "2 * x + 1")
assert np.array_equal(f(x), 2 * x + 1)
"""


def run_expression(folder: Path, **keywords: object) -> None:
    """Compile an expression, or load it from the cache in a folder, in a separate process."""
    variables = os.environ | {"CUPLUG_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", EXPRESSION],
        env=variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:], keywords)


@attack
def damaged_cache(random: Random, folder: Path) -> int:
    """Compiled code that was damaged on disk is compiled again."""
    run_expression(folder)
    for _ in range(6):
        for path in (path for path in (folder / "cache").iterdir() if path.stat().st_size):
            path.write_bytes(damage(random, path.read_bytes()))
        run_expression(folder)
    return 6


@attack
def killed_compilers(random: Random, folder: Path) -> int:
    """A process that was killed during a compilation leaves nothing that harms the next one."""
    variables = os.environ | {"CUPLUG_CACHE_DIR": str(folder / "cache")}
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", EXPRESSION], env=variables) as process:
            try:
                process.wait(random.uniform(0.05, 0.6))
            except subprocess.TimeoutExpired:
                process.kill()
        run_expression(folder)
    return 5


@attack
def plugins_written_over(random: Random, folder: Path) -> int:
    """A file is overwritten in place repeatedly while its operator is called."""
    path = folder / "librelu.so"
    whole = (STOCK / "librelu.so").read_bytes()
    path.write_bytes(whole)
    relu = cuplug.load(path).relu
    wanted = np.maximum(X, 0)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            with path.open("r+b") as file:
                file.truncate(0)
                file.write(damage(random, whole))

    writer = threading.Thread(target=write)
    assert np.array_equal(relu(X), wanted)
    writer.start()
    try:
        for k in range(2000):
            assert np.array_equal(relu(X), wanted)
            if k % 200 == 0:
                with refusals(cuplug.Error):
                    cuplug.reload(relu)
    finally:
        done.set()
        writer.join()
    return 2000


@attack
def replaced_while_found(random: Random, folder: Path) -> int:
    """Files come, go and are replaced by rename in a folder that is searched and listed."""
    os.environ["LD_LIBRARY_CUPLUG_PATH"] = str(folder)
    path, other = folder / "librelu.so", folder / "new"
    done = threading.Event()

    def replace() -> None:
        while not done.is_set():
            shutil.copy(STOCK / "librelu.so", other)
            os.rename(other, path)
            if random.random() < 0.5:
                path.unlink()

    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(300):
            with refusals(cuplug.PluginError, cuplug.NotFoundError):
                assert np.array_equal(cuplug.find("relu")(X), np.maximum(X, 0))
            assert "gather" in {file.name for file in cuplug.plugins()}
    finally:
        done.set()
        writer.join()
    return 300


WORDS = [
    *("x", "y", "1", "0.5", "+", "-", "*", "/", "%", "<<", ">>", "(", ")", "?", ":", ";", "=", "{"),
    *(
        "}",
        "&",
        "abs(x)",
        "exp(x)",
        "min(x, 1)",
        "i",
        "n",
        '"',
        "'",
        "\\",
        "/*",
        "//",
        "#include <x>",
    ),
    *(
        "\n",
        "goto",
        "return",
        "while (1)",
        "x[1]",
        "*x",
        "(T)",
        "0x",
        "1e999",
        "$",
        "@",
        "é",
        "sizeof",
    ),
]


@attack
def random_sources(random: Random, folder: Path) -> int:
    """Text that is not a C expression raises CompileError, or ValueError before a compiler runs."""
    os.environ["CUPLUG_CACHE_DIR"] = str(folder / "cache")
    for k in range(25):
        text = " ".join(random.choice(WORDS) for _ in range(random.randrange(1, 7)))
        with refusals(cuplug.CompileError, ValueError):
            cuplug.elementwise(f"random{k}(x: T) -> y: T", text)(X[:0])
    return 25

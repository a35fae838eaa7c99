# SPDX-License-Identifier: Apache-2.0
"""Unsafe or damaged folders, variables, packages and libraries around a process."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from random import Random

import cuplug
from attacks import attack
from cuplug._engine.base.flags import lib_directory
from poor_machines import must_end_well, run

FOLDERS = ("TMPDIR", "TMP", "HOME", "CUPLUG_CACHE_DIR", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
SEARCHED = ("LD_LIBRARY_CUPLUG_PATH", "XDG_DATA_HOME")
KEPT = ("cuplug-code-samples", ".cuplug-notes", ".cuplug-temporary-" + "0" * 32, ".tmp-notes")


DAMAGE = (
    *("nothing\n", "=\n", "x = \n", "x = a:b:c\n", "x = ../..\n", "[\n", "\0\n", "\udcff = y\n"),
    *("x = no_such_package\n", "x = sys\n", "x = fine_package.none\n", "x = " + "a." * 3000),
)


def _kinds(folder: Path) -> list[str]:
    """Create a folder of each kind; return their paths, and texts that are not paths."""
    for name in ("good", "unsafe", "full"):
        (folder / name).mkdir(exist_ok=True)
        for kept in KEPT:
            (folder / name / kept).mkdir(exist_ok=True)
            (folder / name / kept / "thesis.txt").write_text("precious")
            os.utime(folder / name / kept, (0, 0))
    (folder / "unsafe").chmod(0o777)
    (folder / "file").touch()
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "link").symlink_to(folder / "good")
    made = [str(folder / x) for x in ("good", "unsafe", "file", "loop", "link", "none/below")]
    texts = ["", ".", "relative", "~", "/proc", "/dev/null", "x" * 5000, "a\nb", ":", "\udcff/x"]
    return made + texts


@attack
def hostile_folders(random: Random, folder: Path) -> int:
    """Variables name files, links and world-writable folders; the working directory is removed."""
    kinds = _kinds(folder)
    text = """
import os
os.mkdir(GONE); os.chdir(GONE); os.rmdir(GONE)
cuplug.plugins(); cuplug.search_path()
try:
    plus = cuplug.elementwise("plus(x: T) -> T", "x + 1")
    assert np.array_equal(plus(x), x + 1)
except cuplug.CompileError as error:
    assert "TMPDIR" in str(error), error
check()
"""
    for k in range(4):
        names = random.sample(FOLDERS + SEARCHED, random.randrange(1, 6))
        chosen = {name: random.choice(kinds) for name in names}
        chosen.setdefault("CUPLUG_CACHE_DIR", str(folder / "cache"))
        done = run(folder, f"GONE = {str(folder / f'gone{k}')!r}\n{text}", 90.0, **chosen)
        assert done.returncode == 0, (chosen, done.returncode, done.stderr[-3000:])
    for name in ("good", "unsafe"):
        texts = [(folder / name / kept / "thesis.txt").read_text() for kept in KEPT]
        assert texts == ["precious"] * len(KEPT)
    return 4


@attack
def malformed_entry_points(random: Random, folder: Path) -> int:
    """Packages with damaged metadata do not hide the entry points of other packages."""
    good = folder / "fine-1.0.dist-info"
    good.mkdir()
    (good / "METADATA").write_text("Metadata-Version: 2.1\nName: fine\nVersion: 1.0\n")
    (good / "entry_points.txt").write_text("[cuplug.plugins]\nfine = fine_package\n")
    (folder / "fine_package").mkdir()
    (folder / "fine_package" / "__init__.py").touch()
    (stock,) = (plugin.path for plugin in cuplug.plugins() if plugin.name == "relu")
    shutil.copy(stock, folder / "fine_package" / "librelu.so")
    for k, line in enumerate(random.sample(DAMAGE, 6)):
        bad = folder / f"bad{k}-1.0.dist-info"
        bad.mkdir()
        (bad / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bad{k}\nVersion: 1.0\n")
        text = random.choice(["[cuplug.plugins]\n", "", "[other]\nz\n[cuplug.plugins]\n"]) + line
        (bad / "entry_points.txt").write_bytes(os.fsencode(text))
    text = f"""
import warnings
warnings.simplefilter("ignore")
check()
paths = [str(plugin.path) for plugin in cuplug.plugins()]
assert {str(folder / "fine_package" / "librelu.so")!r} in paths, paths
"""
    variables = {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"}
    must_end_well(run(folder, text, **variables))
    return 6


@attack
def other_cores_on_the_path(random: Random, folder: Path) -> int:
    """Another libcuplug.so.1 is found first: ImportError reports it, or cuplug's own is used."""
    source, library = folder / "core.c", folder / "libcuplug.so.1"
    bodies = [
        "int cuplug_other(void) { return 0; }",
        'const char *cuplug_version(void) { return "9.9.9"; }',
        "int cuplug_bind(void) { return 0; } int cuplug_run(void) { return 0; }",
    ]
    text = """
import sys
import numpy as np
try:
    import cuplug
    from cuplug.ops import relu
except ImportError as error:
    assert "cuplug" in str(error), error
    sys.exit()
assert relu(np.float32([-1, 2])).tolist() == [0, 2]
"""
    for body in bodies:
        source.write_text(body)
        command = ["cc", "-shared", "-fPIC", "-Wl,-soname,libcuplug.so.1", source, "-o", library]
        subprocess.run(command, check=True)
        must_end_well(run(folder, text, calls="", LD_LIBRARY_PATH=str(folder)))
    own = Path(lib_directory(), "libcuplug.so.1").read_bytes()
    another = own.replace(f"{cuplug.__version__}\0".encode(), b"9.9.9\0")
    for content in (random.randbytes(5000), another, own):
        library.write_bytes(content)
        must_end_well(run(folder, text, calls="", LD_LIBRARY_PATH=str(folder)))
    return 6

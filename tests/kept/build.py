# SPDX-License-Identifier: Apache-2.0
"""Build the kept plugins again: `python tests/kept/build.py`.

Only until the first release. After it, the binaries do not change, because they represent plugins
that users have. A later minor version of the ABI gets additional files.
"""

import lzma
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OTHERS = ROOT / "examples" / "other_languages"
TARGET = "x86_64-linux-gnu.2.28"
SHARED = ["-shared", "-fPIC", "-O2", "-s", f"-I{ROOT / 'include'}"]
PTX = "-gencode=arch=compute_75,code=compute_75"

COMMANDS = {
    "kept_c": [
        *(sys.executable, "-m", "ziglang", "cc", "-target", TARGET, "-std=c11", *SHARED),
        HERE / "kept_c.c",
    ],
    "kept_cpp": ["g++", "-std=c++17", *SHARED, HERE / "kept_cpp.cpp"],
    "kept_cuda": [
        *("nvcc", "-std=c++17", "-shared", "-Xcompiler=-fPIC", "-Xlinker=-s", PTX),
        *(f"-I{ROOT / 'include'}", HERE / "kept_cuda.cu"),
    ],
    "kept_rust": [
        *("rustc", "-O", "--edition=2021", "--crate-type=cdylib", "-Cstrip=symbols"),
        OTHERS / "rust" / "clamp.rs",
    ],
    "kept_zig": [
        *(sys.executable, "-m", "ziglang", "build-lib", "-dynamic", "-OReleaseSmall", "-fstrip"),
        OTHERS / "zig" / "clamp.zig",
    ],
}


def build(name: str, folder: str) -> None:
    """Build a plugin and compress it."""
    made = Path(folder, f"lib{name}.so")
    output = [f"-femit-bin={made}"] if name == "kept_zig" else ["-o", made]
    subprocess.run([*COMMANDS[name], *output], cwd=folder, check=True)
    (HERE / f"{name}.so.xz").write_bytes(lzma.compress(made.read_bytes(), preset=9))


if __name__ == "__main__":
    for name in sys.argv[1:] or COMMANDS:
        if shutil.which(str(COMMANDS[name][0])) is None:
            sys.exit(f"{name}: got no {COMMANDS[name][0]}, expected it on PATH")
        with tempfile.TemporaryDirectory() as folder:
            build(name, folder)

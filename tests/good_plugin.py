# SPDX-License-Identifier: Apache-2.0
"""A plugin in C that passes every rule of `cuplug check`, and functions to compile and check it."""

import subprocess
from pathlib import Path

from cuplug._engine.base.flags import get_include
from cuplug._integration.author.check import check_file

GOOD = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int half_host(const cuplug_call *call) {
  const float *x = call->tensors[0].data;
  float *y = call->tensors[1].data;
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++) y[i] = x[i] / 2;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(half_host, "half(x: float32[...]) -> float32[...]", "Half.");
CUPLUG_PLUGIN(half, "1.0.0");
"""
FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden", f"-I{get_include()}")


def compile_plugin(
    folder: Path, source: str, *flags: str, name: str = "half", language: str = "c"
) -> str:
    """Compile source text to lib<name>.so in a folder and return its path."""
    file = folder / f"{name}.{language}"
    file.write_text(source)
    library = folder / f"lib{name}.so"
    compiler = "g++" if language == "cc" else "gcc"
    command = [compiler, *FLAGS, str(file), "-o", str(library), *flags]
    subprocess.run(command, check=True, capture_output=True)
    library.chmod(0o755)
    return str(library)


def problems(path: str) -> dict[str, tuple[str, str]]:
    """Return rule -> (level, text) of the findings that are not ok."""
    return {f.rule: (f.level, f.text) for f in check_file(path) if f.level != "ok"}

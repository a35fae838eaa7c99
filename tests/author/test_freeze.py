# SPDX-License-Identifier: Apache-2.0
"""Programs that PyInstaller has frozen."""

import importlib.util
import os
import subprocess
import sys

import pytest
from cuplug._integration.author.freeze import hook_folders
from processes import environment

PROGRAM = """
import numpy as np, cuplug
from cuplug.ops import gather
print(gather(np.float32([10, 20, 30]), np.array([2, 0])).tolist())
print(float(cuplug.asarray(np.float32([3, 1, 2])).sum()))
"""


def test_the_folder_of_hooks_has_a_hook():
    (folder,) = hook_folders()
    assert os.path.isfile(os.path.join(folder, "hook-cuplug.py"))


@pytest.mark.slow
@pytest.mark.skipif(not importlib.util.find_spec("PyInstaller"), reason="needs PyInstaller")
def test_a_frozen_program_finds_the_core_and_the_stock_plugins(tmp_path):
    source = tmp_path / "program.py"
    source.write_text(PROGRAM)
    command = [sys.executable, "-m", "PyInstaller", "-y", "--log-level", "ERROR", "--onedir"]
    command += ["--additional-hooks-dir", hook_folders()[0], str(source)]
    subprocess.run(command, cwd=tmp_path, env=environment(), check=True, timeout=900)
    program = str(tmp_path / "dist" / "program" / "program")
    kept = {k: v for k, v in environment().items() if not k.startswith(("PYTHON", "LD_"))}
    done = subprocess.run([program], env=kept, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[30.0, 10.0]\n6.0\n", done.stderr

# SPDX-License-Identifier: Apache-2.0
"""An NCCL communicator as a handle: examples/several_gpus."""

import shutil
import subprocess
import sys

import cuplug
import pytest
from places import ROOT

EXAMPLE = ROOT / "examples" / "several_gpus"


@pytest.fixture
def library(tmp_path):
    """Return the path of the plugin, built as described in the example."""
    source = shutil.copy(EXAMPLE / "all_reduce.cu", tmp_path)
    command = [sys.executable, "-m", "cuplug", "build", source, "--", "-lnccl"]
    done = subprocess.run(command, capture_output=True, text=True)
    missing = [text for text in ("nvcc", "nccl.h", "-lnccl") if text in done.stdout + done.stderr]
    if done.returncode and missing:
        pytest.skip(f"needs {missing[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "liball_reduce.so"


@pytest.mark.gpu
def test_one_rank(library):
    plugin = cuplug.load(library)
    with pytest.raises(ValueError, match="^communicator: id: got other text, expected 256"):
        plugin.communicator("0123", 0, 1, device="cuda")
    unique = plugin.nccl_id().tobytes().hex()
    c = plugin.communicator(unique, 0, 1, device="cuda")
    x = cuplug.asarray([1.0, 2.0], device="cuda")
    assert plugin.all_reduce(c, x).numpy().tolist() == [1, 2]
    c.close()
    with pytest.raises(ValueError, match="^all_reduce: c: "):
        plugin.all_reduce(c, x)


@pytest.mark.gpu(n=2)
def test_a_process_for_each_gpu(library):
    command = [sys.executable, str(EXAMPLE / "all_reduce.py"), str(library)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    n = len(cuplug.devices())
    assert done.stdout == f"{n} GPUs, errors {[0.0] * n}\n"

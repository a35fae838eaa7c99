# SPDX-License-Identifier: Apache-2.0
"""Operators in two processes of torchrun, with PyTorch's DTensor, of MPI and of JAX."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

# The possible shardings of each operator's samples, and an operator that needs complete arrays.
SHARDED = {"relu": 4, "gather": 4, "softmax": 1, "layer_norm": 4, "cross_entropy": 4, "sort": 1}
SHARDED |= {"relu_backward": 3, "take_along_axis": 5, "scatter_add": 19, "join": 0, "repeat": 0}


def run(command, *folders):
    """Run a program; return the lines that it prints, sorted, also where two are on one line."""
    paths = os.pathsep.join([*map(str, folders), os.environ.get("PYTHONPATH", "")])
    variables = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    variables["PRTE_MCA_rmaps_default_mapping_policy"] = ":oversubscribe"  # also on one core
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr
    return sorted(filter(None, re.split(r"\n|(?=rank \d)", done.stdout)))


def torchrun(program, *arguments):
    """Run a program in two processes."""
    pytest.importorskip("torch.distributed.tensor.experimental")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return run([*launch, program, *arguments], ROOT / "tests", Path(__file__).parent)


@pytest.mark.xdist_group("ranks")
def test_sharded_calls_give_what_whole_ones_do():
    found = torchrun(Path(__file__).parent / "sharded_calls.py", *SHARDED)
    assert found == sorted(f"{name} {n}" for name, n in SHARDED.items())


@pytest.mark.xdist_group("ranks")
def test_the_program_of_torchrun():
    line = "(3, 3) of (3, 6), (Shard(dim=1),)"
    assert torchrun(ROOT / "examples" / "sharded.py") == [f"rank {k}: {line}" for k in (0, 1)]


@pytest.mark.xdist_group("ranks")
def test_the_program_of_mpi():
    launcher = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if launcher is None:
        pytest.skip("there is no mpiexec")
    pytest.importorskip("mpi4py")
    norm = np.sqrt(np.sum(np.arange(1000.0) ** 2))
    found = run([launcher, "-n", "2", sys.executable, ROOT / "examples" / "mpi_norm.py"])
    assert found == [f"rank {k}: {norm:.3f}" for k in (0, 1)]


@pytest.mark.xdist_group("ranks")
def test_an_array_that_jax_shards_over_processes(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    monkeypatch.delenv("XLA_FLAGS", raising=False)  # of tests with several devices in a process
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(__file__).with_name("jax_rank.py")
    commands = [[sys.executable, program, str(port), str(rank)] for rank in (0, 1)]
    ranks = [subprocess.Popen(x, stdout=subprocess.PIPE, text=True) for x in commands]
    found = [rank.communicate()[0].splitlines() for rank in ranks]  # and Gloo's output
    assert all(f"rank {k}: (2, 3) of (2, 6), 51.0" in found[k] for k in (0, 1)), found

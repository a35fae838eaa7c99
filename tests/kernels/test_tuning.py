# SPDX-License-Identifier: Apache-2.0
"""`kernel.tune`, and the output of `cuplug info` for kernels."""

import json
import os
from textwrap import dedent

import cuplug
import numpy as np
import pytest
from emulated_driver import need_nvrtc

SOURCE = """
extern "C" __global__ void add(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
"""


def test_the_best_block_is_remembered(run_kernels, tmp_path):
    body = f"""
    import os
    add = cuplug.compile({SOURCE!r})["add"]
    x = cuplug.asarray(np.zeros(1000, np.float32), device="cuda")

    def n_launches():
        return open(os.environ["FAKE_CUDA_LOG"]).read().count("cuLaunchKernelEx")

    before = n_launches()
    launch = add.tune(1000, x, 1000, blocks=[256, 2048, 128])
    assert n_launches() - before == 2 * 51  # a block of 2048 is none of the GPU's
    assert "block (128, 1, 1)" in repr(launch) or "block (256, 1, 1)" in repr(launch)
    assert np.all(x.numpy() == 102)
    assert repr(add.tune(1000, x, 1000, blocks=[128, 256, 2048])) == repr(launch)
    assert n_launches() - before == 2 * 51
    launch(x, 1000)
    assert np.all(x.numpy() == 103)
    add.tune(lambda block: (1000 + block - 1) // block, x, 1000, blocks=[64])
    assert np.all(x.numpy() == 154)
    raises(ValueError, "add: blocks: got none", lambda: add.tune(9, x, 9, blocks=[]))
    raises(ValueError, "add: tune: no block of [2048] runs",
           lambda: add.tune(9, x, 9, blocks=[2048]))
    raises(TypeError, "add: argument 2", lambda: add.tune(9, x, "n"))
    """
    cache = str(tmp_path / "cache")
    text = f"import os\nos.environ['CUPLUG_CACHE_BYTES'] = '1000000'\n{dedent(body)}"
    run_kernels(text, FAKE_CUDA_LOG=str(tmp_path / "log"), CUPLUG_CACHE_DIR=cache)
    assert any(name.endswith(".tuned") for name in os.listdir(cache))


def test_shipped_block_sizes(run_kernels, tmp_path):
    """A process without a cache launches no kernel to find the block."""
    body = f"""
    import os
    add = cuplug.compile({SOURCE!r})["add"]
    x = cuplug.asarray(np.zeros(1000, np.float32), device="cuda")
    add.tune(1000, x, 1000, blocks=[256, 128])
    assert np.all(x.numpy() == int(os.environ["N_LAUNCHES"]))
    """
    run_kernels(body, CUPLUG_WARM_TO=str(tmp_path), N_LAUNCHES="102")
    run_kernels(body, CUPLUG_WARM_PATH=str(tmp_path), N_LAUNCHES="0")


@pytest.mark.gpu
def test_tuning_on_a_gpu(tmp_path, monkeypatch):
    need_nvrtc()
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path))
    add = cuplug.compile(SOURCE)["add"]
    x = cuplug.asarray(np.zeros(1 << 20, np.float32), device="cuda")
    launch = add.tune(1 << 20, x, 1 << 20)
    before = x.numpy()
    launch(x, 1 << 20)
    assert np.array_equal(x.numpy(), before + 1)
    assert any(path.suffix == ".tuned" for path in tmp_path.iterdir())


@pytest.mark.gpu
def test_info_tells_of_kernels(capsys):
    from cuplug._integration.commands import report

    report.show_operator("gather", True)
    kernels = json.loads(capsys.readouterr().out)["kernels"]
    assert any("gather" in facts["kernel"] for facts in kernels)
    assert all(0 < facts["registers"] <= 255 for facts in kernels)
    assert all(facts["active_threads"] >= facts["block"] > 0 for facts in kernels)

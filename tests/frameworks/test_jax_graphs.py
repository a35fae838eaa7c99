# SPDX-License-Identifier: Apache-2.0
"""Calls in XLA's command buffers: CUDA graphs that it captures and replays."""

import re

import pytest
from jax_devices import jax  # noqa: F401  (needs it)

pytestmark = pytest.mark.gpu

THROUGH = """
#include <cuda_runtime.h>
#include <cuplug/plugin.h>

// x, by way of scratch memory.
extern "C" CUPLUG_ENTRY int through_cuda(const cuplug_call *call) {
    const size_t n_bytes = (size_t)cuplug_n_elements(call->outputs) * sizeof(float);
    const auto stream = (cudaStream_t)call->stream;
    void *scratch = cuplug_workspace(call, n_bytes);
    if (!scratch) return CUPLUG_ERROR_MEMORY;
    const auto kind = cudaMemcpyDeviceToDevice;
    cudaError_t code = cudaMemcpyAsync(scratch, call->tensors[0].data, n_bytes, kind, stream);
    if (!code) code = cudaMemcpyAsync(call->outputs[0].data, scratch, n_bytes, kind, stream);
    return code ? cuplug_fail(call, CUPLUG_ERROR_CUDA, "through: a copy failed") : CUPLUG_OK;
}
CUPLUG_CUDA_OPERATOR(through_cuda, "through(x: float32[n]) -> float32[n]", "x.");
CUPLUG_PLUGIN(through, "1.0");
"""

REPLAY = """
import sys
import cuplug, jax, jax.numpy as jnp, numpy as np
from cuplug.jax import Function, relu

function = Function(cuplug.load(sys.argv[1]).through) if len(sys.argv) > 1 else relu

def chain(x):
    for _ in range(8):
        x = function(x) - 0.125
    return x

def wanted(x):
    for _ in range(8):
        x = (x if len(sys.argv) > 1 else np.maximum(x, 0)) - np.float32(0.125)
    return x

program = jax.jit(chain)
kept = []
for k in range(40):
    x = np.linspace(-k - 1, 2 * k + 2, 1000, dtype=np.float32)
    kept += [jnp.asarray(x)]  # other addresses each time
    np.testing.assert_allclose(program(kept[-1]), wanted(x), rtol=1e-6, atol=1e-5)
cuplug.synchronize()
"""


def replay(run_python, tmp_path, *arguments):
    """Run programs that XLA captures; return its log."""
    code = f"import sys; sys.argv[1:] = {[str(x) for x in arguments]!r}\n{REPLAY}"
    done = run_python(code, env={"XLA_FLAGS": f"--xla_dump_to={tmp_path}"}, timeout=300)
    assert done.returncode == 0, done.stderr
    files = [x for x in tmp_path.iterdir() if "jit_chain" in x.name and "debug" not in x.name]
    return "\n".join(x.read_text(errors="replace") for x in files if x.suffix == ".txt")


def test_calls_are_captured(run_python, tmp_path):
    text = replay(run_python, tmp_path)
    assert 'custom_call_target="cuplug"' in text
    assert re.search(r"%command_buffer|kCommandBuffer", text)


def test_scratch_memory_of_captured_calls(run_python, tmp_path, build_plugin):
    file = build_plugin(THROUGH, "through", cuda=True)
    assert 'custom_call_target="cuplug"' in replay(run_python, tmp_path, file)


def test_scalars_that_are_read_are_not_captured(run_python, tmp_path):
    code = """
import jax, jax.numpy as jnp, numpy as np
from cuplug.jax import scale
def power(x, a):
    for _ in range(8):
        x = scale(x, a) + 0
    return x
program = jax.jit(power)
for k in range(10):
    a = 1 + k / 8
    np.testing.assert_allclose(program(jnp.ones(64), a), np.full(64, a**8), rtol=1e-5)
"""
    done = run_python(code, timeout=300)
    assert done.returncode == 0, done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Pinned and managed memory, copies between GPUs, attributes: without a GPU and on several."""

import os
import re
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._engine.cuda.attributes import NUMBERS


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (-3, "empty_pinned: shape: got (-3,), expected sizes of at least 0"),
        ((2, 2.5), "empty_pinned: shape: got (2, 2.5), expected an int or a sequence of them"),
        (
            (2**40, 2**30),
            "empty_pinned: shape: got (1099511627776, 1073741824), expected less than",
        ),
    ],
)
def test_shapes_that_cannot_be(shape, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        cuplug.empty_pinned(shape)


def test_pinned_arrays(run_streams):
    run_streams(
        """
    gpu.triple(x, device="cuda")  # has pinned memory of its own
    before = counts().pinned
    p = cuplug.empty_pinned((10, 100), "float32")
    assert type(p) is np.ndarray and p.shape == (10, 100) and p.flags.c_contiguous
    p[...] = x.reshape(10, 100)
    assert np.array_equal(gpu.triple(p.ravel(), device="cuda"), 3 * x)
    part = p[3:4]
    del p
    assert counts().pinned == before + 1 and np.array_equal(part[0], x[300:400])
    del part
    assert counts().pinned == before
    assert cuplug.empty_pinned(0).shape == (0,)
    struct = np.dtype([("a", np.int32), ("z", np.complex64)])
    assert cuplug.empty_pinned(3, struct).dtype == struct
    with Raises(TypeError, "empty_pinned: dtype: got object, expected numbers or structs"):
        cuplug.empty_pinned(3, object)
    with Raises(ValueError, "empty_pinned: device: got 'cpu', expected a GPU"):
        cuplug.empty_pinned(3, device="cpu")
    assert counts().misuses == 0
    """
    )


def test_managed_arrays(run_streams):
    run_streams(
        """
    m = cuplug.empty_managed(1000, "float32")
    seen = np.asarray(m)
    seen[...] = x
    y = gpu.triple(m)
    assert str(m.device) == str(y.device) == "cuda:0"
    assert np.array_equal(y.numpy(), 3 * x)
    gpu.increase(m, 1)
    assert np.array_equal(np.asarray(m[:10]), x[:10] + 1) and np.array_equal(seen, x + 1)
    assert np.shares_memory(np.asarray(m), seen)
    m.set(x)
    assert np.array_equal(m.numpy(), x)
    with Raises(TypeError, "cuplug.Array: it is in GPU memory"):
        np.asarray(y)
    assert gpu.triple(a, out=m) is m and np.array_equal(np.asarray(m), 3 * x)
    m.set(x)
    del m
    assert np.array_equal(seen, x)  # it keeps the memory
    now = counts().allocations
    del seen
    assert counts().allocations == now - 1
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_copies_from_gpu_to_gpu(run_streams):
    run_streams(
        """
    gpu.increase(a, 1)
    cuplug.empty(1, device=1)  # makes the pool of the GPU
    names = calls(cuplug.asarray, a, device="cuda:1")
    assert "cuMemcpyPeerAsync" in names and not WAITING & set(names)
    b = a.to_device("cuda:1")
    assert str(b.device) == "cuda:1" and np.array_equal(b.numpy(), x + 1)
    matrix = cuplug.asarray(x.reshape(10, 100), device=1)
    back = cuplug.asarray(matrix, device="cuda:0")
    assert back.shape == (10, 100) and np.array_equal(back.numpy(), x.reshape(10, 100))
    assert cuplug.asarray(cuplug.empty(0, device=0), device=1).shape == (0,)
    with Raises(ValueError, "asarray: copy: got False"):
        cuplug.asarray(a, device=1, copy=False)
    assert counts().misuses == 0
    """,
        FAKE_CUDA_LAZY="1",
    )


def test_attributes(run_streams):
    run_streams(
        """
    first = cuplug.devices()[0]
    assert first.attributes["COMPUTE_CAPABILITY_MAJOR"] == 9
    assert pickle.loads(pickle.dumps(first)) == first
    """
    )


def test_attributes_are_those_of_cuda():
    path = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include" / "cuda.h"
    if not path.exists():
        pytest.skip("CUDA's headers are not here")
    found = re.findall(r"CU_DEVICE_ATTRIBUTE_(\w+) *= *(\d+)", path.read_text())
    known = {name: int(number) for name, number in found}
    assert {name: NUMBERS[name] for name in NUMBERS if name in known}.items() <= known.items()
    assert {*known.values()} <= {*NUMBERS.values()} or max(known.values()) > max(NUMBERS.values())


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_on_a_gpu():
    first = cuplug.devices()[0]
    assert first.attributes["WARP_SIZE"] == 32
    major = first.attributes["COMPUTE_CAPABILITY_MAJOR"]
    assert 10 * major <= first.compute_capability < 10 * major + 10
    p = cuplug.empty_pinned(1000, np.float32)
    p[...] = np.arange(-500, 500)
    wanted = np.maximum(p, 0)
    assert np.array_equal(cuplug.ops.relu(p, device="cuda"), wanted)
    assert np.array_equal(cuplug.asarray(p, device="cuda").numpy(), p)
    m = cuplug.empty_managed(1000, "float32")
    np.asarray(m)[...] = p
    assert np.array_equal(cuplug.ops.relu(m).numpy(), wanted)
    out = cuplug.empty_managed(1000, "float32")
    cuplug.ops.relu(m, out=out)
    assert np.array_equal(np.asarray(out), wanted)


@pytest.mark.gpu(n=2)
def test_between_gpus():
    x = np.arange(1 << 20, dtype=np.float32)
    a = cuplug.asarray(x, device="cuda:0")
    b = cuplug.ops.relu(a).to_device("cuda:1")
    assert np.array_equal(cuplug.ops.relu(b).to_device("cuda:0").numpy(), x)

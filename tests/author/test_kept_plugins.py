# SPDX-License-Identifier: Apache-2.0
"""Binary plugins that were compiled with earlier headers. They are kept as files, and
must work for as long as the major version of the ABI does not change."""

import lzma
import platform

import cuplug
import numpy as np
import pytest
from places import TESTS

KEPT = TESTS / "kept"
pytestmark = pytest.mark.skipif(
    platform.machine() != "x86_64", reason="the files have machine code for x86-64"
)


@pytest.fixture
def load(tmp_path):
    """Return a function that loads a kept plugin; its table has the name `name`."""

    def load(kept, name=""):
        path = tmp_path / f"lib{name or kept}.so"
        path.write_bytes(lzma.decompress((KEPT / f"{kept}.so.xz").read_bytes()))
        path.chmod(0o755)
        return cuplug.load(path)

    return load


def test_c(load):
    plugin = load("kept_c")
    x = np.arange(8.0)
    assert np.array_equal(plugin.affine(x), x)
    assert np.array_equal(plugin.affine(x[::-2], x[:4], 2.0), 2 * x[::-2] + x[:4])
    with pytest.raises(ValueError, match="^affine: bias: dimension n"):
        plugin.affine(x, x[:4])
    arrays = [np.zeros((2, 3)), np.zeros((2, 3))]
    assert plugin.measure(arrays, [1, -2]).tolist() == [6, -12, 3, 1]
    assert plugin.measure(arrays[:1], [2], "", mode="up").tolist() == [12, 0, 0]
    with pytest.raises(ValueError, match=r"^measure: .*len\(weights\) == len\(xs\)"):
        plugin.measure(arrays, [1])
    y = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    assert np.array_equal(plugin.above(y, 0.5), y[y > 0.5])
    assert plugin.above(y, 100).shape == (0,)


def test_handles_and_state_in_c(load):
    plugin = load("kept_c")
    out = np.zeros(2, np.int64)
    with plugin.counter(5) as first, plugin.counter() as second:
        for counter, count in ((first, 6), (second, 1), (first, 7)):
            plugin.count(counter, out)
            assert out.tolist() == [count, 0]
        first.close()
        plugin.count(second, out)
        assert out.tolist() == [2, 1]
        with pytest.raises(ValueError, match="^count: c: "):
            plugin.count(first, out)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64"])
def test_cpp(load, dtype):
    mix = load("kept_cpp").mix
    x = np.arange(24, dtype=dtype).reshape(2, 3, 4)
    y = np.arange(4, dtype=dtype)
    out, n_rows = mix(x, y, 3, z=y)
    assert np.array_equal(out, x + 3 * y + y)
    assert (out.dtype, n_rows) == (dtype, 6)
    assert np.array_equal(mix(x, y, mode="multiply").out, x * y)
    with pytest.raises(ValueError, match="^mix: .*n > 0"):
        mix(x[..., :0], y[:0])


@pytest.mark.parametrize("kept", ["kept_rust", "kept_zig"])
def test_other_languages(load, kept):
    clamp = load(kept, "clamp").clamp
    x = np.float32([[-3, 0.5], [np.inf, 1]])
    assert np.array_equal(clamp(x, -1, 2.5), np.clip(x, -1, 2.5))
    with pytest.raises(ValueError, match="^clamp: low: got "):
        clamp(x, 3, 1)


def test_cuda_is_listed(load):
    plugin = load("kept_cuda")
    assert plugin.take.signatures == ("take(x: float32[n], index: int64[*m]) -> float32[*m]",)
    with pytest.raises(TypeError, match="^take: "):
        plugin.take(np.zeros(3), np.zeros(2, np.int64))


@pytest.mark.gpu
def test_cuda(load):
    take = load("kept_cuda").take
    x = np.arange(1000, dtype=np.float32)
    index = np.random.default_rng(0).integers(0, 1000, (30, 40))
    assert np.array_equal(take(x, index), x[index])
    on_gpu = [cuplug.asarray(array, device="cuda") for array in (x, index)]
    assert np.array_equal(take(*on_gpu).numpy(), x[index])


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("wrong", "error", "text"),
    [
        (1000, IndexError, "index: index 1000 at position 1 is out of bounds for size 1000"),
        (7, ValueError, "x: element 7 is -2, expected 0 or more"),
    ],
)
def test_faults_of_cuda(load, wrong, error, text):
    take = load("kept_cuda").take
    x, index = np.arange(1000, dtype=np.float32), np.array([0, wrong])
    x[7] = -2
    bad = take(*(cuplug.asarray(array, device="cuda") for array in (x, index)))
    for read in (bad.numpy, bad.numpy, lambda: take(x, index)):
        with pytest.raises(error, match=f"^take: {text}$"):
            read()

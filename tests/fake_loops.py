# SPDX-License-Identifier: Apache-2.0
"""Python text with operators that have loop dimensions, on the driver that needs no GPU."""

import textwrap
from pathlib import Path

import pytest
from places import FIXTURES

LOOPS = """
def lay_out(x, layout):
    "An array equal to x that lies otherwise in memory."
    if layout == "read-only":
        x = x.copy()
        x.flags.writeable = False
    elif layout == "reversed":
        x = np.ascontiguousarray(x[..., ::-1])[..., ::-1]
    elif layout == "gaps":
        wide = np.full((*x.shape[:-1], 3 * x.shape[-1] + 2), 77, x.dtype)
        wide[..., 1:-1:3] = x
        x = wide[..., 1:-1:3]
    elif layout == "transposed":
        x = np.asfortranarray(x)
    elif layout == "unaligned":
        raw = np.zeros(x.nbytes + 1, np.uint8)
        y = raw[1:].view(x.dtype).reshape(x.shape)
        y[...] = x
        x = y
    elif layout == "field":
        records = np.zeros(x.shape, [("a", "u1"), ("b", x.dtype)])
        records["b"] = x
        x = records["b"]
    return x


LAYOUTS = ["contiguous", "read-only", "reversed", "gaps", "transposed", "unaligned", "field"]


def numbers(shape, dtype, seed):
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(dtype)


def narrowed(x, axes):
    "x with one element along some axes, to be broadcast."
    return x[tuple(slice(0, 1) if k in axes else slice(None) for k in range(x.ndim))]


def check(op, expected, *arrays):
    results = op(*arrays, device="cuda")
    assert cuplug.last_call().offloaded
    results, expected = [r if isinstance(r, tuple) else (r,) for r in (results, expected)]
    for result, wanted in zip(results, expected, strict=True):
        assert result.dtype == wanted.dtype and result.shape == wanted.shape
        assert np.array_equal(result, wanted)


def check_out(x, y, step, transposed):
    "The elements of a strided output are written at once, and nothing between them."
    sizes = tuple(n * abs(step) for n in x.shape)
    memory = np.full(sizes[::-1] if transposed else sizes, 77, np.float32)
    wanted = memory.copy()
    out, expected = [(m.T if transposed else m)[(slice(None, None, step),) * x.ndim]
                     for m in (memory, wanted)]
    gpu.plus(x, y, out=out, device="cuda")
    expected[...] = x + y
    assert np.array_equal(memory, wanted)


def check_all(shape, seed, layout, other, axes, room):
    x, y = numbers(shape, np.float32, seed), numbers(shape, np.float32, seed + 1)
    check(gpu.total, x.sum(-1, dtype=np.float64), lay_out(x, layout))
    row = y[(0,) * (len(shape) - 1)]
    check(gpu.add_row, x + row, lay_out(x, layout), lay_out(row, other))
    narrow, z = narrowed(y, axes), numbers(shape[-1:], np.int16, seed + 2)
    wide = narrow.astype(np.float64)
    expected = x + 2 * wide + z, (x > narrow).astype(np.uint8)
    check(gpu.mix, expected, lay_out(x, layout), lay_out(wide, other), z)
    wide = y.astype(np.float64)
    check(gpu.mix, (x + 2 * wide + 7, (x > y).astype(np.uint8)), x, lay_out(wide, other))
    check(gpu.plus, x + narrow, lay_out(x, layout), lay_out(narrow, other))
    memory = float(os.environ.get("FAKE_CUDA_MEMORY_BYTES", "inf"))
    if 4 * x.nbytes <= memory:  # a strided output is not cut
        check_out(lay_out(x, layout), lay_out(narrow, other), *room)
    changed = x.copy()
    assert gpu.accumulate(changed, lay_out(narrow[..., :1] + np.zeros_like(x), other),
                          device="cuda") is None
    assert np.array_equal(changed, x + narrow[..., :1])


def check_nothing_left():
    cuplug.trim()  # lanes keep memory
    assert counts().misuses == 0 and counts().allocations == 0

"""


@pytest.fixture(scope="session")
def fake_loops(build_plugin) -> Path:
    """Return the plugin with loop dimensions for the fake driver."""
    defines = ["CUPLUG_ARCHITECTURES=900"]
    return build_plugin(FIXTURES / "fake_loops.c", "fake_loops", defines=defines)


@pytest.fixture
def run_loops(run_fake, fake_loops):
    """Return a function that runs Python text with the plugin on the fake driver."""

    def run_loops(body: str, **variables: str):
        run_fake(LOOPS + textwrap.dedent(body), plugin=fake_loops, **variables)

    return run_loops

# SPDX-License-Identifier: Apache-2.0
"""Arrays that a signature requires in host memory, next to arrays on a GPU."""

import textwrap

import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.gradient import match_gradient
from cuplug._engine.signature.signature import parse
from places import FIXTURES


@pytest.fixture(scope="session")
def host_arrays_file(build_plugin):
    source = FIXTURES / "host_arrays.c"
    return build_plugin(source, "host_arrays", defines=["CUPLUG_ARCHITECTURES=900"])


@pytest.fixture
def ops(host_arrays_file):
    return cuplug.load(host_arrays_file)


X = np.arange(10, dtype=np.float32)
SIZES = np.array([2, 0, 5, 3])
SUMS = [1, 0, 20, 24]


def test_calls_on_the_host(ops):
    for _ in range(2):
        sums, seen = ops.sums(X, SIZES, device="cpu")
        assert sums.tolist() == SUMS
        assert seen.tolist() == [SIZES.ctypes.data, 1, 1]
    assert ops.sums(X, SIZES[::-1], device="cpu").sums.tolist() == [3, 25, 0, 17]
    assert ops.stretch(np.array([2.0]), X, device="cpu").tolist() == (2 * X).tolist()
    assert ops.ramp(np.array(5), 3, device="cpu").tolist() == [5, 6, 7]


CALLS = """
x, sizes = np.arange(10, dtype=np.float32), np.array([2, 0, 5, 3])
on_gpu = cuplug.asarray(x, device="cuda")
for _ in range(2):
    sums, seen = gpu.sums(on_gpu, sizes)
    assert type(sums) is cuplug.Array and sums.device == on_gpu.device
    assert sums.numpy().tolist() == [1, 0, 20, 24]
    assert seen.numpy().tolist() == [sizes.ctypes.data, 1, 2]  # as it is, and on the host
own = cuplug.asarray(sizes, device="cpu")
assert gpu.sums(on_gpu, own).seen.numpy().tolist() == [own.data_ptr, 1, 2]

for operator in (gpu.sums, gpu.strided):  # a copy where the entry takes no strides
    sums, seen = operator(on_gpu, sizes[::-1])
    assert sums.numpy().tolist() == [3, 25, 0, 17]
    assert seen.numpy()[1:].tolist() == [1, 2]
    sums, seen = operator(x, sizes[::-1], device="cuda")
    assert type(sums) is np.ndarray and sums.tolist() == [3, 25, 0, 17]
    assert seen[1:].tolist() == [1, 2]
    sums, seen = operator(x[::-1], sizes, device="cuda")
    assert sums.tolist() == [17, 0, 25, 3]
    assert seen.tolist() == [sizes.ctypes.data, 1, 2]

sent = cuplug.asarray(sizes, device="cuda")
expected = "sums: sizes: got an array on cuda:0, expected one on the host, whose memory"
for given in (x, on_gpu):
    with Raises(ValueError, expected):
        gpu.sums(given, sent)
with Raises(ValueError, "sums: sizes: "):
    gpu.sums(on_gpu, -sizes)

factors, calls = np.array([2.0, 9.0]), np.zeros(1, np.int64)
y = gpu.stretch(factors, on_gpu, calls)
assert type(y) is cuplug.Array and y.numpy().tolist() == (2 * x).tolist()
y = gpu.stretch(factors, x, calls, device="cuda")
assert type(y) is np.ndarray and y.tolist() == (2 * x).tolist()
assert calls.tolist() == [2]
with Raises(ValueError, "stretch: calls: got an array on cuda:0, expected one on the host"):
    gpu.stretch(factors, on_gpu, cuplug.asarray(calls, device="cuda"))

y = gpu.ramp(np.array(5), 3, device="cuda")  # no other array says where it runs
assert type(y) is cuplug.Array and y.numpy().tolist() == [5, 6, 7]
out = cuplug.empty(3, np.int64, "cuda")
assert gpu.ramp(np.array(7), 3, out=out) is out and out.numpy().tolist() == [7, 8, 9]
"""


def test_calls_on_a_gpu(run_fake, host_arrays_file):
    run_fake(CALLS + "assert counts().misuses == 0\n", plugin=host_arrays_file)


def test_calls_that_are_cut_in_slices(run_fake, host_arrays_file):
    body = """
    x = np.arange(8 << 20, dtype=np.float32)
    calls = np.zeros(1, np.int64)
    assert np.array_equal(gpu.stretch(np.array([3.0]), x, device="cuda"), 3 * x)
    assert np.array_equal(gpu.stretch(np.array([3.0]), x, calls, device="cuda"), 3 * x)
    assert calls[0] == 1  # an array that is changed and has no loop dimensions is not cut
    assert counts().misuses == 0
    """
    run_fake(textwrap.dedent(body), plugin=host_arrays_file)


@pytest.mark.gpu
def test_calls_on_a_real_gpu(build_plugin):
    source = """
    #include <cuplug/plugin.hpp>
    __global__ void sum_kernel(const float *x, int64_t n, float *sum) {
      float all = 0;
      for (int64_t i = 0; i < n; i++) all += x[i];
      *sum = all;
    }
    CUPLUG_TYPED_CUDA_OPERATOR(
        sums, "sums(x: float32[n], host sizes: int64[g]) -> float32[g] where 0 <= sizes", "Sums.");
    CUPLUG_CUDA_ENTRY(sums, x, sizes, out) {
      int64_t at = 0;
      for (int64_t g = 0; g < sizes.size(); at += sizes[g++])
        if (int status = call.launch<sum_kernel>({1, 1}, x + at, sizes[g], out + g)) return status;
      return CUPLUG_OK;
    }
    CUPLUG_PLUGIN(grouped, "1.0.0");
    """
    sums = cuplug.load(build_plugin(textwrap.dedent(source), "grouped", cuda=True)).sums
    x = cuplug.asarray(X, device="cuda")
    for _ in range(2):
        assert sums(x, SIZES).numpy().tolist() == SUMS
    assert sums(X, SIZES).tolist() == SUMS
    with pytest.raises(ValueError, match="got an array on cuda:0, expected one on the host"):
        sums(x, cuplug.asarray(SIZES, device="cuda"))


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("f(hots x: float32[n])", 'got "hots" before a name; did you mean host?', 2),
        ("f(host x: float32[...])", "x: got '...' in an array of the host, expected", 2),
        ("f(host x: float32[n][])", "expected host only for single arrays", 2),
        ("f(host k: int)", "expected host only for single arrays", 2),
        ("f(x: float32[n]) -> host float32[n]", "", 0),
    ],
)
def test_ill_formed(text, message, at):
    with pytest.raises(cuplug.SignatureError) as raised:
        parse(text)
    assert message in str(raised.value)
    assert not message or raised.value.position == at


def test_parsed():
    host = parse("f(host x: float32[n], inout host y: int64[], host: int)")
    assert [x.is_on_host for x in host.parameters] == [True, True, False]
    assert host.parameters[1].kind == "inout"


def test_gradients():
    """An array of the host has none, and the gradient's operator takes it on the host."""
    forward = parse("f(x: float32[n], host w: float32[m]) -> float32[n]")
    backward = "f_backward(grad: float32[n], {}w: float32[m]) -> float32[n]"
    assert match_gradient(forward, [parse(backward.format("host "))]).targets == (0,)
    with pytest.raises(ValueError, match="w: its type is not that of f"):
        match_gradient(forward, [parse(backward.format(""))])


def test_kernels_from_source_take_none():
    text = "scale(x: T[...], host w: T[n]) -> T[...] where T: float32"
    with pytest.raises(ValueError, match="w: got an array of the host, expected one that kernels"):
        cuplug.elementwise(text, "w[0] * x")

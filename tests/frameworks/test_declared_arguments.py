# SPDX-License-Identifier: Apache-2.0
"""Dtypes as arguments, and arrays of the host, in frameworks."""

import cuplug
import numpy as np
import pytest
from places import FIXTURES

DEFINES = ["CUPLUG_ARCHITECTURES=900"]
X = np.array([1.5, -2.5, 3.0], np.float32)


@pytest.fixture(scope="module")
def dtypes(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "dtypes.c", "dtypes", defines=DEFINES))


@pytest.fixture(scope="module")
def host_arrays(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "host_arrays.c", "host_arrays", defines=DEFINES))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def function():
    return pytest.importorskip("cuplug.torch").Function


def test_dtypes_of_pytorch(torch, dtypes, function):
    x = torch.from_numpy(X)
    for call in (dtypes.cast, function(dtypes.cast)):
        for dtype in (torch.float64, "float64", np.float64, np.dtype("float64")):
            y = call(x, dtype)
            assert y.dtype == torch.float64
            torch.testing.assert_close(y, x.double())
        assert call(x, dtype=torch.int32).tolist() == [1, -2, 3]
        assert call(x).dtype == torch.float32
    assert str(function(dtypes.cast).packet.default._schema).count("ScalarType? dtype=None") == 1
    with pytest.raises(TypeError, match="cast: dtype: got the dtype int16, expected float32 | "):
        dtypes.cast(x, torch.int16)
    for call in (dtypes.recast, function(dtypes.recast)):
        assert call(x.double()).dtype == torch.float64
        assert call(x.double(), to=torch.float32).dtype == torch.float32


def test_compiled_by_pytorch(torch, dtypes, function):
    cast = function(dtypes.cast)
    compiled = torch.compile(lambda x, to: cast(x * 2, to) + 1, backend="eager", fullgraph=True)
    x = torch.from_numpy(X)
    for dtype in (torch.float64, torch.int32):
        torch.testing.assert_close(compiled(x, dtype), cast(x * 2, dtype) + 1)
    dynamic = torch.compile(lambda x: cast(x, torch.float64), backend="eager", dynamic=True)
    for n in (2, 5):
        assert dynamic(torch.ones(n)).dtype == torch.float64
    recast = function(dtypes.recast)
    compiled = torch.compile(lambda x: recast(x * 2) + 1, backend="eager", fullgraph=True)
    for x in (torch.ones(3), torch.ones(2, dtype=torch.float64)):
        torch.testing.assert_close(compiled(x), x * 2 + 1)
    mapped = torch.vmap(lambda x: cast(x, torch.float64))(torch.ones(2, 3))
    assert mapped.dtype == torch.float64


def test_opcheck(torch, dtypes, host_arrays, function):
    x = torch.from_numpy(X)
    utils = ("test_schema", "test_faketensor", "test_autograd_registration")
    overload = function(dtypes.cast).packet.default
    for dtype in (torch.float64, None):
        torch.library.opcheck(overload, (x, dtype), test_utils=utils)
    sums = function(host_arrays.sums)
    torch.library.opcheck(sums.packet.default, (x, torch.tensor([1, 2])), test_utils=utils)
    assert sums(x, torch.tensor([1, 2]))[0].tolist() == [1.5, 0.5]


def test_host_tensors_next_to_those_of_a_gpu(torch, host_arrays, function):
    """Without a GPU, use tensors without elements: only their devices matter."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    sums = function(host_arrays.sums)
    with FakeTensorMode(allow_non_fake_inputs=True):
        x = torch.empty(5, device="cuda")
        assert sums(x, torch.ones(2, dtype=torch.int64))[0].device.type == "cuda"
        with pytest.raises(ValueError, match="sums: sizes: got a tensor on cuda:0, expected one"):
            sums(x, torch.ones(2, dtype=torch.int64, device="cuda"))


@pytest.mark.gpu
def test_host_tensors_on_a_gpu(torch, build_plugin):
    source = FIXTURES.parents[1] / "examples" / "plugins" / "grouped_matmul.cu"
    operator = cuplug.load(build_plugin(source, "grouped_matmul", cuda=True)).grouped_matmul
    x, w = torch.randn(8, 6, device="cuda"), torch.randn(2, 6, 5, device="cuda")
    for sizes in (torch.tensor([3, 5]), np.array([3, 5])):
        y = operator(x, w, sizes)
        assert isinstance(y, torch.Tensor)
        assert y.device == x.device
        torch.testing.assert_close(y, torch.cat([x[:3] @ w[0], x[3:] @ w[1]]))
    with pytest.raises(ValueError, match="sizes: got an array on cuda:0, expected one on the host"):
        operator(x, w, torch.tensor([3, 5], device="cuda"))


def test_dtypes_of_jax(dtypes):
    jax = pytest.importorskip("jax")
    cast = pytest.importorskip("cuplug.jax").Function(dtypes.cast)
    x = jax.numpy.asarray(X)
    for dtype in (jax.numpy.int32, "int32", np.int32):
        assert cast(x, dtype).tolist() == [1, -2, 3]
        y = jax.jit(lambda x, dtype=dtype: cast(x, dtype))(x)
        assert y.dtype == "int32"
        assert y.tolist() == [1, -2, 3]
    assert dtypes.cast(X, jax.numpy.float64).dtype == np.float64
    assert cast(x).dtype == "float32"
    recast = cuplug.jax.Function(dtypes.recast)
    assert jax.jit(recast)(x).dtype == "float32"
    assert jax.jit(lambda x: recast(x.astype("int32"), "float32"))(x).tolist() == [1, -2, 3]
    mapped = jax.vmap(lambda x: cast(x, "int32"))(jax.numpy.ones((2, 3)))
    assert (mapped.dtype, mapped.shape) == ("int32", (2, 3))
    with pytest.raises(TypeError, match="cast: dtype: "):
        jax.jit(lambda x: cast(x, "int16"))(x)


def test_host_arrays_in_jax(host_arrays):
    jax = pytest.importorskip("jax")
    sums = pytest.importorskip("cuplug.jax").Function(host_arrays.sums)
    with jax.enable_x64(True):
        found = jax.jit(sums)(jax.numpy.asarray(X), jax.numpy.array([1, 2]))
        assert found.sums.tolist() == [1.5, 0.5]
        text = "sums: sizes: got an operand of a JAX program on a GPU, which is in its memory"
        given = jax.numpy.asarray(X), jax.numpy.array([1, 2])
        with pytest.raises(TypeError, match=text):
            jax.jit(sums).trace(*given).lower(lowering_platforms=("cuda",))


def test_dask(dtypes, host_arrays):
    da = pytest.importorskip("dask.array")
    x = da.from_array(np.arange(6, dtype=np.float32), chunks=3)
    for dtype in ("int32", np.int32, np.dtype("int32")):
        y = dtypes.cast(x, dtype)
        assert y.dtype == "int32"
        assert y.compute().tolist() == [0, 1, 2, 3, 4, 5]
    assert dtypes.cast(x.astype("float64")).dtype == np.float32
    for dtype in ("float32", "float64"):
        for y in (dtypes.recast(x.astype(dtype)), dtypes.recast(x.astype("int32"), to=dtype)):
            assert y.dtype == dtype
            assert y.compute().dtype == dtype
    with pytest.raises(TypeError, match=r"^recast: to: got the dtype int32, expected float32 "):
        dtypes.recast(x.astype("int32"))
    y = host_arrays.stretch(np.array([2.0]), x)
    assert y.compute().tolist() == [0, 2, 4, 6, 8, 10]

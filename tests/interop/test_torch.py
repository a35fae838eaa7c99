# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors: the same kind out, without copies, on PyTorch's current stream."""

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale

torch = pytest.importorskip("torch")
from torch import library  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]

on_each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(scope="module", autouse=True)
def many_tensors():
    """Read tensors first: the first ones of a process are read by DLPack, not by libtorch."""
    for _ in range(20):
        relu(torch.ones(3))


def index(device, *values):
    return torch.tensor(values, device=device, dtype=torch.int32)


@on_each_device
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(device, dtype):
    x = torch.arange(7).to(getattr(torch, dtype)).to(device)
    for _ in range(2):  # the first tensor of a dtype is read by DLPack
        y = gather(x, index(device, 3, 0, -1))
        assert isinstance(y, torch.Tensor)
        assert (y.dtype, y.device) == (x.dtype, x.device)
        assert y.cpu().tolist() == [x.cpu()[k].item() for k in (3, 0, -1)]


@on_each_device
def test_out_is_filled_and_returned(device):
    x, out = torch.tensor([-1.0, 2.0], device=device), torch.zeros(2, device=device)
    pointer = out.data_ptr()
    assert relu(x, out=out) is out
    assert out.data_ptr() == pointer
    assert out.tolist() == [0, 2]


@on_each_device
def test_in_place_works_on_the_tensor_itself(device):
    x = torch.arange(4.0, device=device)
    assert scale(x, 2) is None
    assert x.tolist() == [0, 2, 4, 6]


@on_each_device
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[::2],
        lambda x: x.reshape(4, 6).T,
        lambda x: x[5:],
        lambda x: x[:0],
        lambda x: x.reshape(2, 3, 4).permute(2, 0, 1),
        lambda x: x[3].expand(5),
    ],
)
def test_views(device, view):
    x = view(torch.arange(24.0, device=device) - 12)
    y = relu(x)
    assert y.shape == x.shape
    assert y.stride() == torch.relu(x).stride()
    assert torch.equal(y, x.clamp(min=0))


def test_strided_in_place_is_refused_on_the_cpu():
    with pytest.raises(ValueError, match=r"^scale: data: got an array that is not C-contiguous"):
        scale(torch.zeros(8)[::2], 2)


@pytest.mark.gpu
def test_strided_in_place_on_a_gpu():
    x = torch.ones(8, device="cuda")
    scale(x[::2], 2)
    assert x.tolist() == [2, 1] * 4
    with pytest.raises(ValueError, match=r"^scale: data: got "):
        scale(x[:1].expand(8), 2)


@on_each_device
def test_tensor_that_requires_grad(device):
    x = torch.ones(3, device=device, requires_grad=True)
    assert relu(x).requires_grad
    assert relu(torch.nn.Parameter(x.detach())).requires_grad
    with pytest.raises(TypeError, match=r"^relu: out: got with a tensor that PyTorch records"):
        relu(x, out=torch.ones(3, device=device))
    assert relu(x.detach()).tolist() == [1, 1, 1]
    assert relu(torch.nn.Parameter(x.detach(), requires_grad=False)).tolist() == [1, 1, 1]


@on_each_device
def test_subclass_with_an_attribute_of_its_own(device):
    class Own(torch.Tensor):
        requires_grad = property(lambda self: True)

    assert relu(torch.ones(3, device=device).as_subclass(Own)).tolist() == [1, 1, 1]


@on_each_device
def test_views_that_are_not_their_memory(device):
    x = torch.tensor([1 + 2j, 3 - 4j], device=device)
    with pytest.raises(TypeError, match=r"got a conjugated view \(pass x.resolve_conj\(\)\)"):
        gather(x.conj(), index(device, 0))
    for negated in (x.conj().imag, x[:1].conj().imag):
        with pytest.raises(TypeError, match=r"got a negated view \(pass x.resolve_neg\(\)\)"):
            gather(negated, index(device, 0))
    assert gather(x.conj().imag.resolve_neg(), index(device, 1)).tolist() == [4]
    assert gather(x.imag, index(device, 1)).tolist() == [-4]


@on_each_device
def test_tensors_without_memory_of_their_own(device, capfd):
    gather(torch.ones(3, device=device), index(device, 0))
    x = torch.eye(3, device=device)
    for none in (x.to_sparse(), torch.ones(3, device="meta")):
        with pytest.raises(TypeError, match="^gather: source: got Tensor that cannot be read"):
            gather(none, index(device, 0))
    if hasattr(library, "register_vmap"):  # PyTorch 2.5
        assert torch.equal(torch.func.vmap(relu)(x), x)
    assert torch.equal(torch.func.grad(lambda x: relu(x).sum())(x), x)
    assert "Exception" not in capfd.readouterr().err


@on_each_device
def test_tensors_that_change(device):
    """The state of an object in the previous call is not used."""
    x = torch.tensor([-1.0, 2.0], device=device)
    assert relu(x).tolist() == [0, 2]
    x.set_(torch.tensor([-1, 2, 3], device=device, dtype=torch.float32))
    assert relu(x).tolist() == [0, 2, 3]
    x.data = torch.tensor([[4.0], [-5.0]], device=device)
    assert relu(x).tolist() == [[4], [0]]
    x.t_()
    assert relu(x).tolist() == [[4, 0]]
    x.resize_(0)
    assert relu(x).tolist() == []
    x.requires_grad_()
    assert relu(x).requires_grad


@on_each_device
def test_lazily_copied_memory_is_copied_first(device):
    if not hasattr(torch, "_lazy_clone"):
        pytest.skip("this PyTorch has no lazy clones")
    x = torch.tensor([1.0, 2.0], device=device)
    scale(x, 1)
    clone = torch._lazy_clone(x)
    scale(clone, 3)
    assert (x.tolist(), clone.tolist()) == ([1, 2], [3, 6])


@on_each_device
def test_python_subclass(device):
    class Own(torch.Tensor):
        pass

    x = torch.tensor([-1.0, 2.0], device=device).as_subclass(Own)
    assert relu(x).tolist() == [0, 2]


def test_output_of_unknown_size_and_several_outputs(ops):
    x = torch.tensor([1.0, -2, 3], dtype=torch.float64)
    assert torch.equal(ops.positive(x), x[x > 0])
    low, high = ops.split(x)
    assert torch.equal(low + high, x)


def test_broadcast_and_mixed_with_numpy(ops):
    x = torch.arange(3, dtype=torch.float64)
    result = ops.add(x, np.ones((2, 1)))
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [[1, 2, 3]] * 2
    assert isinstance(ops.add(np.ones((2, 1)), x), np.ndarray)


class Old(torch.Tensor):
    """A tensor from before DLPack's C exchange API, with the strictest check of streams."""

    __dlpack_c_exchange_api__ = None

    def __dlpack__(self, *, stream=None):
        assert stream == (-1 if self.is_cuda else None)  # calls run on PyTorch's current stream
        return super().__dlpack__(stream=stream)


def old(*args, **keywords):
    return torch.tensor(*args, **keywords).as_subclass(Old)


@on_each_device
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_through_dlpack_alone(device, dtype):
    x = old([0, 1, 2, 3, 4, 5, 6], device=device).to(getattr(torch, dtype))
    y = gather(x, index(device, 3, 0, -1))
    assert isinstance(y, Old)
    assert (y.dtype, y.device) == (x.dtype, x.device)
    assert y.tolist() == [x[k].item() for k in (3, 0, -1)]


@on_each_device
def test_arguments_through_dlpack_alone(device):
    x, out = old([[-1.0, 2, 3], [4, -5, 6]], device=device), old([0.0, 0], device=device)
    assert relu(x[:, 1], out=out) is out
    assert out.tolist() == [2, 0]
    assert scale(out, 2) is None
    assert out.tolist() == [4, 0]
    assert torch.equal(relu(x.T), x.T.clamp(min=0))
    z = old([1 + 2j], device=device)
    for seen, refused in [
        ("a conjugated view", z.conj()),
        ("a negated view", z.conj().imag),
        ("Old that cannot be read", old([1.0], device="meta")),
    ]:
        with pytest.raises(TypeError, match=f"^gather: source: got {seen}"):
            gather(refused, index(device, 0))
    assert relu(old([1.0], device=device, requires_grad=True)).requires_grad


def test_tensor_is_not_kept(ops):
    import gc
    import sys

    x = torch.arange(3.0)
    before = sys.getrefcount(x)
    for _ in range(20):
        ops.copy(x)
        with pytest.raises(TypeError):
            ops.copy(x, 3)
    gc.collect()
    assert sys.getrefcount(x) == before


# ---- On a GPU


@pytest.mark.gpu
def test_device_and_host_are_not_mixed():
    with pytest.raises(ValueError, match="index: got an array on the host, expected cuda:0"):
        gather(torch.arange(3.0, device="cuda"), index("cpu", 0))
    with pytest.raises(ValueError, match="device: got the host, expected cuda:0"):
        relu(torch.ones(3, device="cuda"), device="cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("cls", [torch.Tensor, Old])
def test_current_stream_is_used(cls):
    """The input is written late on a separate stream; a call on another one would read zeros."""
    x = torch.zeros(1 << 20, device="cuda").as_subclass(cls)
    stream = torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        x.fill_(3)
        y = relu(x)
        later = y + 1
    assert not stream.query()
    stream.synchronize()
    assert later.min().item() == 4
    assert cuplug.last_call() == ("relu", "cuda:0", False, relu.path)


@pytest.mark.gpu
@pytest.mark.parametrize("cls", [torch.Tensor, Old])
def test_call_is_captured_in_a_graph(cls):
    x = torch.full((100,), -1.0, device="cuda").as_subclass(cls)
    y = torch.ones_like(x)
    relu(x, out=y)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        relu(x, out=y)
    x.fill_(5)
    graph.replay()
    assert y.min().item() == 5


@pytest.mark.gpu
def test_bad_index_is_raised_when_it_is_waited_for():
    y = gather(torch.arange(3.0, device="cuda"), index("cuda", 0, 7))
    assert y.shape == (2,)
    with pytest.raises(IndexError, match=r"^gather: index: .*7"):
        cuplug.synchronize()
    cuplug.synchronize()


@pytest.mark.gpu
def test_torch_allocates_the_outputs():
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    y = relu(torch.ones(1 << 20, device="cuda"))
    assert torch.cuda.memory_allocated() - before >= y.numel() * 4
    del y
    assert torch.cuda.memory_allocated() == before


@pytest.mark.gpu
def test_host_tensors_are_staged():
    x = torch.arange(10.0) - 5
    y = relu(x, device="cuda")
    assert y.device.type == "cpu"
    assert torch.equal(y, x.clamp(min=0))
    assert cuplug.last_call()[1:3] == ("cuda:0", True)
    assert torch.equal(relu(x.pin_memory(), device=torch.device("cuda")), y)


@pytest.mark.gpu
def test_mixed_with_cuplug_arrays():
    x = cuplug.asarray(np.arange(5, dtype=np.float32))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(100_000_000)
        y = gather(torch.arange(5.0, device="cuda") + 1, index("cuda", 4, 0))
        z = gather(x, index("cuda", 4, 0))
    assert isinstance(z, cuplug.Array)
    assert z.numpy().tolist() == [4, 0]
    assert y.tolist() == [5, 1]


@pytest.mark.gpu(n=2)
def test_second_gpu():
    x = torch.tensor([-1.0, 2.0], device="cuda:1")
    assert relu(x).device == x.device
    assert relu(x).tolist() == [0, 2]
    assert cuplug.last_call().device == "cuda:1"
    with pytest.raises(ValueError, match="cuda:1"):
        gather(x, index("cuda:0", 0))

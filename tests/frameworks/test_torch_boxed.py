# SPDX-License-Identifier: Apache-2.0
"""Kernels without Python: supported calls, calls that need Python, and errors."""

import gc
import resource
import sys
import threading
import weakref

import cuplug
import pytest
from places import FIXTURES, ROOT

torch = pytest.importorskip("torch")

from cuplug._integration.torch.functions import is_available  # noqa: E402
from cuplug.torch import Function, gather, leaky_relu, relu  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)
needs_kernels = pytest.mark.skipif(VERSION < (2, 10), reason="PyTorch 2.10")


@pytest.fixture(scope="module")
def graded(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "gradients.c", "gradients"))


@needs_kernels
def test_all_of_pytorch_that_they_need_is_there():
    assert is_available()


@needs_kernels
@on_each_device
def test_no_python_runs(device):
    """The Python functions of a registration would appear in a trace of calls."""
    seen = []
    x, index = torch.randn(4, 3, device=device), torch.tensor([1], device=device)
    relu(x), gather(x, index, "wrap", 1)
    sys.setprofile(lambda frame, event, arg: seen.append(frame.f_code.co_filename))
    try:
        torch.ops.cuplug.relu.default(x)
        torch.ops.cuplug.gather.default(x, index, "wrap", 1)
        torch.ops.cuplug.leaky_relu.default(x, 0.5)
    finally:
        sys.setprofile(None)
    assert [name for name in seen if "cuplug/_integration/" in name] == []


@on_each_device
@pytest.mark.parametrize(
    "call",
    [
        lambda x: relu(x.T),
        lambda x: gather(x[::2], torch.tensor([1, 0], device=x.device)),
        lambda x: gather(x, torch.tensor([1, 0, 2, 0], device=x.device)[::2]),
        lambda x: leaky_relu(x.expand(2, 4, 3)),
    ],
)
def test_strided_tensors(call, device):
    x = torch.randn(4, 3, device=device)
    assert torch.equal(call(x), call(x.clone(memory_format=torch.contiguous_format)))


def test_nothing_is_kept(graded):
    x = torch.randn(4, 3, requires_grad=True)
    index = torch.tensor([1, 0])
    watched = [weakref.ref(y) for y in (x, index)]
    for _ in range(3):
        y = gather(x, index, "wrap", 1)
        y.sum().backward()
        with pytest.raises(ValueError, match="got the string"):
            gather(x, index, "hm")
    del x, index, y
    gc.collect()
    assert [ref() for ref in watched] == [None, None]


@pytest.mark.slow
def test_memory_does_not_grow():
    def work(n):
        x, index = torch.randn(64, 64), torch.tensor([1, 2, 3])
        for _ in range(n):
            gather(x, index, "wrap", 1)
            with pytest.raises(IndexError):
                gather(x, index + 100)

    work(3000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    work(30000)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4096  # KiB


def test_exceptions_in_many_threads(graded):
    seen = []

    def work(number):
        for k in range(50):
            try:
                gather(torch.ones(3), torch.tensor([10 * number + k + 3]))
            except IndexError as error:
                seen.append(f"index {10 * number + k + 3} at" in str(error))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 200


@pytest.mark.gpu
def test_faults_of_kernels_are_told_by_a_later_call():
    x = torch.ones(3, device="cuda")
    gather(x, torch.tensor([9], device="cuda"))
    torch.cuda.synchronize()
    with pytest.raises(IndexError, match="gather"):
        relu(x)
    assert relu(x).tolist() == [1, 1, 1]


def test_exceptions_in_backward(graded):
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    y = Function(graded.weigh)(x, x)
    z = Function(graded.weigh_backward)(y, x, x)[0]
    with pytest.raises(NotImplementedError, match=r"^weigh_backward: it has no gradient"):
        z.sum().backward()


def test_modes_see_the_operator():
    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    seen = []
    x = torch.randn(3, requires_grad=True)
    with Seen():
        relu(x.detach())
        relu(x).sum().backward()
    assert seen.count("cuplug.relu.default") == 2
    assert seen.count("cuplug.relu_backward.default") == 1


def test_the_last_call_is_told():
    relu(torch.ones(3))
    assert cuplug.last_call().operator == "relu"
    gather(torch.ones(3), 0)
    assert cuplug.last_call().operator == "gather"


def test_the_device_of_host_arrays_is_that_of_a_call():
    with cuplug.Device("cpu"):
        assert relu(torch.tensor([-1.0, 1.0])).tolist() == [0, 1]


def test_without_them_kernels_are_in_python(run_python):
    code = """if True:
        import torch, cuplug
        from torch import library
        from cuplug._integration.torch import register as torch_register
        torch_register.is_available = lambda: False
        from cuplug.torch import gather, relu
        x = torch.randn(4, 3, requires_grad=True)
        assert torch.equal(relu(x), x.relu())
        relu(x.T).sum().backward()
        assert torch.equal(x.grad, (x > 0).float())
        assert torch.equal(gather(x, torch.tensor([1]), axis=1), x[:, [1]])
        try:
            gather(x, torch.tensor([9]))
        except IndexError as error:
            assert "index 9 at position 0" in str(error)
        library.opcheck(torch.ops.cuplug.relu.default, (x,))
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@on_each_device
def test_tensors_are_copied_for_guarantees(build_plugin, device):
    source = ROOT / "examples" / "plugins" / "silu_and_mul.cu"
    operator = cuplug.load(build_plugin(source, "silu_and_mul", cuda=True)).silu_and_mul
    memory = torch.randn(8 * 33, device=device)
    wide = memory.reshape(8, 33)
    for x in (
        wide[:, :32],
        wide[:, 1:],
        memory[1:257].reshape(8, 32),
        memory[:256].reshape(32, 8).T,
    ):
        gate, up = x[:, :16], x[:, 16:]
        wanted = torch.nn.functional.silu(gate) * up
        for call in (operator, Function(operator)):
            torch.testing.assert_close(call(gate, up), wanted)
    with pytest.raises(
        ValueError, match=r"^silu_and_mul: y: got the address 0x\w+, expected a mult"
    ):
        operator(gate, up, out=memory[1:129].reshape(8, 16))

# SPDX-License-Identifier: Apache-2.0
"""Writes to PyTorch tensors count for autograd, like PyTorch's in-place functions."""

import re
import threading

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu, scale, topk

torch = pytest.importorskip("torch")

add_to = cuplug.elementwise("add_to(inout y: T, x: T)", "y = y + x")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")


class Derived(torch.Tensor):
    """Has no memory in a known place: its writes are counted by PyTorch's Python function."""


def plain():
    return torch.ones(4)


MAKERS = [
    plain,
    lambda: torch.nn.Parameter(torch.ones(4), requires_grad=False),
    lambda: torch.ones(4).as_subclass(Derived),
    lambda: torch.ones(8)[::2][:4].contiguous(),
]
# Each writes to a tensor of four elements once.
WRITES = [
    lambda x: scale(x, 2.0),
    lambda x: scale(data=x, factor=2.0),
    lambda x: add_to(x, torch.ones(4)),
    lambda x: add_to(x, np.ones(4, "float32")),
    lambda x: relu(torch.ones(4), out=x),
    lambda x: relu(np.ones(4, "float32"), out=x),
    lambda x: relu(torch.ones(4), out=(x,)),
    lambda x: total(torch.ones(3, 4), axis=0, out=x),
]


@pytest.fixture(params=["first", "many"], autouse=True)
def tensors_before(request):
    """Read tensors first: the first ones of a process are read by DLPack, not by libtorch."""
    for _ in range(20 if request.param == "many" else 0):
        relu(torch.ones(3))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_counts_once(make, write):
    x = make()
    version = x._version
    write(x)
    assert x._version == version + 1


@pytest.mark.parametrize("write", WRITES)
def test_views_and_their_base_have_one_counter(write):
    base = torch.ones(8)
    write(base[4:])
    assert base._version == 1


def test_writes_of_threads_to_views_of_one_tensor_all_count():
    """PyTorch writes without the interpreter's lock."""
    base, n = torch.ones(8), 20_000
    mine, others = base[:4], base[4:]
    relu(mine, out=mine)
    thread = threading.Thread(target=lambda: [others.add_(1) for _ in range(n)])
    thread.start()
    for _ in range(n):
        relu(mine, out=mine)
    thread.join()
    assert base._version == 2 * n + 1


@pytest.mark.parametrize("write", WRITES)
def test_autograd_refuses_gradients_of_values_that_changed(write):
    w, x = torch.ones(4, requires_grad=True), torch.full((4,), 2.0)
    y = (w * x).sum()
    write(x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_reads_and_refused_calls_do_not_count():
    x = plain()
    relu(x)
    total(x)
    with pytest.raises(ValueError, match="out"):
        relu(torch.ones(3), out=x)
    with pytest.raises(TypeError, match="factor"):
        scale(x, "two")
    assert x._version == 0


def test_each_given_output_counts():
    values, indices = torch.empty(2), torch.empty(2, dtype=torch.int64)
    topk(torch.ones(4), 2, out=(values, indices))
    topk(torch.ones(4), 2, out=(values, None))
    assert (values._version, indices._version) == (2, 1)


@pytest.mark.parametrize("make", MAKERS[:3])
@pytest.mark.parametrize("write", WRITES)
def test_inference_tensors_are_written_in_inference_mode_alone(make, write):
    with torch.inference_mode():
        x = make()
        write(x)
    before = x.clone()
    with pytest.raises(RuntimeError, match=r"^\w+: \w+: got an inference tensor outside"):
        write(x)
    assert torch.equal(x, before)
    normal = plain()
    with torch.inference_mode():
        write(normal)
    assert normal._version == 1


def test_leaves_that_require_grad_stay_as_they_are():
    x = torch.ones(4, requires_grad=True)
    for y in (x, x[1:]):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            scale(y, 2.0)
    assert x.tolist() == [1, 1, 1, 1]
    with torch.no_grad():
        scale(x, 2.0)
    assert x.tolist() == [2, 2, 2, 2]
    assert x._version > 0


def test_out_without_grad():
    x, w = torch.tensor([1.0, -1.0], requires_grad=True), torch.ones(2, requires_grad=True)
    out = torch.empty(2)
    with pytest.raises(TypeError, match="out: got with a tensor that PyTorch records"):
        relu(x, out=out)
    with torch.no_grad():
        assert relu(x, out=out) is out
        assert relu(x, out=w) is w
        assert relu(x, device="cpu").tolist() == [1, 0]
    assert out.tolist() == w.tolist() == [1, 0]
    assert (out._version, w._version, w.requires_grad) == (1, 1, True)


KERNEL = """
extern "C" __global__ void copy(float *to, const float *from) {
  to[threadIdx.x] = from[threadIdx.x];
}
"""


@pytest.mark.gpu
def test_launches_write_through_pointers_that_are_not_to_const():
    kernel = cuplug.compile(KERNEL, names=["copy"])["copy"]
    to, source = torch.zeros(4, device="cuda"), torch.ones(4, device="cuda")
    kernel[1, 4](to, source)
    assert (to._version, source._version, to.tolist()) == (1, 0, [1, 1, 1, 1])
    kernel[1, 4](to.data_ptr(), source)
    assert to._version == 1  # an address does not identify the tensor
    with torch.inference_mode():
        inferred = torch.zeros(4, device="cuda")
    kernel[1, 4](to, inferred)
    with pytest.raises(RuntimeError, match=re.escape("copy: argument 1: got an inference tensor")):
        kernel[1, 4](inferred, source)

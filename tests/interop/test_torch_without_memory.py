# SPDX-License-Identifier: Apache-2.0
"""PyTorch tensors that have no plain memory: their names, and the object to pass instead."""

import cuplug
import pytest
from cuplug.ops import relu, scale

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch's, of prototypes


def freed(x):
    x.untyped_storage().resize_(0)
    return x


def nested(**layout):
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], **layout)


TENSORS = {
    "nested": (nested, r"a nested tensor \(pass .*unbind"),
    "jagged": (lambda: nested(layout=torch.jagged), r"a nested tensor \(pass .*unbind"),
    "coo": (lambda: torch.eye(3).to_sparse(), r"layout torch.sparse_coo \(pass x.to_dense"),
    "csr": (lambda: torch.eye(3).to_sparse_csr(), r"layout torch.sparse_csr \(pass x.to_dense"),
    "meta": (lambda: torch.empty(3, device="meta"), r"a meta tensor, .* \(pass one on a device"),
    "quantized": (
        lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        r"a quantized tensor of torch.qint8 \(pass x.dequantize",
    ),
    "conjugated": (lambda: torch.ones(3, dtype=torch.complex64).conj(), r"pass x.resolve_conj"),
    "negated": (lambda: torch.ones(3, dtype=torch.complex64).conj().imag, r"pass x.resolve_neg"),
    "freed": (lambda: freed(torch.ones(64)), r"shape \(64,\) whose storage was freed \(resize"),
    "freed parameter": (
        lambda: freed(torch.nn.Parameter(torch.ones(64), requires_grad=False)),
        r"Parameter of shape \(64,\) whose storage was freed",
    ),
    "freed and recorded": (
        lambda: freed(torch.nn.Parameter(torch.ones(64))),
        r"shape \(64,\) whose storage was freed",
    ),
}


@pytest.fixture(params=["first", "many"], autouse=True)
def tensors_before(request):
    """Read tensors first: the first ones of a process are read by DLPack, not by libtorch."""
    for _ in range(20 if request.param == "many" else 0):
        relu(torch.ones(3))
        relu(torch.ones(3, dtype=torch.complex64).real)


@pytest.mark.parametrize("name", TENSORS)
def test_messages_name_operator_argument_tensor_and_remedy(name):
    make, text = TENSORS[name]
    with pytest.raises(TypeError, match=r"(?s)^relu: x: got .*" + text + ".*, expected T"):
        relu(make())


@pytest.mark.parametrize(
    "view",
    [lambda y: y[5:], lambda y: y.reshape(8, 8)[:, 3:].T, lambda y: y[63:], lambda y: y[::2]],
)
def test_views_of_a_freed_storage_are_not_read(view):
    y = torch.ones(64)
    x = view(y)
    freed(y)
    for call in (relu, lambda x: scale(x, 2.0), lambda x: relu(torch.ones(x.shape), out=x)):
        with pytest.raises(TypeError, match="whose storage was freed"):
            call(x)
    with pytest.raises(TypeError, match="whose storage was freed"):
        cuplug.asarray(x)


def test_operators_of_pytorch_refuse_freed_tensors():
    from cuplug.torch import relu as registered

    y = torch.ones(64)
    x = y[5:]
    freed(y)
    for tensor in (x, y):
        with pytest.raises(TypeError, match="whose storage was freed"):
            registered(tensor)


def test_storage_that_comes_back_and_empty_views_are_read():
    y = torch.ones(4)
    empty = y[4:]
    storage = y.untyped_storage()
    freed(y)
    assert relu(empty).shape == (0,)
    storage.resize_(16)
    y.fill_(2)
    assert relu(y).tolist() == [2, 2, 2, 2]

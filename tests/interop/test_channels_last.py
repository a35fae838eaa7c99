# SPDX-License-Identifier: Apache-2.0
"""Element-wise operators on PyTorch tensors in channels_last and other layouts, which the outputs
also have."""

import itertools

import cuplug
import pytest
from cuplug.ops import relu

torch = pytest.importorskip("torch")

add = cuplug.elementwise("add(a: T, b: T) -> T", "a + b")
both = cuplug.elementwise("both(a: T) -> (x: T, y: float64)", "x = a; y = 2 * a")
number = cuplug.elementwise("number(x: T) -> int64", "i")
FORMATS = [torch.channels_last, torch.channels_last_3d]


def tensor(form, first=2):
    n_dims = 4 if form is torch.channels_last else 5
    return torch.randn((first, 3, 4, 5, 6)[:n_dims]).to(memory_format=form)


@pytest.fixture(params=["first", "many"], autouse=True)
def tensors_before(request):
    """Read tensors first: the first ones of a process are read by DLPack, not by libtorch."""
    for _ in range(20 if request.param == "many" else 0):
        relu(torch.ones(3))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "call",
    [
        relu,
        lambda x: add(x, x),
        lambda x: add(x, 1.0),
        lambda x: add(torch.tensor(1.0), x),
        lambda x: add(x, x.clone()),
        lambda x: both(x)[0],
        lambda x: both(x)[1],
    ],
)
def test_the_format_is_kept(form, call):
    x = tensor(form)
    y = call(x)
    assert y.stride() == x.stride()
    assert torch.equal(y, call(x.contiguous()))


@pytest.mark.parametrize("form", FORMATS)
def test_other_layouts_give_contiguous_outputs(form):
    x = tensor(form)
    others = [(x, x.contiguous()), (x, x[:1]), (x[:, :2], x[:, :2]), (x.contiguous(), x)]
    for a, b in others:
        y = add(a, b)
        assert y.is_contiguous()
        assert torch.equal(y, a + b)


def test_any_order_of_dimensions():
    for order in itertools.permutations(range(4)):
        x = torch.randn(2, 3, 4, 5).permute(order)
        assert relu(x).stride() == x.stride()
        assert torch.equal(relu(x), x.relu())
        assert [y.stride() for y in both(x)] == [x.stride()] * 2
        assert torch.equal(both(x).y, 2 * x.double())


@pytest.mark.parametrize("form", FORMATS)
def test_positions_count_in_the_order_of_the_dimensions(form):
    x = tensor(form)
    assert torch.equal(number(x), torch.arange(x.numel()).reshape(x.shape))
    out = torch.empty(x.shape)
    assert torch.equal(relu(x, out=out), x.relu())


@pytest.mark.parametrize("form", FORMATS)
def test_empty_and_single(form):
    assert relu(tensor(form, 0)).shape[0] == 0
    x = torch.ones(1, 1, 4, 5).to(memory_format=torch.channels_last)
    assert torch.equal(relu(x), x)


@pytest.mark.parametrize("form", FORMATS)
def test_messages_show_the_shape(form):
    x = tensor(form)
    shape = ", ".join(map(str, x.shape))
    with pytest.raises(TypeError, match=rf"add: b: got float64\[{shape}\]"):
        add(x, x.double())


@pytest.mark.parametrize("form", FORMATS)
def test_operators_of_pytorch_keep_it_compiled_or_not(form):
    from cuplug.torch import Function

    x = tensor(form)
    for operator in (relu, cuplug.elementwise("plus(a: T) -> T", "a + 1")):
        function = Function(operator)
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        for y in (x, x.transpose(0, 2), x[:, :2]):
            own = y.stride() if y.shape != (2, 2, *x.shape[2:]) else y.contiguous().stride()
            assert function(y).stride() == compiled(y).stride() == own
            torch.library.opcheck(function.packet.default, (y,))

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's autograd on operators: backward, twice, forward mode, torch.func."""

from functools import partial

import cuplug
import pytest
from places import FIXTURES

torch = pytest.importorskip("torch")
from cuplug.torch import (  # noqa: E402
    Function,
    cumulative_prod,
    cumulative_sum,
    fft,
    gather,
    index,
    index_put,
    irfft,
    join,
    leaky_relu,
    matmul,
    piecewise_scale,
    put,
    put_along_axis,
    relu,
    repeat,
    rfft,
    scale,
    scatter,
    scatter_add,
    select,
    sort,
    sort_by,
    take_along_axis,
    topk,
    tril,
    triu,
)
from torch import library  # noqa: E402
from torch.autograd import forward_ad, gradcheck, gradgradcheck  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)


def points(*shape, device="cpu"):
    """Return numbers apart from 0, where relu has a corner, that require grad."""
    x = torch.linspace(-2, 2, 2 * torch.Size(shape).numel(), dtype=torch.float64, device=device)
    return x[1::2].reshape(shape).contiguous().requires_grad_()


@pytest.fixture(scope="module")
def graded(build_plugin):
    """Return the operators of the plugin with gradients of each kind."""
    return cuplug.load(build_plugin(FIXTURES / "gradients.c", "gradients"))


def scaled(x):
    y = x.clone()
    scale(y, -2.5)
    return y


def put_along(x):
    y = x.clone()
    put_along_axis(y, places(x), x[:, :2] * 3)
    return y


def put_rows(x):
    y = x.clone()
    put(y, torch.tensor([2, 0, 2], device=x.device), x * 3)
    return y


def put_at(x, values):
    y = x.clone()
    index_put(y, list(torch.tensor([[2, 0, 2], [1, 2, 1]], device=x.device)), values)
    return y


def places(x):
    """Return positions along the second axis, different ones for each line."""
    return torch.tensor([[3, 0], [1, 2], [-1, 1]], device=x.device)


INDEX = [[2, 0], [1, 2]]
STOCK = {
    "relu": relu,
    "leaky_relu": leaky_relu,
    "slope": lambda x: leaky_relu(x, slope=0.5),
    "piecewise_scale": piecewise_scale,
    "scale": scaled,
    "gather": lambda x: gather(x, torch.tensor(INDEX, device=x.device)),
    "axis": lambda x: gather(x, torch.tensor([3, -1, 9], device=x.device), "clip", 1),
    "number": lambda x: gather(x, 1, axis=1),
    "topk": lambda x: topk(x, 2)[0],
    "topk_smallest": lambda x: topk(x * x, 2, 0, False)[0],
    "sort": lambda x: sort(x * x, 0),
    "scatter": lambda x: scatter(x, places(x), x[:, :2] * 3),
    "scatter_add": lambda x: scatter_add(x, places(x), x[:, 2:] * 3),
    "put_along_axis": put_along,
    "put": put_rows,
    "index_put": lambda x: put_at(x, x[1, :3] ** 2),
    "index_put_of_one": lambda x: put_at(x, x[1, 2:3] ** 2),
    "take": lambda x: take_along_axis(x, places(x)),
    "index": lambda x: index(x, list(torch.tensor(INDEX, device=x.device))),
    "select": lambda x: select(x, x < 1),
    "sort_by": lambda x: sort_by(x, x.detach() ** 2),
    "cumulative_sum": lambda x: cumulative_sum(x, 0, include_initial=True),
    "tril": lambda x: tril(x, 1),
    "triu": triu,
    "join": lambda x: join(x, x[:, 1:] * 2),
    "join_of_four": lambda x: join(x, x.T[:3] ** 2, x[:, :0], x),
    "repeat": lambda x: repeat(x, 3),
}


@on_each_device
@pytest.mark.parametrize("name", STOCK)
def test_stock_operators(device, name):
    x = points(3, 4, device=device)
    assert gradcheck(STOCK[name], (x,))
    assert gradgradcheck(STOCK[name], (x,))
    assert gradcheck(STOCK[name], (x,), check_forward_ad=True, check_backward_ad=False)


@on_each_device
@pytest.mark.parametrize("initial", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_cumulative_products(device, axis, initial):
    """Lines with no, one and two zeros."""
    x = points(4, 5, device=device).detach()
    x[1, 2] = x[0, 4] = x[3, 4] = 0
    product = partial(cumulative_prod, axis=axis, include_initial=initial)
    assert gradcheck(product, (x.requires_grad_(),))
    assert gradcheck(product, (torch.complex(x, x.flip(0)).detach().requires_grad_(),))
    grad = torch.randn(4 + initial * (1 - axis), 5 + initial * axis, device=device).double()
    (wanted,) = torch.autograd.grad(
        x.cumprod(axis), x, grad.narrow(axis, int(initial), x.shape[axis])
    )
    for dtype, tolerance in ((torch.float16, 2e-2), (torch.bfloat16, 0.1), (torch.float32, 1e-5)):
        narrow = x.detach().to(dtype).requires_grad_()
        (seen,) = torch.autograd.grad(product(narrow), narrow, grad.to(dtype))
        torch.testing.assert_close(seen.double(), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_rows_that_are_put(dtype):
    """The last value for a position has the gradient. Positions may be empty."""
    x, values = torch.randn(4, 3, dtype=dtype), torch.randn(2, 3, dtype=dtype)
    for positions in (torch.tensor([1, -1]), torch.tensor([2, 2], dtype=torch.int32)):

        def change(x, values, positions=positions, by=put, at=None):
            y = x.clone()
            by(y, at or positions, values)
            return y

        given = x.requires_grad_(), values.requires_grad_()
        assert gradcheck(change, given)
        assert gradgradcheck(change, given)
        assert gradcheck(partial(change, by=index_put, at=[positions]), given)
        one = torch.randn(1, dtype=dtype, requires_grad=True)
        assert gradcheck(partial(change, by=index_put, at=[positions]), (x, one))
    none, one = torch.zeros(0, dtype=torch.int64), torch.ones(1, dtype=dtype, requires_grad=True)
    change(x, one, by=index_put, at=[none]).abs().sum().backward()
    assert one.grad.tolist() == [0]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
@pytest.mark.parametrize(
    ("of_x", "of_y"),
    [((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((2, 1, 2, 3), (3, 3, 1))],
    ids=str,
)
def test_products(dtype, of_x, of_y):
    x = torch.randn(of_x, dtype=dtype, device="cuda", requires_grad=True)
    y = torch.randn(of_y, dtype=dtype, device="cuda", requires_grad=True)
    turned = y.detach().mT.contiguous().requires_grad_()
    for function, given in ((matmul, (x, y)), (lambda x, y: matmul(x, y.mT), (x, turned))):
        assert gradcheck(function, given)
        assert gradgradcheck(function, given)
    found = torch.autograd.grad(matmul(x, y).sum(-2).sum().abs(), (x, y))  # strides of 0
    wanted = torch.autograd.grad((x @ y).sum(-2).sum().abs(), (x, y))
    torch.testing.assert_close(found, wanted)


@pytest.mark.gpu
@pytest.mark.parametrize("n", [1, 5, 8])
def test_transforms(n):
    x = torch.randn(2, n, dtype=torch.float64, device="cuda", requires_grad=True)
    z = torch.randn(2, n // 2 + 1, dtype=torch.complex128, device="cuda", requires_grad=True)
    for function in (rfft, lambda x: fft(torch.complex(x, x.flip(1)), True)):
        assert gradcheck(function, (x,))
        assert gradgradcheck(function, (x,))
    assert gradcheck(lambda z: irfft(z, n), (z,))
    assert gradgradcheck(lambda z: irfft(z, n), (z,))


def test_the_cumulative_product_of_one_element():
    x = torch.tensor(3.0, requires_grad=True)
    (seen,) = torch.autograd.grad(cumulative_prod(x), x, torch.tensor(2.0))
    assert seen == 2


@pytest.mark.parametrize("name", ["gather", "scale", "join", "repeat"])
def test_complex_numbers(name):
    x = points(3, 4, 2).detach()
    assert gradcheck(STOCK[name], (torch.view_as_complex(x).clone().requires_grad_(),))


@on_each_device
def test_gradients_as_those_of_pytorch(device):
    x = points(5, 3, device=device)
    (wanted,) = torch.autograd.grad(x.relu().pow(2).sum(), x)
    (seen,) = torch.autograd.grad(relu(x).pow(2).sum(), x)
    assert torch.equal(seen, wanted)


@on_each_device
def test_strided_gradients(device):
    x = points(4, 3, device=device)
    relu(x).sum().backward()  # its gradient has strides of 0
    assert torch.equal(x.grad, (x > 0).to(x.dtype))
    x.grad = None
    relu(x).T[::2].sum().backward()
    assert torch.equal(x.grad[:, ::2], (x > 0).to(x.dtype)[:, ::2])
    assert not x.grad[:, 1].any()


@on_each_device
def test_cuplug_ops_hands_on(device):
    x = points(6, device=device)
    cuplug.ops.relu(x).sum().backward()
    assert torch.equal(x.grad, (x > 0).to(x.dtype))
    with torch.no_grad():
        assert cuplug.ops.relu(x).grad_fn is None
    with pytest.raises(TypeError, match=r"^relu: out: got with a tensor that PyTorch records"):
        cuplug.ops.relu(x, out=torch.empty(6, device=device))


def test_several_arrays_that_are_broadcast(graded):
    weigh = Function(graded.weigh)
    x, w = points(4, 3), points(3)
    assert gradcheck(weigh, (x, w))
    assert gradcheck(weigh, (x,))
    assert gradcheck(weigh, (points(2, 1, 3), points(4, 1)))


def test_named_results(graded):
    split = Function(graded.split)
    x = points(5)
    assert gradcheck(split, (x,))
    split(x)[1].sum().backward()  # nothing depends on the other one
    assert torch.allclose(x.grad, 2 * x)
    assert graded.split(x)._fields == graded.split(x.detach())._fields == ("low", "high")
    assert graded.split(x).low.requires_grad


def test_in_place(graded):
    for operator, wanted in ((graded.stretch, lambda x: 3 * x), (graded.square, lambda x: x * x)):
        function, x = Function(operator), points(4)
        y = x.clone()
        function(y, 3.0) if operator is graded.stretch else function(y)
        assert torch.equal(y, wanted(x))
        y.sin().sum().backward()
        (expected,) = torch.autograd.grad(wanted(x).sin().sum(), x)
        assert torch.allclose(x.grad, expected)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        function(points(4))


def test_tensor_that_was_changed_after_it_was_saved(graded):
    x = points(4)
    y = x.clone()
    z = relu(y)
    Function(graded.stretch)(y, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("name", ["total", "square_backward", "weigh_backward"])
def test_operator_without_gradient_says_so_when_backward_reaches_it(graded, name):
    x = points(3)
    given = {"total": ([x, x],), "square_backward": (x, x), "weigh_backward": (x, x)}[name]
    y = Function(getattr(graded, name))(*given)
    y = y if isinstance(y, torch.Tensor) else y[0]
    assert y.requires_grad
    wanted = rf"^{name}: it has no gradient: the plugin gradients names no operator that computes"
    with pytest.raises(NotImplementedError, match=wanted):
        y.sum().backward()


def test_integers_need_no_gradient():
    x = torch.arange(-3, 3)
    assert relu(x).tolist() == [0, 0, 0, 0, 1, 2]
    assert not relu(x).requires_grad


# ---- Forward mode, and torch.func ----------------------------------------------------------------


def test_forward_mode_of_what_is_linear(graded):
    stretch = Function(graded.stretch)

    def stretched(x):
        y = x.clone()
        stretch(y, 3.0)
        return y

    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.ones(3).double(), torch.arange(3.0).double())
        assert forward_ad.unpack_dual(stretched(x)).tangent.tolist() == [0, 3, 6]


def test_forward_mode_that_there_is_not(graded):
    for name, pattern in (
        ("total", "total: it has no gradient"),
        ("weigh", "weigh_backward: it has no gradient"),
        ("square", "square: it has no derivative in forward mode: it changes arrays in place"),
    ):
        function = Function(getattr(graded, name))
        with forward_ad.dual_level(), pytest.raises(NotImplementedError, match=pattern):
            x = forward_ad.make_dual(torch.ones(3).double(), torch.ones(3).double()).clone()
            function([x] if name == "total" else x)


@pytest.mark.skipif(not hasattr(library, "register_vmap"), reason="PyTorch 2.5")
@on_each_device
def test_functional_transforms(device):
    x = points(4, device=device).detach()
    for function, wanted in ((relu, torch.relu), (leaky_relu, torch.nn.functional.leaky_relu)):
        for transform in (
            lambda f: torch.func.grad(lambda x: f(x).pow(2).sum()),
            lambda f: (
                torch.func.grad(torch.func.grad(lambda x: f(x).pow(3).sum().sin()), 0)
                if x.numel() == 1
                else torch.func.grad(
                    lambda x: torch.func.grad(lambda x: f(x).pow(3).sum())(x).sum()
                )
            ),
            lambda f: torch.func.vmap(torch.func.grad(lambda x: f(x).pow(2))),
            lambda f: torch.func.jacrev(f),
            lambda f: torch.func.jacfwd(f),
            lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
            lambda f: torch.func.hessian(lambda x: f(x).pow(3).sum()),
        ):
            assert torch.allclose(transform(function)(x), transform(wanted)(x))

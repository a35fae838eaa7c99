# SPDX-License-Identifier: Apache-2.0
"""Operators in torch.compile and torch.export: whole graphs, sizes as symbols."""

import textwrap

import cuplug
import pytest
from places import FIXTURES

torch = pytest.importorskip("torch")

from cuplug.torch import Function, gather, leaky_relu, relu, scale, topk  # noqa: E402
from torch._dynamo.testing import CompileCounterWithBackend  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)
with_backends = pytest.mark.parametrize(
    "backend",
    ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)],
)


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()
    torch.set_flush_denormal(False)  # set by the libraries of PyTorch 2.4's inductor


@pytest.fixture(scope="module")
def graded(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "gradients.c", "gradients"))


@pytest.fixture(scope="module")
def language(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "language.c", "language"))


def compiled(function, backend="aot_eager", **options):
    return torch.compile(function, backend=backend, fullgraph=True, **options)


def test_tensors_on_two_devices_are_refused_as_by_a_call():
    """Otherwise, results computed from them would never be written."""
    text = (
        r"^gather: index: got a tensor on meta, expected cpu \(as source\); move one to the other$"
    )
    with pytest.raises(ValueError, match=text):
        gather(torch.arange(6.0), torch.empty(2, dtype=torch.int64, device="meta"))
    with FakeTensorMode(), pytest.raises(ValueError, match="as source"):
        gather(torch.empty(6, device="cuda:0"), torch.empty(2, dtype=torch.int64))


@on_each_device
@with_backends
def test_forward_and_backward(device, backend):
    def model(x, index, w):
        return leaky_relu(relu(gather(x, index) @ w), slope=0.2).sin()

    x = torch.randn(6, 4, device=device)
    index = torch.tensor([5, 0, 2], device=device)
    w = torch.randn(4, 4, device=device, requires_grad=True)
    wanted = torch.nn.functional.leaky_relu((x[index] @ w).relu(), 0.2).sin()
    (expected,) = torch.autograd.grad(wanted.sum(), w)
    seen = compiled(model, backend)(x, index, w)
    assert torch.allclose(seen, wanted, atol=1e-6)
    (gradient,) = torch.autograd.grad(seen.sum(), w)
    assert torch.allclose(gradient, expected, atol=1e-5)


def test_sizes_are_symbols():
    count = CompileCounterWithBackend("aot_eager")
    function = torch.compile(lambda x: relu(x) + gather(x, 0), backend=count, fullgraph=True)
    for n in (3, 5, 8, 13):
        x = torch.randn(n, n + 1)
        assert torch.equal(function(x), x.relu() + x[0])
    assert count.frame_count <= 2
    assert torch._dynamo.explain(lambda x: relu(x).sin())(x).graph_break_count == 0


def test_numbers_are_symbols():
    """Numbers computed from sizes: no number of one call is cached for others."""

    def model(x):
        return topk(x, x.shape[0] - 2)[0]

    count = CompileCounterWithBackend("aot_eager")
    function = torch.compile(model, backend=count, fullgraph=True)
    sizes = (4, 6, 10, 14)
    for n in sizes:
        x = torch.randn(n)
        assert torch.equal(function(x), model(x))
    assert count.frame_count <= 2
    module = type("Model", (torch.nn.Module,), {"forward": lambda _, x: model(x)})()
    dynamic = {"x": {0: torch.export.Dim("n", min=4)}}
    program = torch.export.export(module, (torch.randn(4),), dynamic_shapes=dynamic).module()
    assert [program(torch.randn(n)).shape for n in sizes] == [(n - 2,) for n in sizes]


def test_sizes_that_are_worked_out(language):
    diff, take = Function(language.diff), Function(language.take)
    formula = Function(language.formula)

    def model(x, i):
        n = x.shape[1]
        y = formula(x[0, : n - 2], x[1], x, 3)
        return diff(x).shape, take(x, i, axis=1).shape, y.shape

    function = compiled(model, dynamic=True)
    for n in (4, 6, 9):
        x, i = torch.randn(3, n), torch.zeros(2, n, dtype=torch.int64)
        assert function(x, i) == model(x, i)


@with_backends
def test_in_place(graded, backend):
    stretch = Function(graded.stretch)

    def model(x):
        y = x.clone()
        scale(y, 3.0)
        stretch(y, 2.0)
        return y.sin(), x

    x = torch.randn(5).double()
    seen, same = compiled(model, backend)(x)
    assert torch.allclose(seen, (6 * x).sin())
    assert torch.equal(same, x)

    def changed(x):
        scale(x, 3.0)

    y = x.clone()
    compiled(changed, backend)(y)
    assert torch.equal(y, 3 * x)


@pytest.mark.parametrize("is_graded", [False, True])
def test_gradients_through_an_argument_that_is_changed(is_graded):
    """A compiled function changes its argument, whose later use also has a gradient."""
    add_norm = Function(cuplug.find("add_rms_norm"))
    x, weight = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
    start = torch.randn(3, 4, requires_grad=is_graded)

    def gradients(function):
        residual = start * 1
        y = function(residual, x, weight)
        assert residual.requires_grad
        loss = (y * x.detach()).sum() + (residual**2).sum()
        return torch.autograd.grad(loss, [x, weight, *([start] if is_graded else [])])

    total = start + x
    y = torch.nn.functional.rms_norm(total, (4,), weight, 1e-6)
    loss = (y * x.detach()).sum() + (total**2).sum()
    wanted = torch.autograd.grad(loss, [x, weight, *([start] if is_graded else [])])
    for found in (gradients(add_norm), gradients(compiled(lambda *args: add_norm(*args)))):
        for each, expected in zip(found, wanted, strict=True):
            torch.testing.assert_close(each, expected, rtol=1e-4, atol=1e-5)


def test_sizes_that_the_run_finds(ops):
    positive = Function(ops.positive)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        function = compiled(lambda x: positive(x) * 2)
        for n in (3, 4):
            x = torch.arange(-2.0, n).double()
            assert torch.equal(function(x), 2 * x[x > 0])


def test_all_kinds_of_arguments(language):
    stack, head = Function(language.stack), Function(language.head)
    full = Function(language.full)

    def model(x, y):
        values, indices = head(x, 2)
        return stack([y, y + 1], weights=[0.5, 2.0]), values, indices, full([2, x.shape[0]], 0.5)

    x, y = torch.randn(4), torch.randn(2, 3).double()
    for seen, wanted in zip(compiled(model)(x, y), model(x, y), strict=True):
        assert torch.equal(seen, wanted)


def test_refusals_while_it_is_traced():
    with FakeTensorMode():
        x = torch.empty(3, dtype=torch.complex64)
        with pytest.raises(TypeError, match=r"^relu: x: got complex64\[3\], expected"):
            relu(x)
        with pytest.raises(ValueError, match=r"^gather: got s = \(3,\), axis = 4"):
            gather(torch.empty(3), 0, axis=4)


def test_operators_of_the_search_path_are_handed_on(capfd):
    with FakeTensorMode():
        assert cuplug.ops.relu(torch.empty(2, 3)).shape == (2, 3)
        with pytest.raises(TypeError, match=r"^asarray: x: got a fake tensor of PyTorch"):
            cuplug.asarray(torch.empty(2))
    assert capfd.readouterr().err == ""  # PyTorch warns if their memory is read
    function = torch.func.functionalize(lambda x: cuplug.ops.relu(x))
    assert torch.equal(function(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))
    x = torch.arange(-2, 2)
    for _ in range(20):  # the first tensors are read in another way
        assert torch.equal(torch.func.functionalize(lambda x: cuplug.ops.relu(x))(x), x.relu())
    assert cuplug.ops.relu(x[:0]).shape == (0,)
    traced = torch.fx.experimental.proxy_tensor.make_fx(relu)(torch.randn(3))
    assert "torch.ops.cuplug.relu.default" in traced.code


def test_operators_of_the_search_path_break_graphs_and_work():
    x = torch.randn(5, requires_grad=True)
    function = torch.compile(lambda x: cuplug.ops.relu(x * 2) + 1, backend="aot_eager")
    seen = function(x)
    assert torch.equal(seen, (2 * x).relu() + 1)
    seen.sum().backward()
    assert torch.equal(x.grad, 2 * (x > 0).float())


def test_fx_proxies():
    traced = torch.fx.symbolic_trace(lambda x: relu(x) + 1)
    assert torch.equal(traced(torch.tensor([-1.0])), torch.tensor([1.0]))


# ---- Export --------------------------------------------------------------------------------------


def test_export_and_its_load_in_a_fresh_process(tmp_path, run_python):
    class Model(torch.nn.Module):
        def forward(self, x, index):
            return relu(gather(x, index)) + gather(x, 0)

    x, index = torch.randn(5, 3), torch.tensor([4, 1])
    n = torch.export.Dim("n", min=2)
    shapes = {"x": {0: n}, "index": None}
    program = torch.export.export(Model(), (x, index), dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    torch.save((x, index, Model()(x, index)), tmp_path / "data.pt")
    code = f"""
        import torch, cuplug.torch
        program = torch.export.load({str(tmp_path / "model.pt2")!r}).module()
        x, index, wanted = torch.load({str(tmp_path / "data.pt")!r})
        assert torch.equal(program(x, index), wanted)
        assert program(torch.randn(9, 3), index).shape == (2, 3)
    """
    done = run_python(textwrap.dedent(code))
    assert done.returncode == 0, done.stderr


# ---- On a GPU ------------------------------------------------------------------------------------


@pytest.mark.gpu
def test_reduce_overhead():
    function = compiled(lambda x: relu(leaky_relu(x) + 1).sin(), "inductor", mode="reduce-overhead")
    for seed in range(4):
        x = torch.randn(64, generator=torch.Generator().manual_seed(seed)).cuda()
        wanted = (torch.nn.functional.leaky_relu(x) + 1).relu().sin()
        assert torch.allclose(function(x), wanted, atol=1e-6)


@pytest.mark.gpu
def test_cuda_graph_and_side_streams():
    x = torch.randn(64, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            relu(x)
        y = relu(x * 2)
    torch.cuda.current_stream().wait_stream(stream)
    assert torch.equal(y, (2 * x).relu())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = relu(x)
    x.copy_(torch.randn(64))
    graph.replay()
    assert torch.equal(z, x.relu())

# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors that are changed in place, and optional in-out tensors, in PyTorch."""

import cuplug
import pytest
from cuplug._engine.signature.signature import parse
from places import FIXTURES

torch = pytest.importorskip("torch")
torch_register = pytest.importorskip("cuplug._integration.torch.register")


@pytest.fixture(scope="module")
def ops(build_plugin):
    import cuplug.torch

    found = cuplug.load(build_plugin(FIXTURES / "lists.c", "lists"))
    for operator in found.operators:
        cuplug.torch.Function(operator)
    return found


def tensors(*shapes, value=0.0):
    return [torch.full(shape, value, dtype=torch.float64) for shape in shapes]


SHAPES = ((2, 3), (4,), ())


@pytest.mark.parametrize("n", [1, 400])
def test_each_tensor_counts_one_write(ops, n):
    xs, ys = tensors(*SHAPES * n), tensors(*SHAPES * n, value=2.0)
    ops.add_to(xs, ys)
    assert all((x == 2).all() for x in xs)
    assert [x._version for x in xs] == [1] * len(xs)
    assert [y._version for y in ys] == [0] * len(ys)


def test_autograd_notices_writes(ops):
    leaves = [x.requires_grad_() for x in tensors(*SHAPES, value=1.0)]
    squares = [x.sin() for x in leaves]
    total = sum((x * x).sum() for x in squares)
    ops.add_to([x.detach() for x in squares])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        total.backward()


def test_what_requires_grad_is_refused(ops):
    leaves = [x.requires_grad_() for x in tensors(*SHAPES)]
    with pytest.raises(RuntimeError, match="add_to: xs: a leaf Variable that requires grad"):
        ops.add_to(leaves)
    with pytest.raises(NotImplementedError, match=r"add_to: xs: .*; call it inside torch\.no_grad"):
        ops.add_to([x * 2 for x in leaves])
    assert not any(x.any() for x in leaves)
    with torch.no_grad():
        ops.add_to(leaves)
    assert all((x == 1).all() for x in leaves)


def test_schemas(ops):
    add, rescale = torch.ops.cuplug.add_to.default, torch.ops.cuplug.rescale.default
    assert str(add._schema).endswith("add_to(Tensor(a!)[] xs, Tensor[]? ys=None) -> ()")
    wanted = "rescale(Tensor x, Tensor(b!)? residual=None) -> Tensor"
    assert str(rescale._schema).endswith(wanted)
    torch.library.opcheck(add, (tensors(*SHAPES), tensors(*SHAPES)))
    torch.library.opcheck(add, (tensors(*SHAPES),))
    x, residual = tensors((3,), (3,), value=1.0)
    torch.library.opcheck(rescale, (x, residual))


def test_compiled_programs_see_the_changes(ops):
    function, rescale = cuplug.torch.Function(ops.add_to), cuplug.torch.Function(ops.rescale)

    def program(xs, ys, residual):
        function(xs, ys)
        function(xs)
        return rescale(xs[1], residual), rescale(xs[1]), residual + 1

    results = []
    for call in (program, torch.compile(program, backend="aot_eager", fullgraph=True)):
        xs, ys = tensors(*SHAPES), tensors(*SHAPES, value=2.0)
        (residual,) = tensors((4,), value=1.0)
        results.append((*call(xs, ys, residual), *xs, residual))
    assert all(map(torch.equal, *results))


def test_optional_tensors_are_changed(ops):
    rescale = cuplug.torch.Function(ops.rescale)
    x, residual = tensors((3,), (3,), value=1.0)
    assert torch.equal(rescale(x), rescale(x, None))
    assert torch.equal(rescale(x, residual), torch.full_like(x, 2 / 13))
    assert (residual == 2).all()
    assert residual._version == 1
    batch = torch.ones(4, 3, dtype=torch.float64)
    assert torch.equal(torch.vmap(rescale)(batch), rescale(x).expand(4, 3))


def test_vmap_refuses_lists_that_are_changed(ops):
    function = cuplug.torch.Function(ops.add_to)
    with pytest.raises(TypeError, match=r"add_to: xs: got a list .* in torch\.vmap, expected"):
        torch.vmap(lambda x: function([x]))(torch.zeros(4, 3, dtype=torch.float64))


BUMP = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int bump_host(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors;
  for (int64_t i = 0; i < x->shape[0]; i++) ((double *)x->data)[i] += 1;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(bump_host, "bump(inout x: float64[n])", "Adds 1.");
CUPLUG_PLUGIN(bumping, "1.0.0");
"""


def test_a_kernel_of_python_counts_one_write(build_plugin, monkeypatch):
    """The number of kernels without Python is limited; later functions use Python."""
    import cuplug.torch

    monkeypatch.setattr(torch_register, "_implement_boxed", lambda *_: False)
    bump = cuplug.torch.Function(cuplug.load(build_plugin(BUMP, "bumping")).bump)
    (x,) = tensors((3,))
    bump(x)
    assert (x.tolist(), x._version) == ([1, 1, 1], 1)


def test_any_number_of_tensors_is_changed():
    """Letters mark the first 26 arguments."""
    parameters = ", ".join(f"inout x{k}: float32[n]" for k in range(60))
    from cuplug._integration.torch.schema import overloads_of

    (overload,) = overloads_of([parse(f"f({parameters}, inout y: float32[n] = None)")])
    arguments = torch._C.parse_schema(f"cuplug::f{overload.text}").arguments
    assert all(x.alias_info.is_write for x in arguments)
    assert len({str(x.alias_info.before_set) for x in arguments}) == 61

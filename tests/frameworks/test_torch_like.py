# SPDX-License-Identifier: Apache-2.0
"""Operators whose outputs have the layout of an input, in PyTorch: compiled or not."""

import itertools

import cuplug
import numpy as np
import pytest
from places import FIXTURES, ROOT

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def function(build_plugin):
    from cuplug.torch import Function

    defines = ["CUPLUG_ARCHITECTURES=900"]
    ops = cuplug.load(build_plugin(FIXTURES / "like.c", "like", defines=defines))
    return {name: Function(getattr(ops, name)) for name in ("incremented", "count", "sum")}


def views():
    for order in itertools.permutations(range(4)):
        x = torch.randn(2, 3, 4, 5).permute(order)
        yield from (x, x[:, 1:], x[..., ::2], x[:, :1], x[:1].expand(3, -1, -1, -1))
    yield torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    yield torch.randn(2, 3, 1, 5).to(memory_format=torch.channels_last)
    yield torch.randn(1, 1, 4, 5).to(memory_format=torch.channels_last)
    yield torch.randn(2, 3, 5, 4)[:, :, :0].mT


def test_tensors_without_elements_tell_the_same_strides(function):
    from torch._subclasses.fake_tensor import FakeTensorMode

    for x in views():
        with FakeTensorMode() as mode:
            fake = mode.from_tensor(x)
            fakes = [*function["incremented"](fake), function["count"](fake, 7)]
            fakes += [function["sum"](fake, fake[0]), function["sum"](fake[0], fake)]
        real = [*function["incremented"](x), function["count"](x, 7)]
        real += [function["sum"](x, x[0]), function["sum"](x[0], x)]
        for y, z in zip(real, fakes, strict=True):
            assert (y.shape, y.stride()) == (z.shape, z.stride()), (x.shape, x.stride())
        assert torch.equal(real[0], x + 1)


@pytest.mark.parametrize("form", [torch.channels_last, torch.channels_last_3d])
def test_channels_last(function, form):
    x = torch.randn((2, 3, 4, 5, 6)[: 4 if form is torch.channels_last else 5])
    x = x.to(memory_format=form)
    y, strides = function["incremented"](x)
    assert torch.equal(y, x + 1)
    assert y.is_contiguous(memory_format=form)
    assert tuple(strides.tolist()) == y.stride() == x.stride()
    assert function["count"](x, 7).is_contiguous(memory_format=form)
    torch._dynamo.reset()
    compiled = torch.compile(function["incremented"], backend="aot_eager", fullgraph=True)
    for _ in range(2):  # with other sizes they become symbols
        assert compiled(x)[0].stride() == x.stride()
        x = torch.cat([x, x]).to(memory_format=form)
    torch.library.opcheck(function["incremented"].packet.default, (x,))


def test_jax_has_row_major_arrays():
    jax = pytest.importorskip("jax")
    from cuplug.jax import Function

    x = np.arange(12, dtype=np.float32).reshape(3, 4).T
    add = cuplug.elementwise("add(a: T[...]) -> T[...] like a", "a + 1")
    np.testing.assert_array_equal(jax.jit(Function(add))(x), x + 1)


def test_max_pool(build_plugin):
    from cuplug.torch import Function

    source = ROOT / "examples" / "plugins" / "max_pool.cu"
    pool = Function(cuplug.load(build_plugin(source, "max_pool", cuda=True)).max_pool)
    x = torch.randn(2, 3, 8, 10)
    for form in (torch.contiguous_format, torch.channels_last):
        y = pool(x.to(memory_format=form), 2)
        assert torch.equal(y, torch.nn.functional.max_pool2d(x, 2))
        assert y.is_contiguous(memory_format=form)

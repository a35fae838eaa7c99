# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own check of operators: schemas, fake kernels, gradients, compilation."""

import warnings

import cuplug
import pytest
from cuplug.testing import arguments
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from places import FIXTURES, ROOT
from random_rows import random_plugin
from selection import runs_all

torch = pytest.importorskip("torch")

from cuplug._integration.torch.fake import matched  # noqa: E402
from cuplug._integration.torch.register import register  # noqa: E402
from cuplug._integration.torch.schema import overloads_of  # noqa: E402
from cuplug.torch import Function  # noqa: E402
from torch import library  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)
N_RANDOM = 40
UTILS = ("test_faketensor", *(("test_aot_dispatch_dynamic",) if runs_all() else ()))


@pytest.fixture(autouse=True)
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def check(function, sample, device="cpu", utils=None):
    call = overload(function.packet, moved(sample, device))
    options = {} if utils is None else {"test_utils": utils}
    result = library.opcheck(call, tuple(moved(sample, device)), **options)
    assert set(result.values()) <= {"SUCCESS"}, result


def overload(packet, given):
    """Return the first overload that accepts the arguments."""
    errors = []
    for name in packet.overloads():
        try:
            getattr(packet, name)(*given)
        except (RuntimeError, TypeError) as error:
            errors.append(error)
        else:
            return getattr(packet, name)
    raise ExceptionGroup(f"{packet} takes no such arguments", errors)


def moved(sample, device):
    """Return new tensors on a device, which require grad if the sample's do."""
    if isinstance(sample, (list, tuple)):
        return [moved(x, device) for x in sample]
    if not isinstance(sample, torch.Tensor):
        return sample
    return sample.detach().clone().to(device).requires_grad_(sample.requires_grad)


def rows(*shape, grad=False):
    """Return numbers that differ."""
    n = torch.Size(shape).numel()
    numbers = torch.arange(n, dtype=torch.float32).mul(7).remainder(n or 1) - n / 2
    return numbers.reshape(shape).requires_grad_(grad)


def at(*numbers):
    return torch.tensor(numbers)


LINES = at([0, 2], [1, 0], [2, 1], [0, 1])
MASK = at([True, False, True], [False, True, True])
# Arguments for each stock operator; they require grad if it has a gradient.
SAMPLES = {
    "add_layer_norm": [(rows(4, 3), rows(4, 3, grad=True), rows(3, grad=True), rows(3))],
    "add_layer_norm_backward": [(*(rows(4, 3) for _ in range(4)), rows(3))],
    "add_rms_norm": [(rows(4, 3), rows(4, 3, grad=True), rows(3, grad=True))],
    "add_rms_norm_backward": [(*(rows(4, 3) for _ in range(4)), rows(3))],
    "argsort": [(rows(4, 3), 0)],
    "bincount": [(at(1, 0, 1), 3)],
    "cross_entropy": [(rows(4, 3, grad=True), at(1, 0, -100, 2), -100, 0.5)],
    "cross_entropy_backward": [(rows(4), rows(4, 3), at(1, 0, -100, 2))],
    "cumulative_prod": [(rows(4, 3, grad=True), 0), (rows(4, 3), 1, True)],
    "cumulative_prod_backward": [(rows(4, 3), rows(4, 3), 0)],
    "cumulative_sum": [(rows(4, 3, grad=True),), (rows(4, 3), 0, True)],
    "cumulative_sum_backward": [(rows(4, 3),)],
    "exponential": [(torch.empty(5), 1, 2, 0, 0.0, 1.0)],
    "gather": [
        (rows(4, 3, grad=True), at(1, 0)),
        (rows(4, 3), 1),
        (rows(4, 3), at([9]), "clip", 1),
    ],
    "gather_backward": [(rows(2, 3), at(1, 0), rows(4, 3)), (rows(3), 1, rows(4, 3))],
    "gelu_and_mul": [(rows(4, 6, grad=True),), (rows(4, 6, grad=True), "tanh")],
    "gelu_and_mul_backward": [(rows(4, 3), rows(4, 6))],
    "hello": [()],
    "histogram": [(rows(9), at(-4.0, 0.0, 2.0)), (rows(9), 4, -5.0, 5.0)],
    "index": [(rows(4, 3, grad=True), [at(1, 0), at(2, -1)]), (rows(4, 3), [at([1], [0])])],
    "index_backward": [(rows(2), [at(1, 0), at(2, -1)], rows(4, 3))],
    "index_put": [(rows(4, 3), [at(1, 0)], rows(2, 3))],
    "index_put_backward": [(rows(4, 3), [at(1, 0)], rows(2, 3)), (rows(4), [at(1)], rows(1))],
    "integers": [(torch.empty(5, dtype=torch.int32), 1, 2, 0, 10, 90)],
    "join": [
        (rows(4, 3, grad=True), rows(4, 2, grad=True)),
        (rows(1, 3), rows(1, 3), rows(1, 1), rows(1, 3)),
    ],
    "join_backward": [(rows(4, 5), rows(4, 3), rows(4, 2))],
    "layer_norm": [(rows(4, 3, grad=True), rows(3, grad=True), rows(3, grad=True))],
    "layer_norm_backward": [(rows(4, 3), rows(4, 3), rows(3))],
    "leaky_relu": [(rows(4, 3), 0.5), (rows(3, grad=True),)],
    "leaky_relu_backward": [(rows(3), rows(3), 0.5)],
    "log_softmax": [(rows(4, 3, grad=True),)],
    "log_softmax_backward": [(rows(4, 3), rows(4, 3))],
    "lognormal": [(torch.empty(5), 1, 2, 0, 0.0, 1.0)],
    "nonzero": [(MASK,)],
    "normal": [(torch.empty(5), 1, 2, 0, 0.0, 1.0)],
    "permutation": [(5, 1, 2, 0)],
    "piecewise_scale": [(rows(5, grad=True),)],
    "piecewise_scale_backward": [(rows(5), rows(5))],
    "put": [(rows(4, 3), at(1, 0), rows(2, 3))],
    "put_backward": [(rows(4, 3), at(1, 0))],
    "put_along_axis": [(rows(4, 3), LINES, rows(4, 2))],
    "quantize_float8": [(rows(4, 3),)],
    "quantize_int8": [(rows(4, 3),)],
    "relu": [(rows(4, 3),), (rows(3, grad=True),), (torch.arange(3),)],
    "relu_backward": [(rows(3), rows(3))],
    "repeat": [(rows(4, 3, grad=True), 2)],
    "repeat_backward": [(rows(4, 6), rows(4, 3), 2)],
    "rms_norm": [(rows(4, 3, grad=True), rows(3, grad=True))],
    "rms_norm_backward": [(rows(4, 3), rows(4, 3), rows(3))],
    "rotary": [(rows(2, 3, 4), rows(5, 2), rows(5, 2), at(4, 0), rows(2, 1, 4))],
    "rotary_backward": [(rows(2, 3, 4), rows(5, 2), rows(5, 2), at(4, 0))],
    "scale": [(rows(3), 2.0), (torch.arange(4), 3)],
    "scale_backward": [(rows(3), 2.0)],
    "scatter": [(rows(4, 3, grad=True), LINES, rows(4, 2, grad=True))],
    "scatter_add": [(rows(4, 3, grad=True), LINES, rows(4, 2, grad=True))],
    "scatter_add_backward": [(rows(4, 3), LINES)],
    "scatter_backward": [(rows(4, 3), LINES)],
    "searchsorted": [(torch.arange(9.0), rows(2, 2))],
    "select": [(rows(2, 3), MASK)],
    "select_backward": [(rows(4), MASK)],
    "silu_and_mul": [(rows(4, 6, grad=True),)],
    "silu_and_mul_backward": [(rows(4, 3), rows(4, 6))],
    "softmax": [(rows(4, 3, grad=True),)],
    "softmax_backward": [(rows(4, 3), rows(4, 3))],
    "sort": [(rows(4, 3, grad=True),)],
    "sort_backward": [(rows(4, 3), rows(4, 3))],
    "sort_by": [(rows(4, 3), rows(4, 3))],
    "take_along_axis": [(rows(4, 3, grad=True), LINES)],
    "take_along_axis_backward": [(rows(4, 2), LINES, rows(4, 3))],
    "topk": [(rows(9, grad=True), 3)],
    "topk_backward": [(rows(3), at(0, 4, 1), rows(9))],
    "topk_backward_backward": [(rows(9), at(0, 4, 1))],
    "topk_softmax": [(rows(4, 9, grad=True), 2, True)],
    "topk_softmax_backward": [(rows(2, 2), rows(2, 2), at([0, 4], [1, 2]), rows(2, 9), True)],
    "tril": [(rows(4, 3),), (rows(2, 4, 3), 1)],
    "triu": [(rows(4, 3), -1)],
    "uniform": [(torch.empty(5), 1, 2, 0, 0.0, 1.0)],
    "unique": [(at(3, 1, 3),)],
    "unique_values": [(at(3, 1, 3),)],
}


def stock_operators():
    """Return them by name, also if other plugins have operators of these names."""
    stock = [p for p in cuplug.plugins() if p.origin == "stock"]
    return {name: cuplug.find(f"{p.name}.{name}") for p in stock for name in p.operators}


def test_every_stock_operator_has_a_sample():
    assert {name for name, x in stock_operators().items() if "cpu" in x.device_types} == set(
        SAMPLES
    )


@on_each_device
@pytest.mark.parametrize("name", SAMPLES)
def test_stock_operators(device, name):
    function = Function(stock_operators()[name])
    for sample in SAMPLES[name]:
        check(function, sample, device)


def tensors(arguments, device="cpu"):
    if isinstance(arguments, (list, tuple)):
        return [tensors(x, device) for x in arguments]
    if not hasattr(arguments, "dtype") or not hasattr(arguments, "__array_interface__"):
        return arguments
    return as_tensor(arguments).to(device)


def as_tensor(x):
    name = (x.dtype.names or [x.dtype.name])[0]  # of a packed pair, its field's
    if not hasattr(torch, name):
        reject()
    if x.dtype.isbuiltin == 1:
        return torch.from_numpy(x.copy())
    integers = torch.from_numpy(x.view(f"i{x.dtype.itemsize}").copy())
    return integers.view(getattr(torch, name))


EXAMPLES = {
    "topk": (torch.randn(9), 3),
    "nonzero": (torch.tensor([0, 3, 0, 2]),),
    "softmax": (torch.randn(3, 4),),
    "layer_norm": (torch.randn(3, 4, requires_grad=True), torch.ones(4), torch.zeros(4)),
    "layer_norm_backward": (torch.randn(3, 4), torch.randn(3, 4), torch.ones(4)),
    "running_average": (torch.randn(3, 4), torch.zeros(4), torch.tensor(0)),
    "batched_matmul": (torch.randn(2, 3, 4), torch.randn(2, 4, 5)),
    "gelu": (torch.randn(3, 4, requires_grad=True),),
    "residual_add": (torch.randn(3, 4), torch.randn(3, 4)),
    "max_pool": (torch.randn(2, 3, 4, 6).to(memory_format=torch.channels_last), 2),
    "scatter_sum": (torch.randn(4, 3), torch.tensor([1, 0, 1, 4]), 5),
    "quantize": (torch.randn(4, 3), torch.float8_e5m2),
    "silu_and_mul": torch.randn(3, 16).split(8, 1),
    "adam": (*([torch.randn(3, 4), torch.rand(2)] for _ in range(4)), 1),
    "rotary": (torch.randn(2, 3, 4), torch.rand(5, 2), torch.rand(5, 2), torch.tensor([4, 0])),
}


@pytest.mark.slow
@on_each_device
@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(build_plugin, device, name):
    for plugin in ("layer_norm_backward", name) if name == "layer_norm" else (name,):
        source = ROOT / "examples" / "plugins" / f"{plugin}.cu"
        plugins = cuplug.load(build_plugin(source, plugin, cuda=True))
    operator = getattr(plugins, name)
    check(Function(operator), EXAMPLES[name], device)


def test_fixtures(build_plugin, ops):
    graded = cuplug.load(build_plugin(FIXTURES / "gradients.c", "gradients"))
    language = cuplug.load(build_plugin(FIXTURES / "language.c", "language"))
    x = torch.randn(4).double()
    check(Function(graded.weigh), (x.clone().requires_grad_(), x))
    check(Function(graded.split), (x.clone().requires_grad_(),))
    check(Function(graded.stretch), (x, 2.0))
    check(Function(graded.total), ([x, x],), utils=("test_schema", "test_faketensor"))
    check(Function(language.head), (x.float(), 2))
    check(Function(ops.positive), (x,))


@pytest.fixture(scope="module")
def drawn(build_plugin):
    return cuplug.load(build_plugin(random_plugin(N_RANDOM, 3, "drawn"), "drawn")).operators


@settings(max_examples=500 if runs_all() else 60)
@given(data=st.data())
def test_random_signatures(drawn, data):
    """Traced outputs equal a call's outputs, with sizes and with symbols."""
    operator = drawn[data.draw(st.integers(0, len(drawn) - 1))]
    whole = register(operator)
    given = {name: tensors(x) for name, x in data.draw(arguments(operator)).items()}
    found = matched(whole, given)
    outputs = found.outputs
    group = next(x for x in whole.packet.overloads() if found.row in rows_of(whole, x))
    call = getattr(whole.packet, group)
    given = {whole.spelled.get(name, name): x for name, x in given.items()}
    try:
        seen = call(**given)
    except TypeError as error:  # of versions before PyTorch 2.8
        assume("float8 types are not supported by dlpack" not in str(error))
        raise
    seen = () if seen is None else seen if isinstance(seen, tuple) else (seen,)
    assert [str(x.dtype) for x in seen] == [f"torch.{x.dtype}" for x in outputs]
    for x, spec in zip(seen, outputs, strict=True):
        assert all(b in (a, -1) for a, b in zip(x.shape, spec.shape, strict=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.opcheck(call, (), given, test_utils=UTILS)


def rows_of(whole, name):
    return next(x.rows for x in overloads_of(whole.rows) if (x.name or "default") == name)

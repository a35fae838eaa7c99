# SPDX-License-Identifier: Apache-2.0
"""Operators in PyTorch: schemas, calls, errors, vmap."""

import inspect
import threading

import cuplug
import numpy as np
import pytest
from places import FIXTURES

torch = pytest.importorskip("torch")
import cuplug.torch  # noqa: E402
from cuplug._engine.signature.signature import parse  # noqa: E402
from cuplug._integration.torch import batched as torch_batched  # noqa: E402
from cuplug._integration.torch.schema import overloads_of  # noqa: E402
from cuplug.torch import Function, gather, relu, scale  # noqa: E402
from torch import library  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
on_each_device = pytest.mark.parametrize("device", DEVICES)
needs_vmap = pytest.mark.skipif(not hasattr(library, "register_vmap"), reason="PyTorch 2.5")


@pytest.fixture(scope="module")
def language(build_plugin):
    return cuplug.load(build_plugin(FIXTURES / "language.c", "language"))


@pytest.mark.parametrize(
    ("rows", "schemas"),
    [
        (["f(x: T[...]) -> T[...] where T: any"], ["(Tensor x) -> Tensor"]),
        (["f()"], ["() -> ()"]),
        (
            ["f(inout x: T[n], a: T) where T: floating | int32"],
            ["(Tensor(a!) x, Scalar a) -> ()"],
        ),
        (
            ["f(x: float32[n], inout y: float32[n], w: float32[n] = None)"],
            ["(Tensor x, Tensor(b!) y, Tensor? w=None) -> ()"],
        ),
        (
            [
                "f(a: int, b: bool = True, c: float = 1e-5, d: complex = 0, s: str = 'it', "
                "m: 'x' | 'y' = 'y', n: int = None) -> (p: float32[2], q: int64[])"
            ],
            [
                '(SymInt a, bool b=True, float c=1e-05, Scalar d=0, str s="it", str m="y", '
                "SymInt? n=None) -> (Tensor, Tensor)"
            ],
        ),
        (
            ["f(xs: T[n][], axes: int[] = None, w: float[] = None) -> T[n] where T: any"],
            ["(Tensor[] xs, SymInt[1]? axes=None, float[]? w=None) -> Tensor"],
        ),
        (  # a name that torch.compile reserves in calls by name
            ["f(inout x: float32[n], mode: 'a' | 'b' = 'a')"],
            ['(Tensor(a!) x, str mode_="a") -> ()'],
        ),
        (  # names that are impossible, and Python's keywords
            ["f(lambda: float32[n], s: str = '\\', a: uint8 = 3)"],
            ["(Tensor lambda_, str? s=None, SymInt a=3) -> ()"],
        ),
        (  # overloads that differ only in optional arguments are one; others are separate
            [
                "f(x: T[n], k: int = 1) -> T[n] where T: any",
                "f(x: T[n], k: int = 2, y: T[n] = None) -> T[n] where T: any",
                "f(x: T[n], k: float) -> T[n] where T: any",
                "f(x: T[n]) -> (T[n], T[n]) where T: any",
            ],
            [
                "(Tensor x, SymInt? k=None, Tensor? y=None) -> Tensor",
                "(Tensor x, float k) -> Tensor",
                "(Tensor x) -> (Tensor, Tensor)",
            ],
        ),
    ],
)
def test_schemas(rows, schemas):
    overloads = overloads_of([parse(text) for text in rows])
    assert [x.text for x in overloads] == schemas
    assert overloads[0].name == ""
    for x in overloads:
        torch._C.parse_schema(f"cuplug::f{x.text}")


def test_stock_operators_are_found_by_name():
    assert gather.packet is torch.ops.cuplug.gather
    assert gather.packet.overloads() == ["default", "row2"]
    assert gather.operator == cuplug.find("gather")
    assert gather.__name__ == "gather"
    assert repr(gather).startswith("cuplug.torch.Function(<operator gather.gather")
    assert {"relu", "Function"} <= set(dir(cuplug.torch))


def test_name_that_is_not_there():
    with pytest.raises(ImportError, match="nonesuch: no plugin has an operator of that name"):
        from cuplug.torch import nonesuch  # noqa: F401
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = cuplug.torch.nonesuch
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = torch.ops.cuplug.nonesuch


def test_operators_that_are_not_found_by_their_name(language):
    other = cuplug.elementwise("relu(x: T) -> T", "x")
    assert Function(language.diff).packet is torch.ops.cuplug.diff
    first, second = Function(other), Function(other)
    assert first.packet is second.packet is not relu.packet
    assert first(torch.tensor([-1.0])).item() == -1


def test_it_is_registered_when_it_is_asked_for(run_python):
    code = """if True:
        import cuplug, torch
        import cuplug.torch
        assert list(torch.ops.cuplug) == []
        assert torch.ops.cuplug.relu(torch.tensor([-1.0, 2.0])).tolist() == [0, 2]
        assert not hasattr(torch.ops.cuplug, "__wrapped__")
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_threads_that_ask_at_once(run_python):
    code = """if True:
        import threading, torch, cuplug.torch
        start, seen = threading.Barrier(8), []
        def ask():
            start.wait()
            seen.append(torch.ops.cuplug.gather)
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for x in threads: x.start()
        for x in threads: x.join()
        assert len(seen) == 8 and len(set(seen)) == 1, seen
    """
    done = run_python(code)
    assert done.returncode == 0, done.stderr


# ---- Calls ---------------------------------------------------------------------------------------


@on_each_device
def test_calls(device):
    x = torch.randn(4, 3, device=device)
    index = torch.tensor([2, 0], device=device)
    assert torch.equal(relu(x), x.relu())
    assert torch.equal(gather(x, index), x[index])
    assert torch.equal(gather(x, index, axis=1), x[:, index])
    assert torch.equal(gather(x, index=index, mode="clip"), x[index])
    assert torch.equal(gather(x, 1), x[1])
    assert torch.equal(gather(x, 1, "wrap", 1), x[:, 1])
    assert torch.equal(gather(x.T, index), x.T[index])
    assert gather(x, index).device == x.device


@on_each_device
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "complex64", "bool"])
def test_dtypes(device, dtype):
    x = torch.tensor([0, 1, 1, 0]).to(getattr(torch, dtype)).to(device)
    seen = gather(x, torch.tensor([1, 0], device=device))
    assert seen.dtype == x.dtype
    assert seen.tolist() == x[[1, 0]].tolist()


@on_each_device
def test_views_that_are_not_their_memory(device):
    x = torch.tensor([1 + 2j, 3 - 4j], device=device)
    assert gather(x.conj(), torch.tensor([0], device=device)).tolist() == [1 - 2j]
    assert relu(x.conj().imag).tolist() == [0, 4]


@on_each_device
def test_in_place(device):
    x = torch.arange(4.0, device=device)
    version = x._version
    assert scale(x, 2) is None
    assert x.tolist() == [0, 2, 4, 6]
    assert x._version > version


def test_all_kinds_of_arguments(language):
    values, indices = Function(language.head)(torch.arange(4.0), 2)
    assert (values.tolist(), indices.tolist()) == ([0, 1], [0, 1])
    xs = [torch.ones(3).double(), torch.arange(3.0).double()]
    stack = Function(language.stack)
    assert stack(xs).tolist() == [[1, 1, 1], [0, 1, 2]]
    assert stack(xs, weights=[2, 3]).tolist() == [[2, 2, 2], [0, 3, 6]]
    absent = Function(language.absent)
    assert absent(None, "four", "b").tolist() == [1, 0, 4, 1]
    assert absent(3).tolist() == [6, 3, 0, 0]
    assert Function(language.full)([2, 2], 3.0).tolist() == [[3, 3], [3, 3]]
    assert Function(language.full)([2]).dtype == torch.float64


def test_which_row(language):
    either, rank = Function(language.either), Function(language.rank)
    x = torch.ones(2)
    assert [either(x, 3).item(), either(x, 3.5).item()] == [1, 2]
    assert [rank(x).item(), rank(torch.ones(2, 2)).item()] == [1, 2]


def test_sizes_that_the_run_finds(ops):
    x = torch.tensor([-1.0, 2.0, 3.0]).double()
    assert Function(ops.positive)(x).tolist() == [2, 3]
    assert Function(ops.weigh)(x, None).tolist() == x.tolist()


@on_each_device
@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda x: relu(x.to(torch.complex64)), TypeError, r"^relu: x: got complex64\[3\], expe"),
        (
            lambda x: gather(x, 0, axis=4),
            ValueError,
            r"^gather: got s = \(3,\), axis = 4, expected",
        ),
        (lambda x: gather(x, 0, mode="hm"), ValueError, '^gather: mode: got the string "hm"'),
        (lambda x: scale(x, 1j), TypeError, r"^scale: factor: got the complex number 0\+1j, expe"),
    ],
)
def test_errors_are_those_of_a_call(device, call, error, sentence):
    with pytest.raises(error, match=sentence):
        call(torch.ones(3, device=device))


def test_errors_of_an_entry(ops):
    with pytest.raises(IndexError, match=r"^gather: index: index 9 at position 0 is out of bounds"):
        gather(torch.ones(3), torch.tensor([9]))
    fail = Function(ops.fail)
    for status, error in ((100, ValueError), (200, TypeError), (400, MemoryError)):
        with pytest.raises(error, match=f"status: got {status}"):
            fail(status)
    with pytest.raises(cuplug.CudaError, match="status: got 500"):
        fail(500)


@on_each_device
def test_autocast_takes_tensors_as_they_are(device):
    with torch.autocast(device, dtype=torch.bfloat16):
        y = torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)
        assert relu(y).dtype == torch.bfloat16
        assert relu(torch.ones(3, device=device)).dtype == torch.float32


def test_inference_mode_and_subclasses():
    class Own(torch.Tensor):
        pass

    with torch.inference_mode():
        assert relu(torch.tensor([-1.0, 1.0])).tolist() == [0, 1]
    assert isinstance(relu(torch.ones(2).as_subclass(Own)), Own)


def test_threads():
    x = torch.randn(1000)
    seen = []

    def work():
        for _ in range(50):
            seen.append(torch.equal(relu(x), x.relu()))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 200


def test_pickle():
    import pickle

    assert pickle.loads(pickle.dumps(relu)).packet is relu.packet


# ---- vmap ----------------------------------------------------------------------------------------


@needs_vmap
@on_each_device
@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_vmap_along_each_dimension(device, in_dim):
    x = torch.randn(4, 3, 2, device=device)
    assert torch.equal(torch.vmap(relu, in_dim)(x), torch.vmap(torch.relu, in_dim)(x))


@needs_vmap
@on_each_device
def test_vmap_of_one_argument_and_of_both(device):
    x = torch.randn(5, 4, device=device)
    index = torch.tensor([[0, 1], [3, 2], [1, 1]], device=device)
    assert torch.equal(torch.vmap(gather, (None, 0))(x, index), x[index])
    both = torch.vmap(gather)(x[:3], index)
    assert torch.equal(both, torch.stack([x[k][index[k]] for k in range(3)]))
    assert torch.vmap(gather)(x[:0], index[:0]).shape == (0, 2)


@needs_vmap
def test_vmap_aligns_loop_dimensions(ops):
    add = Function(ops.add)
    a, b = torch.randn(4, 3).double(), torch.randn(2, 3).double()
    assert torch.equal(torch.vmap(add, (0, None))(a, b), torch.vmap(torch.add, (0, None))(a, b))
    assert torch.equal(torch.vmap(add, (None, 0))(a, b), torch.vmap(torch.add, (None, 0))(a, b))
    nested = torch.vmap(torch.vmap(add, (None, 0)), (0, None))(a, b)
    assert torch.equal(nested, a[:, None] + b)


@needs_vmap
@on_each_device
def test_vmap_adds_to_independent_dimensions(device, monkeypatch):
    """One call computes the batch, also if its dimension is not the first."""
    monkeypatch.delattr(torch_batched, "_call_each")
    x, index = torch.randn(4, 3, 2, device=device), torch.tensor([[0, 2], [1, 1], [3, 0]])
    index = index.to(device)
    assert torch.equal(torch.vmap(gather, (None, 0))(x, index), x[index])
    for axis in (1, 2):
        wanted = torch.vmap(lambda y: y.index_select(0, index[0]), axis)(x)
        assert torch.equal(torch.vmap(gather, (axis, None))(x, index[0]), wanted)


@needs_vmap
def test_vmap_of_lists_and_several_outputs(language):
    xs = [torch.randn(3, 2).double(), torch.randn(3, 2).double()]
    seen = torch.vmap(lambda a, b: Function(language.stack)([a, b]))(*xs)
    assert torch.equal(seen, torch.stack(xs, 1))
    values, indices = torch.vmap(lambda x: Function(language.head)(x, 2))(torch.randn(3, 4))
    assert values.shape == indices.shape == (3, 2)


@needs_vmap
@on_each_device
def test_vmap_in_place(device):
    def scaled(row):
        scale(row, 2.0)
        return row

    for in_dim in (0, 1):
        x = torch.ones(3, 4, device=device)
        torch.vmap(scaled, in_dim)(x)
        assert torch.equal(x, torch.full((3, 4), 2.0, device=device))


@needs_vmap
def test_vmap_does_not_write_all_parts_to_one_tensor(build_plugin):
    graded = cuplug.load(build_plugin(FIXTURES / "gradients.c", "gradients"))
    increase = Function(graded.increase)
    data, x = torch.ones(2, 3).double(), torch.ones(2, 3).double()

    def increased(data, x):
        increase(data, x)
        return data

    assert torch.vmap(increased)(data, x).tolist() == [[2] * 3] * 2
    assert torch.vmap(increased, (0, None))(data, x[0]).tolist() == [[3] * 3] * 2
    with pytest.raises(ValueError, match=r"^increase: data: got a tensor without the dimension"):
        torch.vmap(increased, (None, 0))(data[0], x)


@needs_vmap
def test_cuplug_ops_hands_on():
    x = torch.randn(3, 4)
    assert torch.equal(torch.vmap(cuplug.ops.relu)(x), x.relu())
    assert np.array_equal(cuplug.ops.relu(x.numpy()), x.relu().numpy())


def test_cuplug_ops_take_arrays_of_numpy_beside_tensors_that_require_grad():
    x, index = torch.arange(6.0), np.array([5, 0, 5])
    for read_only in (False, True):
        index.flags.writeable = not read_only
        recorded = x.clone().requires_grad_()
        y = cuplug.ops.gather(recorded, index)
        assert torch.equal(y, cuplug.ops.gather(x, index))
        y.sum().backward()
        assert recorded.grad.tolist() == [1, 0, 0, 0, 0, 2]


def test_signatures_name_what_a_call_takes():
    assert str(inspect.signature(relu)) == "(x)"
    assert str(inspect.signature(gather)) == "(source, index, mode='raise', axis=0)"


def test_keywords_of_overloads_that_name_arguments_differently(build_plugin):
    plugin = cuplug.load(build_plugin(FIXTURES / "renamed.c", "renamed"))
    for dtype, row in ((torch.float32, 1), (torch.float64, 2)):
        x = torch.ones(3, dtype=dtype)
        for f in (Function(plugin.swapped), plugin.swapped):
            assert f(x, low=1.5, high=2.5).tolist() == [row, 2.5, 1.5]
            assert f(x, 1.5, 2.5).tolist() == [row, *([2.5, 1.5], [1.5, 2.5])[row - 1]]
    x = torch.ones(3)
    for longer in (Function(plugin.longer), plugin.longer):
        assert longer(x, lr=0.5).tolist() == [1, 0.5, 0]
        assert longer(x, x, lr=0.5).tolist() == [2, 0.5, 0]
    for renamed in (Function(plugin.renamed), plugin.renamed):
        assert renamed(x, shift=2.0).tolist() == [2, 2, 0]

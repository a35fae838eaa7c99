# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs on a GPU: every stock operator is captured and replayed with changed inputs."""

import cuplug
import numpy as np
import pytest
from cuplug._engine.base import flags
from cuplug.ops import gather, hello, leaky_relu, relu, scale
from stock_calls import (
    BY_LIBRARY,
    CALLS,
    DIFFERENCES,
    LISTS,
    SEED,
    WAITS,
    N,
    arguments,
    floats,
    indices,
    on_each_operator,
    on_host,
)


def test_every_stock_operator_is_listed():
    """The operators with one output, and arrays that are not in lists."""
    # By plugin: other tests of this process may have loaded operators with the same names.
    files = [x for x in cuplug.plugins() if x.path.startswith(flags.lib_directory())]
    found = [cuplug.find(f"{x.name}.{operator}") for x in files for operator in x.operators]
    stock = {x.name for x in found}
    several = {x.name for x in found if "-> (" in x.signatures[0]}
    called = {operator.name for operator, *_ in CALLS.values()}
    assert called == stock - several - WAITS - LISTS - BY_LIBRARY - {"hello", "permutation"}


class Torch:
    """Captures through PyTorch, whose graph has a pool of memory for outputs."""

    def __init__(self):
        self.torch = pytest.importorskip("torch")
        self.graph = self.torch.cuda.CUDAGraph()

    def put(self, x):
        return self.torch.from_numpy(x).cuda() if isinstance(x, np.ndarray) else x

    def refill(self, array, x):
        array.copy_(self.torch.from_numpy(x))

    def empty(self, x):
        return self.torch.empty(x.shape, dtype=getattr(self.torch, x.dtype.name), device="cuda")

    def take(self, array):
        return array.cpu().numpy()

    def capture(self, function):
        with self.torch.cuda.graph(self.graph):
            return function()

    def replay(self):
        self.graph.replay()


class CuPy:
    """Captures through CuPy, on a stream of each kind."""

    def __init__(self, non_blocking=False):
        self.cupy = pytest.importorskip("cupy")
        self.stream = self.cupy.cuda.Stream(non_blocking=non_blocking)
        self.graph = None

    def put(self, x):
        return self.cupy.asarray(x) if isinstance(x, np.ndarray) else x

    def refill(self, array, x):
        array.set(x)

    def empty(self, x):
        return self.cupy.empty(x.shape, x.dtype)

    def take(self, array):
        return array.get()

    def capture(self, function):
        self.cupy.cuda.Device().synchronize()
        with self.stream:
            self.stream.begin_capture()
            try:
                return function()
            finally:
                self.graph = self.stream.end_capture()

    def replay(self):
        self.cupy.cuda.Device().synchronize()
        self.graph.launch(self.stream)
        self.stream.synchronize()


class Own(CuPy):
    """cuplug arrays, captured on a given stream."""

    def __init__(self):
        super().__init__(non_blocking=True)

    def put(self, x):
        return cuplug.asarray(x) if isinstance(x, np.ndarray) else x

    def refill(self, array, x):
        self.cupy.from_dlpack(array).set(x)
        self.cupy.cuda.Device().synchronize()

    def empty(self, x):
        return cuplug.empty(x.shape, x.dtype)

    def take(self, array):
        return array.numpy(stream=self.stream)


LIBRARIES = {"torch": Torch, "cupy": CuPy, "cupy_non_blocking": lambda: CuPy(True), "own": Own}
on_each_library = pytest.mark.parametrize("library", LIBRARIES)


def replay_and_compare(library, name, given, result):
    """Replay with changed inputs; compare with the CPU."""
    for seed in (SEED + 20, SEED + 40):
        for array, x in zip(given, arguments(name, seed), strict=True):
            if isinstance(x, np.ndarray):
                library.refill(array, x)
        library.replay()
        seen, wanted = library.take(result), on_host(name, seed)
        atol = 1e-6 if name in DIFFERENCES else 0
        np.testing.assert_allclose(seen, wanted, rtol=1e-6, atol=atol)
    cuplug.synchronize()


@pytest.mark.gpu
@on_each_library
@on_each_operator
def test_operator_in_a_graph_with_given_outputs(library, name):
    library, operator = LIBRARIES[library](), CALLS[name][0]
    given = [library.put(x) for x in arguments(name, SEED)]
    keywords = {"stream": library.stream} if isinstance(library, Own) else {}
    if "->" in operator.signatures[0]:
        keywords["out"] = library.empty(on_host(name, SEED))
    result = library.capture(lambda: operator(*given, **keywords))
    replay_and_compare(library, name, given, given[0] if result is None else result)


@pytest.mark.gpu
@pytest.mark.parametrize("library", ["torch", "cupy_non_blocking"])
@on_each_operator
def test_operator_in_a_graph_with_new_outputs(library, name):
    library, operator = LIBRARIES[library](), CALLS[name][0]
    given = [library.put(x) for x in arguments(name, SEED)]
    result = library.capture(lambda: operator(*given))
    replay_and_compare(library, name, given, given[0] if result is None else result)


@pytest.mark.gpu
def test_several_operators_in_one_graph():
    library = Torch()
    x, index = library.put(floats(SEED)), library.put(indices(SEED))

    def work():
        y = gather(relu(x), index)
        scale(y, 3)
        return leaky_relu(y[::2], 0.5)  # a copy is made in the capture

    result = library.capture(work)
    library.refill(x, floats(SEED + 1))
    library.replay()
    wanted = 3 * np.maximum(floats(SEED + 1), 0)[indices(SEED)][::2]
    np.testing.assert_array_equal(library.take(result), wanted)


FIRST = """
import numpy as np, cuplug
from cuplug.ops import gather
{setup}
assert y.tolist() == [4, 1]
"""
FIRST_IN_TORCH = """
import torch
x, i = torch.arange(5.0, device="cuda"), torch.tensor([4, 1], device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = gather(x, i)
graph.replay()
"""
FIRST_IN_CUPY = """
import cupy
x, i = cupy.arange(5.0), cupy.array([4, 1])
y = cupy.zeros(2)
cupy.cuda.Device().synchronize()
with cupy.cuda.Stream(non_blocking={non_blocking}) as stream:
    stream.begin_capture()
    gather(x, i, out=y)
    graph = stream.end_capture()
graph.launch(stream)
stream.synchronize()
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    "setup",
    [FIRST_IN_TORCH, *(FIRST_IN_CUPY.format(non_blocking=value) for value in (True, False))],
    ids=["torch", "cupy_non_blocking", "cupy"],
)
def test_first_call_is_in_a_capture(run_python, setup):
    """Code is loaded, and memory pinned, during the capture."""
    pytest.importorskip(setup.split()[1])
    done = run_python(FIRST.format(setup=setup))
    assert done.returncode == 0, done.stderr


@pytest.mark.gpu
def test_other_calls_leave_a_capture_of_torch_intact():
    library = Torch()
    x, host = library.put(floats(SEED)), floats(SEED)
    big = np.zeros(3_000_000, np.float32)  # needs its own pinned buffers

    def work():
        y = relu(x)
        assert (relu(host, device="cuda") == np.maximum(host, 0)).all()
        assert not relu(big, device="cuda").any()
        assert not relu(big[: 1 << 19], device="cuda").any()  # the driver copies it
        hello(device="cuda", stream=library.torch.cuda.current_stream())
        return scale(y, 2) or y

    result = library.capture(work)
    library.replay()
    np.testing.assert_array_equal(library.take(result), 2 * np.maximum(host, 0))


@pytest.mark.gpu
def test_own_outputs_are_refused_in_a_capture_of_torch():
    library = Torch()
    x = cuplug.asarray(floats(SEED))
    out = cuplug.empty(N, "float32")

    def work():
        stream = library.torch.cuda.current_stream()
        with pytest.raises(ValueError, match="^relu: stream: got one that a CUDA gra"):
            relu(x, stream=stream)
        return relu(x, out=out, stream=stream)

    library.capture(work)
    library.replay()
    library.torch.cuda.synchronize()
    np.testing.assert_array_equal(out.numpy(), np.maximum(floats(SEED), 0))


@pytest.mark.gpu
def test_bad_index_in_a_replay():
    """The fault names gather among other operators, after each replay with a bad index."""
    library = Torch()
    x, index = library.put(floats(SEED)), library.put(indices(SEED))

    def work():
        return relu(gather(relu(x), index))

    work()
    result = library.capture(work)
    for bad in (7000, 9000):
        index[17] = bad
        library.replay()
        with pytest.raises(IndexError, match=f"^gather: index: index {bad} at position 17 is out"):
            cuplug.synchronize()
        library.refill(index, indices(SEED))
        library.replay()
        cuplug.synchronize()
        wanted = np.maximum(floats(SEED), 0)[indices(SEED)]
        np.testing.assert_array_equal(library.take(result), wanted)

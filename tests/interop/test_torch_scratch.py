# SPDX-License-Identifier: Apache-2.0
"""Workspaces of calls with PyTorch tensors: from its caching allocator, for the call's stream."""

import cuplug
import pytest
from builds import COMPILER, compile_library
from places import FIXTURES

# A PyTorch without an exchange API, whose allocator records its actions.
TORCH = """
    import sys, types

    class Tensor:
        is_cuda, requires_grad = True, False

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **keywords):
            return self.array.__dlpack__(**keywords)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def new_empty(self, shape, dtype=None):
            return Tensor(cuplug.empty(shape, "float32", "cuda"))

        def data_ptr(self):
            return self.array.data_ptr

        def is_conj(self):
            return False

        is_neg = is_conj

    def allocate(n_bytes, device, stream):
        noted.append((n_bytes, device, stream))
        if raised:
            raise raised
        block = cuplug.empty((n_bytes,), "uint8", device)
        blocks[block.data_ptr] = block
        return block.data_ptr

    def free(pointer):
        assert isinstance(blocks.pop(pointer), cuplug.Array)

    noted, blocks, current, raised = [], {}, 0, None
    torch = sys.modules["torch"] = types.ModuleType("torch")
    torch.Tensor, torch.float32 = Tensor, "float32"
    torch.cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream=current),
        caching_allocator_alloc=allocate, caching_allocator_delete=free)
    tensor = Tensor(a)

    def noted_of(*arguments, **keywords):
        noted.clear()
        y = gpu.aside(*arguments, **keywords)
        assert np.array_equal(y.array.numpy(stream=current or None), 9 * x) and not blocks
        return noted[:]
"""


def test_public_functions_allocate_for_the_stream(run_streams):
    run_streams(
        TORCH
        + """
    assert noted_of(tensor) == [(4000, 0, 0)]
    stream = make_stream()
    assert noted_of(tensor, stream=stream) == [(4000, 0, stream)]
    assert noted_of(tensor, stream=1) == [(4000, 0, 0)]
    current = make_stream()
    assert noted_of(tensor) == [(4000, 0, current)]
    noted.clear()
    gpu.aside(a), gpu.aside(x, device="cuda"), gpu.triple(tensor)
    assert not noted and counts().misuses == 0
    """
    )


def test_blocks_are_freed_after_a_failure(run_streams):
    run_streams(
        TORCH
        + """
    with Raises(ValueError, "aside: fails: got True"):
        gpu.aside(tensor, True)
    assert noted == [(4000, 0, 0)] and not blocks and counts().misuses == 0
    """
    )


def test_the_pool_of_the_core_serves_where_pytorch_does_not(run_streams):
    run_streams(
        TORCH
        + """
    raised = RuntimeError("CUDA out of memory")
    assert noted_of(tensor) == [(4000, 0, 0)]
    raised = KeyboardInterrupt("now")
    with Raises(KeyboardInterrupt, "now"):
        gpu.aside(tensor)
    raised = None
    noted.clear()
    with cuplug.Graph() as graph:  # its memory stays its own between launches
        y = gpu.aside(tensor, out=out)
    graph.launch()
    assert np.array_equal(out.numpy(), 9 * x) and not noted and counts().misuses == 0
    """
    )


SCRATCH = """
#include <cuplug/plugin.hpp>

__global__ void add(const float *x, float *out, long long n, float by) {
  for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    out[i] = x[i] + by;
}

CUPLUG_TYPED_CUDA_OPERATOR(plus_three, "plus_three(x: float32[n]) -> float32[n]",
                           "x + 3, through two workspaces.");
CUPLUG_CUDA_ENTRY(plus_three, x, n, out) {
  float *a = call.workspace<float>(n), *b = call.workspace<float>(n);
  if (!a || !b) return CUPLUG_ERROR_MEMORY;
  add<<<64, 256, 0, call.stream()>>>(x.data(), a, n, 1);
  add<<<64, 256, 0, call.stream()>>>(a, b, n, 1);
  add<<<64, 256, 0, call.stream()>>>(b, out.data(), n, 1);
  return cuplug_launched(call);
}
CUPLUG_PLUGIN(plus_three, "1");
"""
N = 1 << 20


@pytest.fixture(scope="module")
def plus_three(build_plugin):
    return cuplug.load(str(build_plugin(SCRATCH, "plus_three", cuda=True))).plus_three


@pytest.mark.gpu
def test_pytorch_counts_workspaces(plus_three):
    torch = pytest.importorskip("torch")
    x = torch.arange(N, dtype=torch.float32, device="cuda")
    stream = torch.cuda.Stream()
    for keywords in ({}, {"stream": stream}):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        y = plus_three(x, **keywords)
        stream.synchronize()
        assert torch.equal(y, x + 3)
        assert torch.cuda.max_memory_allocated() - before >= 3 * 4 * N
        del y
        assert torch.cuda.memory_allocated() == before


@pytest.mark.gpu
def test_a_graph_of_pytorch_keeps_workspaces_in_its_pool(plus_three):
    torch = pytest.importorskip("torch")
    x, y = torch.zeros(N, device="cuda"), torch.empty(N, device="cuda")
    plus_three(x, out=y)
    graph = torch.cuda.CUDAGraph()
    used = cuplug.memory_info().used_bytes
    with torch.cuda.graph(graph):
        plus_three(x, out=y)
        x.copy_(y)
    others = [torch.full((N,), -1.0, device="cuda") for _ in range(8)]
    for k in range(1, 5):
        graph.replay()
        assert float(y.min()) == float(y.max()) == 3 * k
    assert all(float(other.sum()) == -N for other in others)
    assert cuplug.memory_info().used_bytes == used


@pytest.fixture
def libtorch_cuda(once):
    """Return the directory of a libtorch_cuda.so that replaces PyTorch's."""

    def build(folder):
        source, library = FIXTURES / "fake_libtorch_cuda.c", folder / "libtorch_cuda.so"
        options = ["-shared", "-fPIC", "-Wl,-soname,libtorch_cuda.so"]
        compile_library([*COMPILER, *options, str(source), "-ldl", "-o", str(library)])

    return once("fake_libtorch_cuda", build)


def test_functions_of_libtorch_allocate_for_its_current_stream(
    run_streams, libtorch_cuda, fake_cuda
):
    run_streams(
        TORCH
        + """
    library = ctypes.CDLL("libtorch_cuda.so")
    n_allocated, n_freed = (ctypes.c_int64.in_dll(library, "fake_n_" + name)
                            for name in ("allocated", "freed"))
    for k in (1, 2, 3):
        assert not noted_of(tensor) and n_allocated.value == n_freed.value == k
    stream = make_stream()
    gpu.aside(tensor, stream=stream)  # both have one allocator in PyTorch
    assert noted == [(4000, 0, stream)] and n_freed.value == 4 and blocks.popitem()
    ctypes.c_void_p.in_dll(library, "fake_current_stream").value = current = stream
    assert not noted_of(tensor)
    ctypes.c_int.in_dll(library, "fake_fails").value = 1
    before = n_allocated.value
    assert not noted_of(tensor) and n_allocated.value == before and counts().misuses == 0
    """,
        libraries=f"{fake_cuda}:{libtorch_cuda}",
    )

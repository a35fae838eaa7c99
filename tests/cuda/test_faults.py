# SPDX-License-Identifier: Apache-2.0
"""Errors of kernels that are raised after the call: their origin, and later calls."""

import textwrap

import cuplug
import fault_program
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale
from places import TESTS

PICK = "pick: index: index 1000 at position 2 is out of bounds for size 1000"
DIVIDE = "divide: y: got index 0 at position 1, expected 1 <= value < 9"


@pytest.mark.parametrize("lazy", ["0", "1"])
def test_two_operators_with_faults(run_streams, lazy):
    """Calls raise each fault once, with any other calls in between, on any stream; reads of arrays
    that a bad call wrote always raise it."""
    run_streams(f"""
    wrong = cuplug.asarray(np.array([0, 1, 1000]))
    zeros = cuplug.asarray(np.array([1, 0, 1], np.float32))
    three = cuplug.asarray(np.ones(3))
    s, t = make_stream(), make_stream()

    def fault_of(function, *arguments, **keywords):
        seen = []
        while True:
            try:
                function(*arguments, **keywords)
                return seen
            except IndexError as error:
                seen.append(str(error))

    def fault_of_read(array):
        try:
            array.numpy()
        except IndexError as error:
            return str(error)

    for first, second in (None, None), (s, None), (s, t), (t, s):
        picked = gpu.pick(a, wrong, stream=first)
        seen = fault_of(gpu.triple, a, stream=second)
        seen += fault_of(gpu.divide, three, zeros, stream=second)
        seen += fault_of(gpu.triple, a, stream=first)
        seen += fault_of(cuplug.synchronize)
        assert sorted(seen) == sorted([{PICK!r}, {DIVIDE!r}]), seen
        for _ in range(2):
            assert fault_of_read(picked) == fault_of_read(gpu.triple(picked)) == {PICK!r}
        assert np.array_equal(gpu.triple(a, stream=first).numpy(), 3 * x)
    assert counts().misuses == 0
    """, FAKE_CUDA_LAZY=lazy)  # fmt: skip


@pytest.mark.parametrize("lazy", ["0", "1"])
def test_threads_are_told_of_their_own_faults(run_streams, lazy):
    run_streams(f"""
    import sys

    sys.path.insert(0, {str(TESTS)!r})
    import fault_program

    fault_program.run(gpu.pick, gpu.triple, a, make_stream)
    """, FAKE_CUDA_LAZY=lazy)  # fmt: skip


def test_texts_of_the_plugin(run_fake):
    """Fields are values that kernels find. Offloaded calls count positions in the whole array."""
    run_fake("""
    z = np.ones(3_000_000, np.float32)
    z[2_999_990] = -1
    text = "element {} is -1: {{values}} are to be {{positive}}, {{"
    with Raises(ValueError, "divide: y: " + text.format(2999990)):
        gpu.divide(z.astype(float), z)
    with Raises(ValueError, "divide: y: " + text.format(1)):
        gpu.divide(cuplug.asarray(np.ones(2)), cuplug.asarray(np.float32([1, -1]))).numpy()
    message = "divide: y: bad at position 0: -5; the table has no text for fault.2"
    with Raises(ValueError, message):
        gpu.divide(np.ones(2), np.float32([-5, 1]), device="cuda")
    """)


def test_the_fault_of_a_thread_that_ended(run_fake):
    """It is raised by reads, and by cuplug.synchronize."""
    run_fake("""
    import threading

    a = cuplug.asarray(x, device="cuda")
    results = []
    wrong = cuplug.asarray(np.array([1000]), device="cuda")
    thread = threading.Thread(target=lambda: results.append(gpu.pick(a, wrong)))
    thread.start(), thread.join()
    assert np.array_equal(gpu.triple(a).numpy(), 3 * x)
    for _ in range(2):
        with Raises(IndexError, "pick: index: index 1000 at position 0"):
            results[0].numpy()
    with Raises(IndexError, "pick: index: index 1000 at position 0"):
        cuplug.synchronize()
    cuplug.synchronize()
    """)


@pytest.mark.parametrize("lazy", ["0", "1"])
def test_launches_of_a_graph_with_and_without_faults(run_fake, lazy):
    run_fake("""
    a = cuplug.asarray(x, device="cuda")
    index = cuplug.asarray(np.array([0, 1]), device="cuda")
    gpu.triple(gpu.pick(a, index)).numpy()
    graph = cuplug.Graph()
    with graph:
        picked = gpu.pick(a, index)
        tripled = gpu.triple(picked)
    for k in range(3):
        index.set(np.array([0, 1000 + k]))
        graph.launch()
        for array in (picked, tripled, picked):
            with Raises(IndexError, f"pick: index: index {1000 + k} at position 1"):
                array.numpy()
        index.set(np.array([k, k]))
        graph.launch()
        assert tripled.numpy().tolist() == [3 * k, 3 * k]
    """, FAKE_CUDA_LAZY=lazy)  # fmt: skip


def test_memory_that_is_written_again(run_fake):
    """Overwriting all of a bad array makes it good; writing a part of it does not."""
    run_fake("""
    a = cuplug.asarray(x, device="cuda")
    wrong = cuplug.asarray(np.array([0, 1000]), device="cuda")
    fault = "pick: index: index 1000"

    def bad():
        picked = gpu.pick(a, wrong)
        with Raises(IndexError, fault):
            picked.numpy()
        return picked

    one = bad()
    gpu.triple(a[:2], out=one)
    assert one.numpy().tolist() == [0, 3]
    one = bad()
    gpu.triple(a[:1], out=one[:1])
    with Raises(IndexError, fault):
        one.numpy()
    with Raises(IndexError, fault):
        one[:1].numpy()
    one = bad()
    gpu.increase(one, 1)
    with Raises(IndexError, fault):
        one.numpy()
    one = bad()
    one.set(np.array([5, 6]))
    assert one.numpy().tolist() == [5, 6]
    with Raises(IndexError, fault):
        str(bad())
    """)


def test_sticky_error_names_the_operator_before(run_streams):
    """CUDA reports it at the next launch, or later."""
    run_streams("""
    sentence = "first seen after operator triple, before it crash: restart it"
    gpu.increase(a, 1)
    gpu.crash(a)
    gpu.triple(a, out=out)
    with Raises(cuplug.CudaError, sentence):
        cuplug.synchronize()
    for _ in range(2):
        with Raises(cuplug.CudaError, "increase: CUDA failed before: CUDA error 700") as caught:
            gpu.increase(a, 1)
        assert sentence in str(caught.error)
    """, FAKE_CUDA_LAZY="1")  # fmt: skip


# ---- On a GPU


def seen_by(function) -> list[str]:
    """Call until nothing is raised; return the messages."""
    sentences = []
    while True:
        try:
            function()
            return sentences
        except IndexError as error:
            sentences.append(str(error))


@pytest.mark.gpu
def test_threads_on_a_gpu_are_told_of_their_own_faults():
    source = cuplug.asarray(np.arange(1000, dtype=np.float32), device="cuda")
    fault_program.run(gather, relu, source, cuplug.Stream)


@pytest.mark.gpu
def test_launches_of_a_graph_on_a_gpu_with_and_without_faults():
    x = cuplug.asarray(np.arange(1000, dtype=np.float32), device="cuda")
    index = cuplug.asarray(np.array([0, 1]), device="cuda")
    relu(gather(x, index)).numpy()
    graph = cuplug.Graph()
    with graph:
        gathered = gather(x, index)
        positive = relu(gathered)
    for k in range(3):
        index.set(np.array([0, 1000 + k]))
        graph.launch()
        for array in (gathered, positive, gathered):
            with pytest.raises(IndexError, match=f"index {1000 + k} at position 1"):
                array.numpy()
        index.set(np.array([k, k]))
        graph.launch()
        assert positive.numpy().tolist() == [k, k]


@pytest.mark.gpu
def test_fault_among_other_operators_on_several_streams():
    torch = pytest.importorskip("torch")
    x = torch.arange(10.0, device="cuda") - 5
    good = torch.tensor([9, 0], device="cuda")
    bad = torch.tensor([1, 2, 12], device="cuda", dtype=torch.int32)
    streams = [torch.cuda.Stream() for _ in range(3)]
    torch.cuda.synchronize()
    for at in range(3):
        results = []
        sentences = []
        for k, stream in enumerate(streams):
            with torch.cuda.stream(stream):
                sentences += seen_by(lambda: results.append(relu(gather(x, good))))  # noqa: B023
                if k == at:
                    sentences += seen_by(lambda: gather(x, bad))
                sentences += seen_by(lambda: scale(relu(x), 2))
        sentences += seen_by(cuplug.synchronize)
        assert sentences == ["gather: index: index 12 at position 2 is out of bounds for size 10"]
        for result in results:
            assert result.tolist() == [4, 0]


@pytest.mark.gpu
def test_both_faults_of_one_operator_are_told():
    torch = pytest.importorskip("torch")
    x = torch.arange(4.0, device="cuda")
    first, second = torch.tensor([5], device="cuda"), torch.tensor([6], device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(500_000_000)  # neither has run when the other is called
        gather(x, first)
        gather(x, second)
    assert seen_by(cuplug.synchronize) == [
        "gather: index: index 5 at position 0 is out of bounds for size 4",
        "gather: index: index 6 at position 0 is out of bounds for size 4",
    ]


ODD = """
#include <cuplug/plugin.h>
__global__ void find_odd(const int *x, int *out, int64_t n, cuplug_fault *fault) {
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) {
    if (x[i] % 2) cuplug_fault_text(fault, 3, 0, i, x[i]);
    out[i] = x[i];
  }
}
CUPLUG_ENTRY int even_cuda(const cuplug_call *call) {
  const cuplug_tensor *x = call->tensors;
  find_odd<<<1, 64, 0, (cudaStream_t)call->stream>>>(
      (const int *)x[0].data, (int *)x[1].data, cuplug_n_elements(x), call->fault);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(even_cuda, "even(x: int32[n]) -> int32[n]",
                     "x, if all are even." CUPLUG_FAULT(3, "element {position}, {value}, is odd"));
CUPLUG_PLUGIN(even, "1.0.0");
"""


@pytest.mark.gpu
def test_texts_of_a_plugin_on_a_gpu(build_plugin):
    even = cuplug.load(build_plugin(ODD, "even", cuda=True)).even
    x = np.arange(0, 200, 2, dtype=np.int32)
    assert even(cuplug.asarray(x, device="cuda")).numpy().tolist() == x.tolist()
    x[70] = 99
    bad = even(cuplug.asarray(x, device="cuda"))
    for read in (bad.numpy, bad.numpy, lambda: even(x)):
        with pytest.raises(ValueError, match=r"^even: x: element 70, 99, is odd$"):
            read()


WRECK = """
#include <cuplug/plugin.h>
__global__ void wreck_kernel(size_t address) { *(volatile float *)address = 1; }
CUPLUG_ENTRY int wreck_cuda(const cuplug_call *call) {
  wreck_kernel<<<1, 1, 0, (cudaStream_t)call->stream>>>(16);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(wreck_cuda,
              "wreck(x: float32[n]) -> float32[n]", "Writes where there is no memory.");
CUPLUG_PLUGIN(wreck, "1.0.0");
"""

AFTER_WRECK = """
import numpy as np, cuplug
from cuplug.ops import relu, gather

wreck = cuplug.load({path!r}).wreck
host = np.ones(3, np.float32)
x = cuplug.asarray(host)
assert relu(x).numpy().tolist() == [1, 1, 1]


def sentence_of(function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except cuplug.CudaError as error:
        assert error.code in (700, 714, 716, 717, 718, 719), error.code
        return str(error)
    raise AssertionError("nothing was raised")


def first_sight():
    {first}


what_to_do = (
    "CUDA can no longer be used in this process, first seen after operator wreck, before it "
    "relu: restart it"
)
sentence = sentence_of(first_sight)
assert what_to_do in sentence, sentence
later = [
    lambda: relu(x),
    lambda: gather(host, np.array([0]), device="cuda"),
    lambda: cuplug.asarray(host),
    lambda: wreck(x),
]
for call in later * 2:
    sentence = sentence_of(call)
    assert "CUDA failed before" in sentence and what_to_do in sentence, sentence
assert relu(host).tolist() == [1, 1, 1]  # the CPU goes on
"""


@pytest.mark.gpu
@pytest.mark.parametrize(
    "first", ["wreck(x); cuplug.synchronize()", "wreck(x).numpy()", "wreck(host)"]
)
def test_illegal_address_is_named_at_first_sight_and_ever_after(build_plugin, run_python, first):
    path = build_plugin(WRECK, "wreck", cuda=True)
    done = run_python(textwrap.dedent(AFTER_WRECK).format(path=str(path), first=first))
    assert done.returncode == 0, done.stderr

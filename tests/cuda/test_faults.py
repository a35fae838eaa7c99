# SPDX-License-Identifier: Apache-2.0
"""Errors of kernels that show after the call: whose they are, and what still works."""

import textwrap

import cuplug
import pytest
from cuplug.ops import gather, relu, scale

PICK = "pick: index: index 1000 at position 2 is out of bounds for size 1000"
DIVIDE = "divide: y: index 0 at position 1 is out of range, wanted 1 <= value < 9"


@pytest.mark.parametrize("lazy", ["0", "1"])
def test_two_operators_with_faults(run_streams, lazy):
    """Each is told once, whatever is called in between, on whichever stream."""
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

    for first, second in (None, None), (s, None), (s, t), (t, s):
        picked = gpu.pick(a, wrong, stream=first)
        seen = fault_of(gpu.triple, a, stream=second)
        seen += fault_of(gpu.divide, three, zeros, stream=second)
        seen += fault_of(gpu.triple, a, stream=first)
        seen += fault_of(cuplug.synchronize)
        assert sorted(seen) == sorted([{PICK!r}, {DIVIDE!r}]), seen
        assert picked.numpy()[:2].tolist() == [0, 1]
        assert np.array_equal(gpu.triple(a, stream=first).numpy(), 3 * x)
    assert counts().misuses == 0
    """, FAKE_CUDA_LAZY=lazy)  # fmt: skip


def test_sticky_error_names_the_operator_before(run_streams):
    """CUDA tells of it at the launch after, or later still."""
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
    """Call until nothing is raised; return the sentences."""
    sentences = []
    while True:
        try:
            function()
            return sentences
        except IndexError as error:
            sentences.append(str(error))


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
def test_first_of_two_faults_of_one_operator_is_told():
    torch = pytest.importorskip("torch")
    x = torch.arange(4.0, device="cuda")
    first, second = torch.tensor([5], device="cuda"), torch.tensor([6], device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(500_000_000)  # neither has run when the other is called
        gather(x, first)
        gather(x, second)
    sentences = seen_by(cuplug.synchronize)
    assert sentences == ["gather: index: index 5 at position 0 is out of bounds for size 4"]


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
    "CUDA cannot be used any more in this process, first seen after operator wreck, before it "
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

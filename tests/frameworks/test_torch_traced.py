# SPDX-License-Identifier: Apache-2.0
"""`torch.jit.trace` records operators, not the values that they computed during tracing."""

import json
import threading

import cuplug
import numpy as np
import pytest
from cuplug.ops import gather, relu, scale
from processes import run_on

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")  # PyTorch warns that torch.jit is deprecated

plus = cuplug.elementwise("plus(x: T, y: T) -> T", "x + y")
total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
twice_and_one = cuplug.fuse(lambda x: x * 2 + 1)
POSITIVE, NEGATIVE = torch.arange(1.0, 5), torch.arange(-6.0, -2)
FIRST, LAST = torch.tensor([0, 0, 1]), torch.tensor([3, 3, 2])


def tripled(x):
    y = x + 0
    scale(y, 3.0)
    return y


@pytest.mark.parametrize(
    "program",
    [
        lambda x: relu(x) * 2,
        lambda x: 1 - plus(x, x),
        lambda x: plus(x, 2.5) * x,
        lambda x: total(x) + x,
        lambda x: twice_and_one(x) * 2,
        lambda x: relu(x.int()) + 1,
        tripled,
    ],
)
@pytest.mark.parametrize("n_before", [0, 40])  # PyTorch's C functions read tensors after a while
def test_traces_compute_with_their_inputs(program, n_before):
    for _ in range(n_before):
        program(POSITIVE)
    traced = torch.jit.trace(program, POSITIVE)
    torch.testing.assert_close(traced(NEGATIVE), program(NEGATIVE))
    torch.testing.assert_close(traced(POSITIVE), program(POSITIVE))


def test_traced_integers():
    traced = torch.jit.trace(lambda x, k: gather(x, k) * 2, (POSITIVE, FIRST))
    assert traced(NEGATIVE, LAST).tolist() == [2 * NEGATIVE[k].item() for k in (3, 3, 2)]


@pytest.mark.parametrize("is_recorded", [True, False])
def test_traces_do_without_what_they_cannot_hold(is_recorded):
    refused = {
        "out": lambda x: relu(x, out=torch.empty(4)),
        "asarray: x: got a tensor in torch.jit.trace": lambda x: cuplug.asarray(x, device="cpu"),
    }
    for message, program in refused.items():
        with torch.set_grad_enabled(is_recorded), pytest.raises(TypeError, match=message):
            torch.jit.trace(program, POSITIVE)
    assert relu(NEGATIVE, out=torch.ones(4)).tolist() == [0, 0, 0, 0]


def test_other_threads_and_arrays_of_numpy_are_not_traced():
    found = []

    def program(x):
        thread = threading.Thread(target=lambda: found.append(relu(NEGATIVE, out=torch.ones(4))))
        thread.start()
        thread.join()
        return x * float(relu(np.array([3.0]))[0])

    assert torch.jit.trace(program, POSITIVE)(NEGATIVE).tolist() == (3 * NEGATIVE).tolist()
    assert found
    assert all(x.tolist() == [0, 0, 0, 0] for x in found)


FIRST_CALL = """
import json, warnings
warnings.simplefilter("ignore")
import torch
from cuplug.ops import relu
traced = torch.jit.trace(lambda x: relu(x) * 2, torch.ones(2))
print(json.dumps([traced(torch.tensor([-1.0, 2.0])).tolist(), str(traced.graph)]))
"""


def test_the_first_call_of_a_process_may_be_traced():
    values, graph = json.loads(run_on("", FIRST_CALL))
    assert values == [0, 4]
    assert graph.count("cuplug::relu") == 1
    assert "aten::empty" not in graph

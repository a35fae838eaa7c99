# SPDX-License-Identifier: Apache-2.0
"""What a signature says of outputs: cleared first, without a gradient."""

import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.signature import parse
from places import FIXTURES


@pytest.fixture(scope="session")
def outputs_file(build_plugin):
    source = FIXTURES / "outputs.c"
    return build_plugin(source, "outputs", defines=["CUPLUG_ARCHITECTURES=900"])


@pytest.fixture
def ops(outputs_file):
    return cuplug.load(outputs_file)


X = np.arange(7, dtype=np.float32)


def test_words_before_outputs():
    signature = parse("f(x: T[n]) -> (zero detached a: T[n], zero T[n], zero: T[n]) where T: any")
    assert [(x.name, x.words) for x in signature.outputs] == [
        ("a", ("zero", "detached")),
        ("", ("zero",)),
        ("zero", ()),
    ]
    assert parse("f(x: zero[n]) -> zero[n] where zero: any").outputs[0].words == ()
    assert parse("f(x: T[n]) -> zero where: T[n] where T: any").outputs[0].name == "where"


@pytest.mark.parametrize(
    ("text", "seen", "near"),
    [
        ("f(x: int8[n]) -> zeros y: int8[n]", "zeros", "zero"),
        ("f(x: int8[n]) -> (y: int8[n], zreo int8[n])", "zreo", "zero"),
        ("f(x: int8[n]) -> detatched y: int8[n]", "detatched", "detached"),
        ("f(inuot x: int8[n])", "inuot", "inout"),
    ],
)
def test_misspelt_words(text, seen, near):
    with pytest.raises(cuplug.SignatureError) as raised:
        parse(text)
    at = text.index(seen)
    assert raised.value.position == at
    message = f'signature: byte {at}: got "{seen}" before a name; did you mean {near}?'
    assert str(raised.value) == f"{message}\n  {text}\n  {' ' * at}^"


@pytest.mark.parametrize("word", ["zero", "detached"])
def test_words_of_outputs_before_parameters(word):
    with pytest.raises(cuplug.SignatureError, match=r"':' and a type are wanted at byte 7|8|11"):
        parse(f"f({word} x: int8[n])")


def test_outputs_begin_as_zero(ops):
    counts = ops.count([3, 1, 3] @ np.eye(3, dtype=np.int64), 5)
    np.testing.assert_array_equal(counts, [0, 1, 0, 2, 0])
    out = np.full(5, 9)
    assert ops.count(np.array([4, 4]), 5, out=out) is out
    np.testing.assert_array_equal(out, [0, 0, 0, 0, 2])
    assert ops.count(np.zeros(0, np.int64), 0).shape == (0,)


@pytest.mark.parametrize("shape", [(3, 4), (300, 700)])
def test_strided_inputs_in_blocks(ops, shape):
    x = np.random.default_rng(0).random((shape[0], 2 * shape[1]), np.float32)[:, ::2]
    np.testing.assert_array_equal(ops.add(x), x)
    np.testing.assert_array_equal(ops.add(x, out=np.ones(shape, np.float32)), x)


def test_outputs_of_unknown_size(ops):
    np.testing.assert_array_equal(ops.blank(X), np.zeros(6, np.float32), strict=True)


def test_given_outputs_with_strides(ops):
    out = np.ones(14, np.float32)
    np.testing.assert_array_equal(ops.strided(X, out=out[6::-1]), X)
    np.testing.assert_array_equal(out[:7], X[::-1])
    with pytest.raises(ValueError, match="^strided: out: seen an array with gaps between its el"):
        ops.strided(X, out=out[::2])


def test_the_memory_of_an_input(ops):
    x = X.copy()
    message = (
        "^add: out: got the memory of x, expected an array of its own: it is cleared before th"
    )
    with pytest.raises(ValueError, match=message):
        ops.add(x, out=x)
    np.testing.assert_array_equal(x, X)


def test_zeros_on_a_gpu(run_fake, outputs_file):
    body = """
    a, out = (cuplug.asarray(y, device="cuda") for y in (x, x + 1))
    assert np.array_equal(gpu.add(a).numpy(), x)
    gpu.add(a, out=out)
    assert np.array_equal(out.numpy(), x)
    assert np.array_equal(gpu.blank(a).numpy(), np.zeros(999))
    assert all(np.array_equal(y.numpy(), x) for y in gpu.whole(a))
    assert counts().misuses == 0
    """
    run_fake(body, plugin=outputs_file)


@pytest.mark.parametrize("memory", ["", "100000"])
def test_zeros_of_host_arrays_on_a_gpu(run_fake, outputs_file, memory):
    body = """
    for name in "add", "strided":
        assert np.array_equal(getattr(gpu, name)(x, device="cuda"), x), name
    assert all(np.array_equal(y, x) for y in gpu.whole(x, device="cuda"))
    assert np.array_equal(gpu.blank(x, device="cuda"), np.zeros(999))
    large = np.arange(300_000, dtype=np.float32).reshape(300, 1000)
    assert np.array_equal(gpu.add(large, device="cuda", out=large + 1), large)
    assert counts().misuses == 0
    """
    variables = {"FAKE_CUDA_MEMORY_BYTES": memory} if memory else {}
    run_fake(body, plugin=outputs_file, **variables)


def test_a_graph_clears_them(run_fake, outputs_file):
    body = """
    a, out = (cuplug.asarray(y, device="cuda") for y in (x, x + 1))
    with (graph := cuplug.Graph()):
        gpu.add(a, out=out)
    graph.launch()  # the entry has no kernel that it would replay
    assert np.array_equal(out.numpy(), np.zeros(1000))
    """
    run_fake(body, plugin=outputs_file)


def test_errors_of_the_driver_name_the_operator(run_fake, outputs_file):
    body = """
    with Raises(cuplug.CudaError, "add: clearing an output: "):
        gpu.add(cuplug.asarray(x, device="cuda"))
    """
    run_fake(body, plugin=outputs_file, FAKE_CUDA_FAIL="cuMemsetD8Async:1:999")

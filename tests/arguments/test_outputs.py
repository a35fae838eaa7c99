# SPDX-License-Identifier: Apache-2.0
"""Properties of outputs in a signature: cleared first, without a gradient, optional."""

import inspect
import pickle
import subprocess
import sys

import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.signature import parse
from cuplug._integration.author.stubs import write_stubs
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
    with pytest.raises(
        cuplug.SignatureError, match=r"byte (7|8|11): got .*expected ':' and a type"
    ):
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
    with pytest.raises(ValueError, match="^strided: out: got an array with gaps between its el"):
        ops.strided(X, out=out[::2])


def test_the_memory_of_an_input(ops):
    x = X.copy()
    message = r"^add: out: got the memory of x, expected an array of its own \(it is cleared before"
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


# ---- Optional outputs ----------------------------------------------------------------------------

ROWS = np.arange(12, dtype=np.float32).reshape(3, 4) ** 2
MEANS, GREATEST = ROWS.mean(1), ROWS.max(1)
CENTERED = ROWS - MEANS[:, None]


def test_optional_outputs_are_none_unless_asked_for(ops):
    y, mean, most = ops.center(ROWS)
    np.testing.assert_array_equal(y, CENTERED)
    assert (mean, most) == (None, None)
    result = ops.center(ROWS, return_most=True, return_mean=False)
    assert result._fields == ("y", "mean", "most")
    assert result.mean is None
    np.testing.assert_array_equal(result.most, GREATEST, strict=True)
    assert pickle.loads(pickle.dumps(ops.center(ROWS)))[1:] == (None, None)
    result = ops.center(ROWS, return_mean=True, return_most=True)
    for found, wanted in zip(result, (CENTERED, MEANS, GREATEST), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)


def test_optional_outputs_that_are_given(ops):
    mean = np.zeros(3, np.float32)
    result = ops.center(ROWS, out=(None, mean, None))
    assert result.mean is mean
    assert result.most is None
    np.testing.assert_array_equal(mean, MEANS)
    result = ops.center(ROWS, out=(None, mean, None), return_most=True)
    np.testing.assert_array_equal(result.most, GREATEST)
    with pytest.raises(ValueError, match=r"^center: mean: got float32\[2\], expected \(3,\)$"):
        ops.center(ROWS, out=(None, mean[:2], None))


def test_strided_inputs_of_optional_outputs(ops):
    wide = np.repeat(ROWS, 2, axis=1)[:, ::2]
    for _ in range(2):  # the second call uses the match of the first
        result = ops.center(wide, return_mean=True)
        np.testing.assert_array_equal(result.y, CENTERED)
        np.testing.assert_array_equal(result.mean, MEANS)
    assert ops.center(wide).mean is None


def test_the_only_output_is_optional(ops):
    asked = np.full((), 7)
    assert ops.maybe(asked) is None
    assert asked == 0
    assert ops.maybe(asked, return_out=True) == 1
    assert asked == 1
    out = np.zeros((), np.int64)
    assert ops.maybe(asked, out=out) is out
    assert (out, asked) == (1, 3)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"return_mean": 1}, "center: return_mean: got 1, expected True or False"),
        (
            {"return_means": True},
            "center: got unknown argument return_means, expected x, return_mean, return_most, out, "
            "device or stream",
        ),
        ({"return_y": True}, "center: got unknown argument return_y, expected x, return_mean, "),
    ],
)
def test_what_asks_for_no_optional_output(ops, keywords, message):
    with pytest.raises(TypeError, match=f"^{message}"):
        ops.center(ROWS, **keywords)


def test_what_is_said_of_optional_outputs(ops):
    assert ops.center.returns == {"return_mean": 1, "return_most": 2}
    assert ops.add.returns == {}
    assert str(inspect.signature(ops.center)) == (
        "(x, *, return_mean=False, return_most=False, out=None, device=None, stream=None)"
    )
    specs = ops.center.infer(ROWS).outputs
    assert [x.shape for x in specs] == [(3, 4), (3,), (3,)]
    text = write_stubs([[(parse(ops.center.signatures[0]), "One line.")]], "test")
    assert "        return_mean: bool = False,\n        return_most: bool = False,\n" in text
    assert "    y: _Array\n    mean: Any | None\n    most: Any | None\n" in text


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("f(x: int8[n]) -> y: int8[n] = 3", "expected None", 30),
        ("f(x: int8[n]) -> y: int8[n] = none", "expected None", 30),
        ("f(x: int8[n]) -> int8[n] = None", "got an optional output without a name", 17),
    ],
)
def test_ill_formed_optional_outputs(text, message, at):
    with pytest.raises(cuplug.SignatureError, match=message) as raised:
        parse(text)
    assert raised.value.position == at


def test_optional_outputs_on_a_gpu(run_fake, outputs_file):
    body = """
    rows = x.reshape(10, 100)
    wanted = rows - rows.mean(1)[:, None], rows.mean(1), rows.max(1)
    a = cuplug.asarray(rows, device="cuda")
    for keywords in {}, {"return_mean": True}, {"return_most": True}:
        for result in gpu.center(a, **keywords), gpu.center(rows, device="cuda", **keywords):
            names = [f"return_{name}" for name in result._fields]
            for name, found, expected in zip(names, result, wanted):
                if name == "return_y" or name in keywords:
                    host = found if isinstance(found, np.ndarray) else found.numpy()
                    assert np.array_equal(host, expected), name
                else:
                    assert found is None, name
    assert counts().misuses == 0
    """
    run_fake(body, plugin=outputs_file)
    run_fake(body, plugin=outputs_file, FAKE_CUDA_MEMORY_BYTES="9000")


@pytest.mark.slow
def test_the_properties_ask_for_all_outputs(outputs_file):
    command = [sys.executable, "-m", "cuplug", "test", outputs_file, "--examples", "5"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

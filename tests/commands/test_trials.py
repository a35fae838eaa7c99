# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` finds what is wrong with a plugin, shows the smallest example, outlives a crash."""

import json
import pickle
import re
import sys

import cuplug
import numpy as np
import pytest
from cuplug import testing
from cuplug.author.sizing import n_bytes_of, sized_arguments
from cuplug.commands import suite
from cuplug.commands.trial import CUDA
from cuplug.signature.signature import parse
from hypothesis import given, settings
from places import FIXTURES
from processes import run

# One worker makes the results that most of them read; another would wait for it.
pytestmark = pytest.mark.xdist_group("trials")

FLAWS = {
    "forgets_last": ("out= filled", "np.array([0.0]"),
    "writes_beyond": ("out= filled", "x=np.array([], dtype='float32').reshape((0,))"),
    "writes_input": ("inputs left alone", "np.array([0.0, 0.0, 0.0]"),
    "counts_calls": ("the same result again", "np.array([0.0]"),
    "crashes": ("the same result again", "np.array([0.0, 0.0, 0.0]"),
}


@pytest.fixture(scope="module")
def results(build_plugin, once):
    """The results for the flawed plugin, by operator and property."""
    path = build_plugin(FIXTURES / "flawed.c", "flawed")

    def fill(folder):
        (folder / "results").write_bytes(pickle.dumps(suite.try_all(str(path), examples=20)))

    kept = pickle.loads((once("trials", fill) / "results").read_bytes())
    return {(r.operator, r.property): r for r in kept}


def test_a_sound_operator_passes(results):
    assert [r for (name, _), r in results.items() if name == "sound" and not r.ok] == []
    assert len({name for name, _ in results}) == 6


@pytest.mark.parametrize("operator", FLAWS)
def test_a_flaw_is_found_with_its_smallest_example(results, operator):
    name, example = FLAWS[operator]
    result = results[operator, name]
    assert not result.ok
    assert example in result.code


def test_an_example_can_be_pasted(results, run_python):
    result = results["counts_calls", "the same result again"]
    assert run_python(result.code).returncode == 0


def test_a_crash_names_the_signal_and_the_rest_is_tried(results):
    assert results["crashes", "layouts"].text == "the process was ended by SIGSEGV"
    assert results["crashes", "bad arguments"].property == "bad arguments"


def test_memory_beside_an_output_is_named(results):
    text = results["writes_beyond", "out= filled"].text
    assert re.search("memory (before|after) an output was written", text)


def test_command(build_plugin):
    name = "flawed.writes_input"
    path = {"LD_LIBRARY_CUPLUG_PATH": str(build_plugin(FIXTURES / "flawed.c", "flawed").parent)}
    done = run("test", name, "--examples", "3", "--json", **path)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert set(document["results"][0]) == {
        *("operator", "signature", "property", "ok", "text", "code", "tried")
    }
    shown = run("test", name, "--examples", "3", **path)
    assert "error  inputs left alone" in shown.stdout
    assert shown.stdout.splitlines()[-1].endswith("failed")


def test_stock_operators_pass():
    for name in ("gather", "leaky_relu", "scale"):
        failed = [r for r in suite.try_all(name, examples=5) if not r.ok]
        assert failed == []


def test_cuda_entries_on_a_driver_without_a_gpu(build_plugin, fake_cuda):
    defines = ["CUPLUG_ARCHITECTURES=900"]
    path = str(build_plugin(FIXTURES / "two_sides.c", "two_sides", defines=defines))
    done = run("test", path, "--examples", "5", "--json", LD_LIBRARY_PATH=str(fake_cuda), PATH="/")
    seen = {(r["operator"], r["property"]): r for r in json.loads(done.stdout)["results"]}
    failed = {key for key, r in seen.items() if not r["ok"]}
    assert {key for key in failed if key[0] == "alike"} == set()
    assert ("unlike", "CUDA against host") in failed
    assert ("beyond", "CUDA: memory beside arrays") in failed
    assert ("unlike", "CUDA: memory beside arrays") not in failed
    assert ("ignores_strides", "CUDA: layouts") in failed
    assert {key for key in seen if key[0] == "strided"} == {("strided", name) for name in CUDA}
    assert {key for key in failed if key[0] == "strided"} == set()


def test_what_is_not_tried_is_said(build_plugin, tmp_path):
    defines = ["CUPLUG_ARCHITECTURES=900"]
    path = str(build_plugin(FIXTURES / "two_sides.c", "two_sides", defines=defines))
    done = run("test", path, "--examples", "1", CUDA_VISIBLE_DEVICES="", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert re.search("note +CUDA +not tried: there is no GPU to use", done.stdout)
    assert done.stdout.endswith(" 0 failed, 5 not tried\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gpu
def test_stock_operators_pass_on_a_gpu():
    for name in ("gather", "relu", "scale"):
        results = suite.try_all(name, examples=5)
        assert [r for r in results if not r.ok] == []
        assert any(r.property == "CUDA against host" for r in results)


@given(
    testing.arguments(
        "f(x: T[n, m], y: T[m], inout z: T[...], k: I[n]) where T: floating, I: integer"
    )
)
@settings(max_examples=30)
def test_arguments_fit_the_signature(arguments):
    x, y, z, k = (arguments[name] for name in "xyzk")
    assert x.dtype == y.dtype == z.dtype
    assert x.shape == (k.shape[0], y.shape[0])
    assert k.dtype.kind in "iu"


@given(testing.arguments(cuplug.find("gather")))
@settings(max_examples=30)
def test_arguments_of_an_operator_can_be_called(arguments):
    if arguments["index"].size and not arguments["source"].shape[0]:
        return
    assert cuplug.find("gather")(**arguments).dtype == arguments["source"].dtype


@pytest.mark.parametrize("n_bytes", [64, 4096, 1 << 20])
def test_sized_arguments_are_of_that_size(n_bytes):
    for text in (
        "f(x: T[...], y: T[...]) where T: floating",
        "g(x: float32[m, *row], i: int32[*n])",
    ):
        seen = n_bytes_of(sized_arguments(parse(text), n_bytes), [])
        assert n_bytes / 4 < seen <= n_bytes


def test_without_hypothesis(run_python):
    code = "import sys; sys.modules['hypothesis'] = None\nimport cuplug.testing"
    done = run_python(code)
    assert "cuplug.testing needs the package hypothesis: pip install" in done.stderr


def test_bench(tmp_path, monkeypatch):
    from cuplug.commands import bandwidth

    measured = bandwidth.measure(cuplug.find("relu"), sizes=(1 << 10, 1 << 14))
    assert [x.n_bytes for x in measured if x.side == "cpu"] == [1 << 10, 1 << 14]
    assert all(x.call_us > 0 and x.copy_us > 0 for x in measured)
    for name in ("picture.svg", "picture.png"):
        bandwidth.draw("relu", measured, str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match="needs the package matplotlib: pip install"):
        bandwidth.draw("relu", measured, str(tmp_path / "none.svg"))
    with pytest.raises(ValueError, match="bench: dtype: seen complex64, wanted one of"):
        bandwidth.measure(cuplug.find("relu"), dtype="complex64")
    with pytest.raises(ValueError, match="bench: hello: no arrays, wanted an operator that moves"):
        bandwidth.measure(cuplug.find("hello"))


def test_bench_says_what_is_not_measured(build_plugin, monkeypatch):
    from cuplug.commands import bandwidth

    defines = ["CUPLUG_ARCHITECTURES=900"]
    path = build_plugin(FIXTURES / "two_sides.c", "two_sides", defines=defines)
    monkeypatch.setattr(bandwidth, "available_devices", list)
    with pytest.raises(cuplug.CudaError, match="bench: strided: it runs on GPUs alone, and there"):
        bandwidth.measure(cuplug.load(path).strided)
    place = {"LD_LIBRARY_CUPLUG_PATH": str(path.parent), "CUDA_VISIBLE_DEVICES": ""}
    text = run("bench", "two_sides.alike", **place)
    assert "not measured on cuda: there is no GPU to use" in text.stderr


@pytest.mark.gpu
def test_bench_on_a_gpu():
    from cuplug.commands import bandwidth

    measured = bandwidth.measure(cuplug.find("relu"), sizes=(1 << 20,))
    assert [x.side for x in measured] == ["cpu", "cuda"]
    assert np.isfinite(measured[1].share)

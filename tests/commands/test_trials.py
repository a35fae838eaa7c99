# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` finds errors of a plugin, shows the smallest example, and survives a crash."""

import json
import pickle
import re

import cuplug
import numpy as np
import pytest
from cuplug import testing
from cuplug._engine.signature.signature import parse
from cuplug._integration.author.gradient_arguments import misfit
from cuplug._integration.commands import property_runner
from cuplug._integration.commands.authoring import show_results
from cuplug._integration.commands.overrides import Range, read_pins, settable
from cuplug._integration.commands.property_worker import CUDA
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FIXTURES
from processes import run

# One worker computes the results that most of them read; another would wait for it.
pytestmark = pytest.mark.xdist_group("trials")

FLAWS = {
    "forgets_last": ("outputs filled", "np.array([0.0]"),
    "writes_beyond": ("writes in bounds", "np.array([0.0]"),
    "writes_input": ("inputs unchanged", "np.array([0.0, 0.0, 0.0]"),
    "counts_calls": ("deterministic", "np.array([0.0]"),
    "rounds_up": ("rounding mode", "np.array([0.0]"),
    "reads_vectors": ("layouts", "np.array([1.0]"),
    "crashes": ("deterministic", "np.array([0.0, 0.0, 0.0]"),
}


@pytest.fixture(scope="module")
def results(build_plugin, once):
    """Return the results for the flawed plugin, by operator and property."""
    path = build_plugin(FIXTURES / "flawed.c", "flawed", extra=["-lm"])

    def fill(folder):
        (folder / "results").write_bytes(
            pickle.dumps(property_runner.try_all(str(path), examples=20))
        )

    kept = pickle.loads((once("trials", fill) / "results").read_bytes())
    return {(r.operator, r.property): r for r in kept}


def test_a_sound_operator_passes(results):
    assert [r for (name, _), r in results.items() if name == "sound" and not r.ok] == []
    assert len({name for name, _ in results}) == 8


@pytest.mark.parametrize("operator", FLAWS)
def test_a_flaw_is_found_with_its_smallest_example(results, operator):
    name, example = FLAWS[operator]
    result = results[operator, name]
    assert not result.ok
    assert example in result.code


def test_an_example_can_be_pasted(results, run_python):
    result = results["counts_calls", "deterministic"]
    assert run_python(result.code).returncode == 0


def test_a_crash_names_the_signal_and_the_rest_is_tried(results):
    assert results["crashes", "layouts"].text == "the process was ended by SIGSEGV"
    assert results["crashes", "invalid arguments"].property == "invalid arguments"


def test_memory_beside_an_output_is_named(results):
    for name in ("writes in bounds", "outputs filled"):
        assert results["writes_beyond", name].text == "memory after an output was written"


def test_accepted_calls_are_counted(results):
    result = results["sound", "accepted calls"]
    assert (result.ok, result.text) == (True, "100 of 100")
    assert (result.calls, result.accepted) == (100, 100)


@pytest.fixture(scope="module")
def picky(build_plugin):
    return str(build_plugin(FIXTURES / "picky.c", "picky"))


def try_picky(path, examples=5, **options):
    found = property_runner.try_all(path, examples, **options)
    return {(r.operator, r.property): r for r in found}


@pytest.fixture(scope="module")
def picky_results(picky):
    return try_picky(picky, examples=20)


@pytest.mark.slow
def test_an_operator_that_refuses_everything_fails(picky_results):
    of_it = [r for (name, _), r in picky_results.items() if name == "refuses_all"]
    assert [r.property for r in of_it if r.ok and r.tried] == ["invalid arguments"]
    (failed,) = [r for r in of_it if not r.ok]
    assert (failed.property, failed.calls, failed.accepted) == ("accepted calls", 100, 0)
    first, sentence, advice = failed.text.splitlines()
    assert first == "0 of 100"
    assert re.fullmatch(r"rejected 100 times: refuses_all: k: got \d+, expected -1", sentence)
    assert advice.startswith("-> set accepted values, as in --set k=3 or --set k=0..8; you can ")


@pytest.mark.slow
def test_what_lies_behind_one_value_is_found_when_it_is_set(picky, picky_results):
    assert picky_results["one_k", "writes in bounds"].tried is False
    for said in ("1000", "999..1000"):
        seen = try_picky(picky, pins={"k": said})
        found = seen["one_k", "writes in bounds"]
        assert (found.ok, found.text) == (False, "memory after an output was written")
        assert "k=1000" in found.code


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "side"), [("behind", "after"), ("before", "before")])
def test_memory_beside_outputs_of_unknown_size_is_guarded(picky_results, operator, side):
    result = picky_results[f"{operator}_unknown", "writes in bounds"]
    assert result.text == f"memory {side} an output was written"
    assert [r for (name, _), r in picky_results.items() if name == "in_unknown" and not r.ok] == []


@pytest.mark.slow
def test_a_scalar_that_is_trusted_is_found(picky_results):
    failed = [r for (name, _), r in picky_results.items() if name == "trusts_k" and not r.ok]
    assert "memory after an output was written" in [r.text for r in failed]


@pytest.mark.slow
def test_a_cause_is_said_once(picky):
    done = run("test", picky, "--examples", "3")
    shown = done.stdout.partition("half_broken(")[2].partition("\nnow_and_then(")[0]
    assert shown.count("PluginError: half_broken: it has no more than one") == 1
    assert shown.count("as in: deterministic") == 9
    assert shown.count("import cuplug") == 1
    assert "hypothesis" not in done.stdout.lower()


def test_an_example_of_several_failures_is_shown_once(capsys):
    failures = [
        ("layouts", "1", "f(1)"),
        ("outputs filled", "2", "f(1)"),
        ("large arrays", "3", "f(2)"),
    ]
    show_results(
        [property_runner.Result("f", "f()", x, False, text, code) for x, text, code in failures]
    )
    shown = capsys.readouterr().out
    assert "\nlayouts, outputs filled fail for\n  f(1)\n\nlarge arrays fails for\n  f(2)\n" in shown


@pytest.mark.slow
def test_an_error_that_comes_now_and_then_is_in_our_words(picky_results):
    texts = {r.text for (name, _), r in picky_results.items() if name == "now_and_then"}
    assert "PluginError: now_and_then: odd (with these arguments now and then)" in texts


@pytest.fixture(scope="module")
def ranged_results(build_plugin):
    path = str(build_plugin(FIXTURES / "ranged.c", "ranged"))
    return property_runner.try_all(path, examples=15)


@pytest.mark.slow
def test_arguments_are_drawn_in_the_ranges_of_the_signature(ranged_results):
    failed = {r.operator for r in ranged_results if not r.ok}
    assert failed == {"beyond"}
    accepted = [r for r in ranged_results if r.property == "accepted calls"]
    assert len({r.operator for r in accepted}) == 9
    assert all(r.accepted == r.calls > 0 for r in accepted)
    assert [r for r in ranged_results if not r.tried] == []


def test_lists_are_set_by_their_items():
    signature = parse(
        "f(x: T[n], shape: int[], w: T[n] = None, xs: T[n][] = None) -> T[*shape] where T: floating"
    )
    assert settable(signature) == ["shape", "w", "xs", "n"]
    assert read_pins(signature, {"shape": "2, 3", "w": "None"}) == {"shape": [2, 3], "w": None}
    assert read_pins(signature, {"shape": "", "n": "1..4"}) == {"shape": [], "n": Range(1, 4)}
    for said, text in (
        ("shape", "got 'a', expected numbers, as in 0,2"),
        ("xs", "got 'a', expected None, which leaves it out"),
    ):
        with pytest.raises(ValueError, match=f"^--set: {said}: {text}"):
            read_pins(signature, {said: "a"})


@pytest.mark.slow
def test_what_cannot_be_drawn_is_said(build_plugin):
    path = str(build_plugin(FIXTURES / "ranged.c", "ranged"))
    results = property_runner.try_all(path, examples=3, pins={"axis": "7"})
    first, *others = (r for r in results if r.operator == "drop")
    assert not first.ok
    assert first.text == "drop: no values satisfy 0 <= axis < len(s)"
    assert "writes in bounds" in {r.property for r in others}
    texts = {(r.ok, r.tried, r.text) for r in others if r.property != "CUDA"}
    assert texts == {(True, False, "not tried: as in: deterministic")}


@pytest.mark.parametrize(
    ("pins", "sentence"),
    [
        ({"z": "1"}, "--set: got unknown name z, expected one of k, mode, n"),
        ({"k": "many"}, "--set: k: got 'many', expected a number, or a range as in 0..8"),
        ({"k": "8..0"}, "--set: k: got '8..0', expected a number, or a range as in 0..8"),
        ({"n": "-1"}, "--set: n: got '-1', expected a number, or a range as in 0..8"),
        ({"mode": "c"}, "--set: mode: got 'c', expected a or b"),
    ],
)
def test_what_cannot_be_set(picky, pins, sentence):
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        property_runner.try_all(picky, pins=pins)


def test_words_of_the_command_that_are_refused(picky):
    done = run("test", picky, "--set", "k")
    assert (done.returncode, done.stderr) == (
        1,
        "cuplug: --set: got 'k', expected a name and what it is to be: k=3\n",
    )
    done = run("test", picky, "--set", "k=1", "--set", "k=2")
    assert done.stderr == "cuplug: --set: k: got two values, expected one\n"
    done = run("test", picky, "--examples", "0")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2,
        "Error: Invalid value for '--examples': 0 is not in the range x>=1.",
    )
    with pytest.raises(ValueError, match="^test: examples: got 0, expected 1 or more$"):
        property_runner.try_all(picky, examples=0)
    with pytest.raises(ValueError, match="^test: budget: got 0, expected more than 0 seconds$"):
        property_runner.try_all(picky, budget=0)


def test_arguments_that_fit_come_as_far_as_the_entry():
    gather = cuplug.find("gather")
    good = {"source": np.zeros(3, np.float32), "index": np.zeros(2, np.int32)}
    assert misfit(gather, good) == ""
    assert misfit(gather, good | {"index": np.full(2, 7, np.int32)}) == ""  # the entry decides
    assert misfit(gather, good | {"mode": "no"}).startswith("gather: mode: got the string")
    assert misfit(gather, good | {"index": np.zeros(2)}).startswith("gather: index: got float64")


@given(
    testing.arguments(
        "f(x: T[n], w: T[n] = None, k: int = 1, s: 'a' | 'b' = 'a') where T: floating",
        pinned={"n": 3, "w": None, "k": st.integers(7, 8), "s": "b"},
    )
)
@settings(max_examples=20)
def test_pinned_arguments_are_given(arguments):
    assert arguments["x"].shape == (3,)
    assert "w" not in arguments
    assert arguments["k"] in (7, 8)
    assert arguments["s"] == "b"


def test_command(build_plugin):
    name = "flawed.writes_input"
    path = {
        "LD_LIBRARY_CUPLUG_PATH": str(
            build_plugin(FIXTURES / "flawed.c", "flawed", extra=["-lm"]).parent
        )
    }
    done = run("test", name, "--examples", "3", "--json", **path)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    assert document["ok"] is False
    assert set(document["results"][0]) == {
        *("operator", "signature", "property", "ok", "text", "code", "tried", "calls", "accepted")
    }
    shown = run("test", name, "--examples", "3", **path)
    assert "error  inputs unchanged" in shown.stdout
    assert shown.stdout.splitlines()[-1].endswith("failed")


@pytest.mark.slow
def test_stock_operators_pass():
    for name in ("gather", "leaky_relu", "scale"):
        failed = [r for r in property_runner.try_all(name, examples=5) if not r.ok]
        assert failed == []


@pytest.mark.slow
def test_cuda_entries_on_a_driver_without_a_gpu(build_plugin, fake_cuda):
    defines = ["CUPLUG_ARCHITECTURES=900"]
    path = str(build_plugin(FIXTURES / "two_sides.c", "two_sides", defines=defines))
    done = run("test", path, "--examples", "5", "--json", LD_LIBRARY_PATH=str(fake_cuda), PATH="/")
    seen = {(r["operator"], r["property"]): r for r in json.loads(done.stdout)["results"]}
    failed = {key for key, r in seen.items() if not r["ok"]}
    assert {key for key in failed if key[0] == "alike"} == set()
    assert ("unlike", "CUDA against host") in failed
    assert ("beyond", "CUDA: accesses in bounds") in failed
    assert ("unlike", "CUDA: accesses in bounds") not in failed
    assert ("ignores_strides", "CUDA: layouts") in failed
    names = {*CUDA, "CUDA: accepted calls"}
    assert {key for key in seen if key[0] == "strided"} == {("strided", name) for name in names}
    assert {key for key in failed if key[0] == "strided"} == set()


@pytest.mark.slow
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
        results = property_runner.try_all(name, examples=5)
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


@given(testing.arguments(cuplug.find("gather"), pinned={"mode": "wrap"}))
@settings(max_examples=30)
def test_arguments_of_an_operator_can_be_called(arguments):
    source, axis = arguments["source"], arguments.get("axis", 0)
    if np.size(arguments["index"]) and source.ndim and not source.shape[axis]:
        return
    assert cuplug.find("gather")(**arguments).dtype == source.dtype


def test_without_hypothesis(run_python):
    code = "import sys; sys.modules['hypothesis'] = None\nimport cuplug.testing"
    done = run_python(code)
    assert "cuplug.testing needs the package hypothesis: pip install" in done.stderr


def test_what_cannot_be_pinned():
    sentence = "^arguments: pinned: got unknown name z, expected one of n, x$"
    with pytest.raises(ValueError, match=sentence):
        testing.arguments("f(x: float32[n])", pinned={"z": 3})


@pytest.mark.slow
def test_gradients_are_drawn_in_the_shape_of_what_they_are_of():
    for what in ("gather_backward", "relu_backward"):
        results = property_runner.try_all(what, examples=5)
        accepted = [r for r in results if r.property == "accepted calls"]
        assert accepted
        assert all(r.ok and r.accepted >= 0.8 * r.calls for r in accepted), accepted
    large = [r for r in results if r.property == "large arrays"]
    assert all(r.tried for r in large)


@given(testing.arguments(cuplug.find("gather_backward")))
@settings(max_examples=5, deadline=None)
def test_arguments_of_a_gradient_fit(arguments):
    gather = cuplug.find("gather").infer(
        **{name: x for name, x in arguments.items() if name != "grad"}
    )
    assert arguments["grad"].shape == gather.outputs[0].shape

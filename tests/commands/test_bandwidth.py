# SPDX-License-Identifier: Apache-2.0
"""`cuplug bench`: its arguments, of a requested size, and its output."""

import json
import re
import shutil
import sys

import click
import cuplug
import numpy as np
import pytest
from cuplug._engine.signature.signature import parse
from cuplug._integration.author.bench_arguments import n_bytes_of, sized_arguments
from cuplug._integration.author.gradient_arguments import misfit
from cuplug._integration.commands import authoring, bandwidth, cli
from places import FIXTURES, ROOT
from processes import run


@pytest.mark.parametrize("n_bytes", [64, 4096, 1 << 20])
def test_sized_arguments_are_of_that_size(n_bytes):
    for text in (
        "f(x: T[...], y: T[...]) where T: floating",
        "g(x: float32[m, *row], i: int32[*n])",
    ):
        seen = n_bytes_of(sized_arguments(parse(text), n_bytes), [])
        assert n_bytes / 4 < seen <= n_bytes


@pytest.mark.slow
def test_bench(tmp_path, monkeypatch):
    measured = bandwidth.measure(cuplug.find("relu"), sizes=(1 << 10, 1 << 14))
    assert [x.n_bytes for x in measured if x.device_type == "cpu"] == [1 << 10, 1 << 14]
    assert all(x.call_us > 0 and x.copy_us > 0 for x in measured)
    for name in ("picture.svg", "picture.png"):
        bandwidth.draw("relu", measured, str(tmp_path / name))
        assert (tmp_path / name).stat().st_size > 1000
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ModuleNotFoundError, match="needs the package matplotlib: pip install"):
        bandwidth.draw("relu", measured, str(tmp_path / "none.svg"))
    with pytest.raises(ValueError, match="bench: dtype: got complex64, expected one of"):
        bandwidth.measure(cuplug.find("relu"), dtype="complex64")
    with pytest.raises(ValueError, match="bench: hello: got no arrays, expected an operator with"):
        bandwidth.measure(cuplug.find("hello"))


@pytest.mark.parametrize(
    ("call_us", "copy_us", "expected"),
    [
        ((2, 100), (1, 95), "it reaches 0.95 of a copy's bandwidth: memory is the limit"),
        ((2, 100), (1, 25), "and 4.0 times the speed is possible at most"),
        ((2, 3), (1, 3), "measure larger arrays"),
    ],
)
def test_the_verdict(call_us, copy_us, expected):
    times = zip((1 << 10, 1 << 28), call_us, copy_us, strict=True)
    measured = [bandwidth.Measurement("cuda", n, call, copy, "") for n, call, copy in times]
    text = authoring.verdict(measured)
    assert text.startswith("cuda: a call takes at least 2.00 us")
    assert expected in text


def test_bench_with_shapes_and_scalars():
    measured = bandwidth.measure(
        cuplug.find("leaky_relu"), shapes={"x": "64,3"}, said={"slope": "0.5"}
    )
    seen = [x.arguments for x in measured if x.device_type == "cpu"]
    assert seen == ["x=float32[64, 3], slope=0.5"]
    gather = cuplug.find("gather")
    measured = bandwidth.measure(gather, shapes={"source": "9,4"}, sizes=(1 << 10, 1 << 12))
    shapes = [re.findall(r"\[[\d, ]*\]", x.arguments) for x in measured if x.device_type == "cpu"]
    assert [source for source, _ in shapes] == ["[9, 4]", "[9, 4]"]
    assert shapes[0][1] != shapes[1][1]
    done = run("bench", "leaky_relu", "--set", "slope=0..1")
    assert "Invalid value: --set: slope: got '0..1', expected one value" in done.stderr


@pytest.mark.parametrize(
    ("operator", "shape", "sentence"),
    [
        ("relu", "y=3", "--shape: got unknown name y, expected one of x"),
        ("relu", "x=a", "--shape: x: got 'a', expected sizes, as in 1024,1024"),
        ("gather", "source=", "gather: source: got shape (), expected [m, *row]"),
    ],
)
def test_bench_refuses_shapes(operator, shape, sentence):
    done = run("bench", operator, "--shape", shape)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"Error: Invalid value: {sentence}"


def test_sized_arguments_are_in_the_ranges_of_the_signature(build_plugin):
    for operator in cuplug.load(build_plugin(FIXTURES / "ranged.c", "ranged")).operators:
        found = sized_arguments(parse(operator.signatures[0]), 1 << 16)
        assert misfit(operator, found) == ""
        operator(**found)


def test_bench_shows_what_it_chose():
    done = run("bench", "relu", "--shape", "x=4,3")
    assert done.stdout.splitlines()[1].endswith("x=float32[4, 3]")
    done = run("bench", "relu", "--shape", "x=4,3", "--json")
    assert json.loads(done.stdout)["measurements"][0]["arguments"] == "x=float32[4, 3]"


def test_bench_refuses_a_picture_before_it_measures(monkeypatch, tmp_path):
    monkeypatch.setattr(bandwidth, "measure", lambda *_: pytest.fail("it measured"))
    for name, sentence in {
        "x.foo": "-o: got 'x.foo', expected a name that ends in .svg or .png",
        "none/x.svg": "-o: got 'none/x.svg', expected a file in a folder that can be written",
    }.items():
        with pytest.raises(click.BadParameter, match=f"^{sentence}$"):
            cli.bench.callback("relu", None, (), (), name, False)


@pytest.mark.slow
def test_bench_says_what_is_not_measured(build_plugin, monkeypatch):
    defines = ["CUPLUG_ARCHITECTURES=900"]
    path = build_plugin(FIXTURES / "two_sides.c", "two_sides", defines=defines)
    monkeypatch.setattr(bandwidth, "devices", list)
    with pytest.raises(cuplug.CudaError, match="bench: strided: it runs on GPUs alone, and there"):
        bandwidth.measure(cuplug.load(path).strided)
    place = {"LD_LIBRARY_CUPLUG_PATH": str(path.parent), "CUDA_VISIBLE_DEVICES": ""}
    text = run("bench", "two_sides.alike", **place)
    assert "not measured on cuda: there is no GPU to use" in text.stderr


@pytest.mark.gpu
def test_bench_on_a_gpu():
    measured = bandwidth.measure(cuplug.find("relu"), sizes=(1 << 20,))
    assert [x.device_type for x in measured] == ["cpu", "cuda"]
    assert np.isfinite(measured[1].share)


def test_gradients_are_measured_at_the_size_that_is_wanted():
    gradient = cuplug.find("gather_backward")
    shapes = {"source": "64,16"}
    measured = bandwidth.measure(gradient, shapes=shapes, sizes=(1 << 20,))
    assert 1 << 18 <= measured[0].n_bytes <= 5 << 18
    assert re.search(r"grad=float32\[(\d+), 16\], index=int8\[\1\]", measured[0].arguments)


def test_a_folder_and_a_file(tmp_path, build_plugin):
    half = build_plugin(ROOT / "examples" / "drop_in" / "half.c", "half")
    folder = tmp_path / "half"
    folder.mkdir()
    shutil.copy(half, folder)
    for what in (str(folder), str(half)):
        assert bandwidth.find_operator(what).name == "half"
    assert bandwidth.find_operator("relu").name == "relu"

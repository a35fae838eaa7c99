# SPDX-License-Identifier: Apache-2.0
"""Several sources in one module, code that was compiled elsewhere, and nvcc. Only launches of the
result need a GPU."""

import os
import re
import shutil
import subprocess

import cuplug
import numpy as np
import pytest
from cuplug._source.compilers import jit, linking, nvcc
from cuplug._source.compilers.program import link_program
from cuplug._source.kernels import symbols
from emulated_driver import need_nvrtc

TWICE = """
__constant__ float offset;
__device__ float twice(float x) { return 2 * x + offset; }
__global__ void fill(float *x) { x[threadIdx.x] = threadIdx.x; }
"""
APPLY = """
extern __device__ float twice(float);
template <int N> __global__ void apply(float *x) { x[threadIdx.x] = N * twice(x[threadIdx.x]); }
extern "C" __global__ void add(float *x, float y) { x[threadIdx.x] += twice(y); }
"""
SOURCES = {"twice.cu": TWICE, "apply.cu": APPLY}
# Code that NVRTC does not support.
OF_BOTH_SIDES = """
#include <string>
#include <vector>
#include "mine.h"
std::string of_the_host(int n) { return std::string(n, 'x'); }
template <class T> __global__ void scale(T *x, T factor) { x[threadIdx.x] *= FACTOR * factor; }
static __global__ void hidden(const int *x) {}
namespace mine { __device__ int table[3]; }
"""

COMPILERS = ["nvrtc", pytest.param("nvcc", marks=pytest.mark.slow)]


@pytest.fixture(autouse=True)
def compilers(tmp_path, monkeypatch):
    """Skip without NVRTC and its linker; the cache is empty."""
    need_nvrtc()
    if not shutil.which("nvcc"):
        pytest.skip("needs the CUDA toolkit")
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_memory", {})


def refusal(*arguments, **keywords) -> str:
    """Return the message of the CompileError."""
    with pytest.raises(cuplug.CompileError) as caught:
        cuplug.compile(*arguments, architecture="90", **keywords)
    return str(caught.value)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_sources_are_linked_and_optimised_as_a_whole(compiler):
    module = cuplug.compile(
        SOURCES, names=["apply<3>", "&offset"], architecture="90", compiler=compiler
    )
    assert list(module) == ["fill", "apply<3>", "add"]
    assert module["apply<3>"].signature == "apply<3>(float *)"
    assert {module[name].symbol for name in module} == set(symbols.kernels_in(module.image))
    assert not re.search(r"^\s*call\b", module.ptx, re.MULTILINE)
    assert ".target sm_90" in module.ptx
    same = cuplug.compile(
        SOURCES, names=["apply<3>", "&offset"], architecture="90", compiler=compiler
    )
    assert same is module


def test_sources_without_names():
    module = cuplug.compile([TWICE, APPLY], architecture="compute_80")
    assert list(module) == ["fill", "add"]
    assert b".target sm_80" in module.image
    assert "<source 0>: line 1: identifier" in refusal(["__device__ int f() { return a; }", TWICE])
    one = cuplug.compile({"twice.cu": TWICE}, architecture="90")
    assert one.image == cuplug.compile(TWICE, name="twice.cu", architecture="90").image


def test_what_is_linked_is_kept(monkeypatch):
    asked = (), (), "90", "m", None, "nvrtc"
    first = linking.compile_to_binary(SOURCES, {}, *asked)
    monkeypatch.setattr(jit, "_memory", {})
    monkeypatch.setattr(linking, "link_program", None)
    again = linking.compile_to_binary(SOURCES, {}, *asked)
    assert (again.image, again.lowered, again.types) == (first.image, first.lowered, first.types)
    monkeypatch.setattr(linking, "link_program", link_program)
    changed = {**SOURCES, "twice.cu": TWICE.replace("2 *", "4 *")}
    assert linking.compile_to_binary(changed, {}, *asked).image != first.image


def test_options_reach_the_linker():
    source = {"a.cu": "__global__ void f(float *x) { *x = x[1] / x[2]; }", "b.cu": ""}
    fast, exact = (
        cuplug.compile(source, options, architecture="90").ptx
        for options in (["--use_fast_math"], [])
    )
    assert "div.approx.ftz" in fast
    assert "div.rn" in exact
    few = cuplug.compile(source, ["-maxrregcount=32"], architecture="90")
    assert few.image != cuplug.compile(source, architecture="90").image


def test_what_does_not_fit_together():
    assert "Unresolved extern function" in refusal({"a.cu": APPLY, "b.cu": ""})
    assert "both.cu: linking: " in refusal([TWICE, TWICE], name="both.cu")
    assert refusal(SOURCES, names=["nothing<3>"]) == (
        "<string>: names: got nothing<3>, expected a name in one of the sources"
    )
    assert "linking: " in refusal(APPLY, link=[b"no code"])


@pytest.mark.parametrize(
    ("keywords", "kind", "part"),
    [
        ({"source": {}}, ValueError, "compile: source: got none, expected one or several"),
        ({"source": [TWICE, 3]}, TypeError, "compile: source['<source 1>']: got int"),
        ({"source": {3: TWICE}}, TypeError, "compile: source: a name: got int"),
        ({"compiler": "gcc"}, ValueError, "compiler: got 'gcc', expected 'nvrtc' or 'nvcc'"),
        ({"link": "a.o"}, TypeError, "compile: link: got str, expected a sequence of bytes"),
        ({"link": [3]}, TypeError, "compile: link: got int, expected bytes, PTX as text"),
        (
            {"link": ["no/such.o"]},
            FileNotFoundError,
            "compile: link: No such file or directory: 'no",
        ),
        (
            {"link": [b""]},
            ValueError,
            "compile: link: <image>: got no bytes, expected compiled code",
        ),
        ({"source": {}, "architecture": None}, ValueError, "compile: source: got none"),
    ],
)
def test_wrong_arguments(keywords, kind, part):
    with pytest.raises(kind) as caught:
        cuplug.compile(**{"source": TWICE, "architecture": "90", **keywords})
    assert part in str(caught.value)


def parts_of_twice(folder, form: str) -> list:
    """Return the source, compiled outside cuplug."""
    if form == "ptx":
        return [cuplug.compile(TWICE, ["-rdc=true"], architecture="90").ptx]
    (folder / "twice.cu").write_text(TWICE)
    usual = ["nvcc", "-gencode", f"arch=compute_90,code={'lto' if form == 'ltoir' else 'sm'}_90"]
    kinds = {"object": "-dc", "ltoir": "-ltoir", "cubin": "-cubin", "fatbin": "-fatbin"}
    path = folder / f"twice.{form}"
    command = [*usual, "-rdc=true", kinds.get(form, "-dc"), "twice.cu", "-o", str(path)]
    subprocess.run(command, cwd=folder, check=True)
    if form == "library":
        library = folder / "libtwice.a"
        subprocess.run(["ar", "rcs", str(library), str(path)], check=True)
        return [library]
    return [path.read_bytes()] if form == "cubin" else [path]


@pytest.mark.parametrize(
    "form",
    ["ptx", "ltoir", *[pytest.param(f, marks=pytest.mark.slow)
                       for f in ("object", "cubin", "fatbin", "library")]],
)  # fmt: skip
def test_code_that_was_compiled_elsewhere(tmp_path, form):
    parts = parts_of_twice(tmp_path, form)
    module = cuplug.compile(APPLY, names=["apply<3>"], architecture="90", link=parts)
    assert list(module) == ["apply<3>", "add"]
    assert set(symbols.kernels_in(module.image)) >= {module["apply<3>"].symbol, "add"}


def test_nvcc_takes_code_of_both_sides():
    module = cuplug.compile(
        OF_BOTH_SIDES,
        ["--std=c++17"],
        ["scale<float>", "&mine::table"],
        name="both.cu",
        headers={"mine.h": "#define FACTOR 2\n"},
        architecture="90",
        compiler="nvcc",
    )
    assert module["scale<float>"].signature == "scale<float>(float *, float)"
    assert module["hidden"].signature == "hidden(const int *)"
    assert {module[name].symbol for name in module} == set(symbols.kernels_in(module.image))
    assert "cuplug" not in module.ptx.replace(os.getcwd(), "")  # no name of a temporary folder
    assert "both.cu" in module.ptx  # the lines that profilers show


def test_what_nvcc_refuses():
    source = "__global__ void f(int *x) {\n  *x = y;\n}\n"
    assert refusal(source, name="f.cu", compiler="nvcc") == refusal(source, name="f.cu")
    source = "template <int N> __global__ void scale(int *x) {}"
    for names in (["scal<4>"], ["scale<4>", "&tabl"]):
        said = refusal(source, names=names, compiler="nvcc")
        assert said == refusal(source, names=names)
        assert said.startswith(f"<string>: names: {names[-1]}: identifier ")
    with pytest.raises(cuplug.CompileError, match="Unsupported gpu architecture 'compute_1'"):
        cuplug.compile("", architecture="1", compiler="nvcc")
    with pytest.raises(ValueError, match=r"headers: got '../a.h', expected a name of no folder"):
        cuplug.compile("", headers={"../a.h": ""}, architecture="90", compiler="nvcc")


def test_without_nvcc(monkeypatch):
    monkeypatch.setattr(nvcc.toolkit, "find_nvcc", lambda: None)
    nvcc.find.cache_clear()
    assert "there is no nvcc in $CUDACXX" in refusal("", compiler="nvcc")


@pytest.mark.gpu
@pytest.mark.sanitizer
@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_linked_kernels_run(compiler):
    module = cuplug.compile(SOURCES, names=["apply<3>"], compiler=compiler)
    module.global_("offset", "float32").set(1)
    x = np.zeros(8, np.float32)
    module["fill"][1, 8](cuplug.InOut(x))
    module["apply<3>"][1, 8](cuplug.InOut(x))
    module["add"][1, 8](cuplug.InOut(x), 2)
    np.testing.assert_array_equal(x, 6 * np.arange(8) + 3 + 5)


@pytest.mark.gpu
def test_code_of_nvcc_runs():
    module = cuplug.compile(
        OF_BOTH_SIDES, names=["scale<int>"], headers={"mine.h": "#define FACTOR 2"}, compiler="nvcc"
    )
    x = np.arange(8, dtype=np.int32)
    module["scale<int>"][1, 8](cuplug.InOut(x), 3)
    np.testing.assert_array_equal(x, 6 * np.arange(8))

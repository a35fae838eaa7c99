# SPDX-License-Identifier: Apache-2.0
"""What `cuplug build` gives to compilers, and which GPUs it says that a plugin is limited to."""

import pytest
from cuplug._integration.author import build, fatbin
from cuplug._integration.author.sources import find_source
from cuplug._source.compilers import toolkit
from places import ROOT
from processes import run

HALF = (ROOT / "examples" / "drop_in" / "half.c").read_text()
needs_nvcc = pytest.mark.skipif(not toolkit.find_nvcc(), reason="needs nvcc")

LAMBDA = """
#include <cuplug/plugin.h>
#include <limits>
template <class F> __global__ void each(F f) { f(threadIdx.x); }
CUPLUG_ENTRY int top_cuda(const cuplug_call *call) {
  float *y = (float *)call->outputs->data;
  each<<<1, 2>>>([=] __device__(int i) { y[i] = std::numeric_limits<float>::max(); });
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(top_cuda, "top() -> float32[2]", "The largest numbers.");
CUPLUG_PLUGIN(top, "1.0.0");
"""


@pytest.mark.slow
@needs_nvcc
def test_lambdas_constexpr_functions_and_code_for_one_gpu(tmp_path):
    (tmp_path / "top.cu").write_text(LAMBDA)
    done = run("build", "top.cu", "--arch", "90a", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "\n9.0a: compute capability 9.0 only\n" in done.stdout


def test_gpus_that_code_for_some_excludes():
    assert {x: fatbin.runs_on(x) for x in (90, "90a", "100f", "103a", "120a")} == {
        90: "",
        "90a": "compute capability 9.0 only",
        "100f": "compute capability 10.x from 10.0 on, and no other",
        "103a": "compute capability 10.3 only",
        "120a": "compute capability 12.0 only",
    }


def test_symbols_of_one_copy_are_left_to_gcc(tmp_path, monkeypatch):
    commands = []
    monkeypatch.setattr(build, "_output_of", lambda command, made: commands.append(command) or "")
    for name, compiler in (("half.c", ""), ("half.cpp", ""), ("half.cpp", "clang++")):
        monkeypatch.setenv("CXX", compiler)
        (tmp_path / name).write_text(HALF)
        path = str(tmp_path / name)
        build._compile(find_source(path), None, (), (), str(tmp_path / "libhalf.so"))
    assert ["-fno-gnu-unique" in command for command in commands] == [False, True, False]

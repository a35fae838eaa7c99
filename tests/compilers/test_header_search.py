# SPDX-License-Identifier: Apache-2.0
"""The search for kernels' headers: the same directories with any NVRTC in the process."""

import sys

import pytest
from cuplug._source.compilers import nvrtc


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Return a toolkit and wheels, each with an NVRTC and headers."""
    toolkit, wheels = tmp_path / "toolkit", tmp_path / "site" / "nvidia"
    for folder in (toolkit, wheels / "cu13"):
        (folder / "include" / "cccl" / "cuda" / "std").mkdir(parents=True)
        (folder / "include" / "cuda_fp16.h").write_text("")
    (wheels / "curand" / "include").mkdir(parents=True)
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    return toolkit, wheels


def searched(monkeypatch, library):
    """Return the directories of headers if that NVRTC is found."""
    monkeypatch.setattr(nvrtc, "find_compiler", lambda directories: str(library))
    return nvrtc.find.__wrapped__().include


def test_the_same_headers_whichever_nvrtc_is_loaded(machine, monkeypatch):
    """An imported PyTorch has loaded the NVRTC of its wheels."""
    toolkit, wheels = machine
    one = searched(monkeypatch, toolkit / "lib64" / "libnvrtc.so.13")
    other = searched(monkeypatch, wheels / "cu13" / "lib" / "libnvrtc.so.13")
    assert {*one} == {*other}
    assert {str(toolkit / "include"), str(wheels / "curand" / "include")} <= {*one}
    assert len(one) == len({*one})


def test_the_headers_beside_the_compiler_come_first(machine, monkeypatch):
    for folder in (machine[0], machine[1] / "cu13"):
        seen = searched(monkeypatch, folder / "lib" / "libnvrtc.so.13")
        beside = [str(folder / "include"), str(folder / "include" / "cccl")]
        made = [path for path in seen if path.startswith(str(machine[0].parent))]
        assert made[:2] == beside
        system = [path for path in seen if path.startswith("/usr/local/cuda")]
        assert all(seen.index(path) > seen.index(beside[1]) for path in system)


def test_kept_code_imports_little(run_python, tmp_path):
    """If its code is on disk, the first kernel of a process takes only the time of its imports."""
    code = """
import sys, numpy
before = {*sys.modules}
import cuplug
cuplug.compile('extern "C" __global__ void f(float *x) { *x = 1; }', architecture="80")["f"]
print({"dataclasses", "glob", "pathlib", "shutil", "subprocess"} & {*sys.modules} - before)
"""
    environment = {"CUPLUG_CACHE_DIR": str(tmp_path / "cache")}
    run_python(code, env=environment)
    assert run_python(code, env=environment).stdout == "set()\n"

# SPDX-License-Identifier: Apache-2.0
"""The search for nvcc, and the additions of cuda-pathfinder."""

import os
import sys
from types import SimpleNamespace

from cuplug._source.compilers import nvrtc, toolkit


def test_nvcc_is_looked_for_in_order(tmp_path, monkeypatch):
    def place(name):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
        return str(path)

    wheel, home = place("site/nvidia/cu13/bin/nvcc"), place("home/bin/nvcc")
    on_path, named = place("path/nvcc"), place("named/my-nvcc")
    for name in ("NVCC", "CUDACXX", "CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(toolkit, "DIRECTORIES", ())
    monkeypatch.setattr(toolkit.sysconfig, "get_path", lambda name: str(tmp_path / "site"))
    monkeypatch.setenv("PATH", "/nowhere")
    pathfinder = SimpleNamespace(find_nvidia_binary_utility=lambda name: f"/conda/bin/{name}")
    monkeypatch.setitem(sys.modules, "cuda", SimpleNamespace(pathfinder=pathfinder))
    assert toolkit.find_nvcc() == wheel
    os.remove(wheel)
    assert toolkit.find_nvcc() == "/conda/bin/nvcc"
    monkeypatch.setattr(toolkit.environment, "privileged", True)
    assert toolkit.ask_pathfinder("find_nvidia_binary_utility", "nvcc") is None
    monkeypatch.setattr(toolkit.environment, "privileged", False)
    monkeypatch.setitem(sys.modules, "cuda", None)
    assert toolkit.find_nvcc() is None
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "home"))
    assert toolkit.find_nvcc() == home
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert toolkit.find_nvcc() == on_path
    monkeypatch.setenv("CUDACXX", named)
    assert toolkit.find_nvcc() == named


def test_cuda_pathfinder_finds_headers_that_are_nowhere_else(monkeypatch):
    """As in Conda environments."""
    found = {"cudart": "/conda/include", "cccl": "/conda/include/cccl"}
    monkeypatch.setattr(toolkit, "ask_pathfinder", lambda function, name: found.get(name))
    monkeypatch.setattr(nvrtc.os.path, "exists", lambda path: False)
    assert nvrtc._headers_beside("/x/lib/libnvrtc.so.13") == [*found.values()]
    found.clear()
    assert nvrtc._headers_beside("/x/lib/libnvrtc.so.13") == []

# SPDX-License-Identifier: Apache-2.0
"""How plugins are linked: the C++ standard library, adjacent libraries, versions of symbols."""

import os
import shutil
import subprocess
from functools import partial
from types import SimpleNamespace

import cuplug
import numpy as np
import pytest
from click.testing import CliRunner
from cuplug._engine.base.flags import compiler, lib_directory, nvcc_compiler
from cuplug._engine.cuda import devices
from cuplug._integration.author import elf
from cuplug._integration.author.build import choose_architectures
from cuplug._integration.commands.cli import main
from cuplug._source.compilers.toolkit import find_nvcc
from good_plugin import GOOD, compile_plugin, problems

USER = GOOD.replace("return CUPLUG_OK;", "extern int rare(void); return rare() - 1;")


@pytest.fixture
def build(tmp_path):
    """Return a function that compiles source text to lib<name>.so and returns its path."""
    return partial(compile_plugin, tmp_path)


SYMBOLS = """
extern int needed(int);
__attribute__((weak)) int perhaps(void);
__attribute__((visibility("hidden"))) int hidden(void) { return 1; }
__attribute__((visibility("protected"))) int kept(void) { return perhaps ? perhaps() : hidden(); }
int number = 3;
int function(int x) { return needed(x) + number; }
"""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "i386", "powerpc"])
def test_symbols_of_each_width_and_byte_order(machine, tmp_path):
    if not (shutil.which("clang") and shutil.which("ld.lld")):
        pytest.skip("needs clang and lld")
    (tmp_path / "symbols.c").write_text(SYMBOLS)
    options = ["-nostdlib", "-shared", "-fPIC", "-fuse-ld=lld", "symbols.c", "-o", "libsymbols.so"]
    subprocess.run(["clang", f"--target={machine}-linux-gnu", *options], cwd=tmp_path, check=True)
    library = elf.read_library(str(tmp_path / "libsymbols.so"))
    assert library.exports == {"kept": elf.STT_FUNC, "function": elf.STT_FUNC, "number": 1}
    assert library.undefined == ["needed"]


STANDARD = """
#include <cuplug/plugin.hpp>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
static int plan_of(int64_t n) {
  static std::mutex m;
  static auto *plans = new std::map<int64_t, std::shared_ptr<int>>;
  std::lock_guard<std::mutex> l(m);
  auto &plan = (*plans)[n];
  if (!plan) plan = std::make_shared<int>(1);
  return *plan;
}
CUPLUG_TYPED_HOST_OPERATOR(standard, "standard(x: float32[n]) -> float32[n]", "Uses much of std.");
CUPLUG_HOST_ENTRY(standard, x, n, out) {
  std::ostringstream stream;
  std::unordered_map<std::string, int64_t> sizes{{std::to_string(n), n}};
  std::function<int64_t(int64_t)> f = [&](int64_t k) { return k + sizes.begin()->second; };
  stream << n;
  const bool is_number = std::regex_match(stream.str(), std::regex("[0-9]+"));
  for (int64_t i = 0; i < n; i++) out[i] = x[i] * plan_of(n) * is_number * (f(1) == n + 1);
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(standard, "1.0.0");
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_plugins_may_use_the_standard_library_of_cxx(build, level):
    path = build(STANDARD, "-fvisibility-inlines-hidden", level, name="standard", language="cc")
    assert problems(path) == {}
    assert any("St" in name for name in elf.read_library(path).unique)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Cache", "Stock", "N2St", "std_like"])
def test_static_variables_of_templates_are_not_of_the_standard_library(build, name):
    own = f"""
    template <class T> struct __attribute__((visibility("default"))) {name} {{ static T kept; }};
    template <class T> T {name}<T>::kept;
    static int plan_of"""
    text = STANDARD.replace("static int plan_of", own)
    text = text.replace("return *plan;", f"return *plan + {name}<int>::kept++;")
    path = build(text, "-fvisibility-inlines-hidden", name="standard", language="cc")
    level, said = problems(path)["unique"]
    assert level == "error"
    assert name in said


def test_a_library_beside_a_plugin(build, tmp_path):
    """As in wheels of auditwheel and NVIDIA; `cuplug install` copies only the plugin."""
    folder = tmp_path / "beside" / "lib"
    folder.mkdir(parents=True)
    rare = build("int rare(void) { return 1; }", "-fvisibility=default", name="rare")
    shutil.move(rare, folder / "librare.so")
    rpath = "-Wl,-rpath,$ORIGIN/../none:$ORIGIN/beside/lib"
    path = build(USER, f"-L{folder}", "-lrare", rpath)
    assert problems(path) == {}
    assert cuplug.load(path).half(np.float32([3])).tolist() == [1.5]
    (tmp_path / "to").mkdir(mode=0o755)
    done = CliRunner().invoke(main, ["install", path, "--to", str(tmp_path / "to")])
    assert done.exit_code == 1
    assert "missing libraries: librare.so" in done.output
    shutil.copytree(tmp_path / "beside", tmp_path / "to" / "beside")
    done = CliRunner().invoke(main, ["install", path, "--to", str(tmp_path / "to")])
    assert done.exit_code == 0, done.output


def test_a_plugin_is_built_for_the_folder_that_it_goes_to(build, tmp_path):
    folder = tmp_path / "beside"
    folder.mkdir()
    rare = build("int rare(void) { return 1; }", "-fvisibility=default", name="rare")
    shutil.move(rare, folder / "librare.so")
    source = tmp_path / "half.c"
    source.write_text(
        GOOD.replace("return CUPLUG_OK;", "extern int rare(void); return rare() - 1;")
    )
    options = [f"-L{folder}", "-lrare", "-Wl,-rpath,$ORIGIN/beside"]
    path = cuplug.build(source, options=options)
    assert problems(path) == {}
    shutil.rmtree(folder)
    assert problems(path)["undefined"][0] == "warning"


@pytest.mark.parametrize("rpath", ["lib", "$ORIGINAL/lib", "$ORIGIN/lib:", "$ORIGIN:/opt"])
def test_directories_that_are_not_beside_a_plugin(build, rpath):
    assert problems(build(GOOD, f"-Wl,-rpath,{rpath}"))["rpath"][0] == "error"


def test_versions_of_symbols(build, tmp_path):
    """Such as GLIBC_2.34, if the plugin was linked with a newer library."""
    folder = tmp_path / "beside"
    folder.mkdir()
    text = "int rare(void) { return 1; }"

    def build_library(*versions):
        script = tmp_path / "versions"
        script.write_text(" ".join(f"{version} {{ global: rare; }};" for version in versions))
        flags = ["-fvisibility=default", f"-Wl,--version-script={script}"]
        rare = build(text, *flags, "-Wl,-soname,librare.so.1", name="rare")
        shutil.move(rare, folder / "librare.so.1")

    build_library("RARE_2.0")
    path = build(USER, str(folder / "librare.so.1"), "-Wl,-rpath,$ORIGIN/beside")
    assert problems(path) == {}
    build_library("RARE_1.0")
    level, said = problems(path)["versions"]
    assert level == "error"
    assert "librare.so.1 has no RARE_2.0, which libhalf.so needs" in said
    with pytest.raises(cuplug.PluginError, match="RARE_2.0") as caught:
        cuplug.load(path).half(np.float32([3]))
    assert f"(required by {path})" in str(caught.value)  # not by a copy in memory


def test_the_versions_of_this_system_are_found(build):
    assert elf.missing_versions(elf.read_library(build(GOOD, "-lm", "-lpthread"))) == []
    for name in ("libcuplug.so.1", "cuplug/librandom.so"):
        library = elf.read_library(os.path.join(lib_directory(), name))
        assert library.versions
        assert elf.missing_versions(library) == []


def test_architectures_of_one_gpu_alone_are_chosen():
    nvcc = "nvcc"
    chosen = choose_architectures("100f,90a,80,90", nvcc)
    assert chosen == (80, 90, "90a", "100f")
    command = " ".join(nvcc_compiler(nvcc, chosen))
    assert "code=[sm_90,compute_90]" in command
    assert command.count("code=[") == 1
    assert "arch=compute_90a,code=sm_90a" in command
    assert "arch=compute_100f,code=sm_100f" in command
    assert "code=[" not in " ".join(nvcc_compiler(nvcc, ("90a",)))
    assert r"-DCUPLUG_ARCHITECTURES=800\,900\,900a\,1000f" in command.split()
    assert "-DCUPLUG_ARCHITECTURES=800,900,900a,1000f" in compiler(chosen, cxx=False)
    assert "-DCUPLUG_ARCHITECTURES" not in " ".join(nvcc_compiler(nvcc, (80, 90)))
    for wrong in ("90b", "a90", "90af", "90a,", "", "9.0"):
        with pytest.raises(cuplug.BuildError, match="build: arch: got"):
            choose_architectures(wrong, nvcc)


def test_a_gpu_that_is_newer_than_nvcc_runs_what_is_for_the_newest(tmp_path, monkeypatch):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\nprintf 'compute_75\\ncompute_90\\ncompute_100\\n'\n")
    nvcc.chmod(0o755)
    for gpus, wanted in (([75, 90], (75, 90)), ([90, 121, 120], (90, 100)), ([], (80, 90))):
        found = [SimpleNamespace(compute_capability=x) for x in gpus]
        monkeypatch.setattr(devices, "devices", lambda found=found: found)
        assert choose_architectures("native", str(nvcc)) == wanted


@pytest.mark.slow
def test_code_for_one_gpu_alone(tmp_path):
    if not find_nvcc():
        pytest.skip("needs nvcc")
    source = tmp_path / "hop.cu"
    source.write_text(HOPPER)
    path = cuplug.build(source, arch="90a")
    level, said = problems(path)["architectures"]
    assert (level, said) == ("warning", "there is no PTX, so GPUs to come cannot run it")
    options = ["-gencode=arch=compute_90a,code=compute_90a"]
    level, said = problems(cuplug.build(source, arch="90a", options=options))["architectures"]
    assert level == "warning"
    assert said.startswith("its PTX is for one architecture or family alone")


HOPPER = """
#include <cuplug/plugin.h>
__global__ void __launch_bounds__(128) k(float *y) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;");
#elif defined(__CUDA_ARCH__)
#error "this is for sm_90a"
#endif
  y[threadIdx.x] = 1;
}
CUPLUG_ENTRY int hop_cuda(const cuplug_call *call) {
  k<<<1, 128, 0, (cudaStream_t)call->stream>>>((float *)call->tensors[1].data);
  return cuplug_launched(call);
}
CUPLUG_CUDA_OPERATOR(hop_cuda, "hop(x: float32[128]) -> float32[128]", "Ones.");
CUPLUG_PLUGIN(hop, "1.0.0");
"""

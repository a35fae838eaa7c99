# SPDX-License-Identifier: Apache-2.0
"""How plugins are linked: the C++ standard library, libraries beside them, versions of symbols."""

import shutil
import subprocess

import cuplug
import numpy as np
import pytest
from click.testing import CliRunner
from cuplug.author import elf
from cuplug.author.check import check_file
from cuplug.base.flags import get_include
from cuplug.commands.cli import main

GOOD = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int half_host(const cuplug_call *call) {
  const float *x = call->tensors[0].data;
  float *y = call->tensors[1].data;
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++) y[i] = x[i] / 2;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(half_host, "half(x: float32[...]) -> float32[...]", "Half.");
CUPLUG_PLUGIN(half, "1.0.0");
"""
USER = GOOD.replace("return CUPLUG_OK;", "extern int rare(void); return rare() - 1;")
FLAGS = ("-shared", "-fPIC", "-fvisibility=hidden", f"-I{get_include()}")


@pytest.fixture
def build(tmp_path):
    """Compile source text to lib<name>.so and return its path."""

    def compile_library(source, *flags, name="half", language="c"):
        source_file = tmp_path / f"{name}.{language}"
        source_file.write_text(source)
        library = tmp_path / f"lib{name}.so"
        compiler = "g++" if language == "cc" else "gcc"
        command = [compiler, *FLAGS, str(source_file), "-o", str(library), *flags]
        subprocess.run(command, check=True, capture_output=True)
        library.chmod(0o755)
        return str(library)

    return compile_library


def problems(path):
    """Return rule -> (level, text) of what is not fine."""
    return {f.rule: (f.level, f.text) for f in check_file(path) if f.level != "ok"}


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


@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_plugins_may_use_the_standard_library_of_cxx(build, level):
    path = build(STANDARD, "-fvisibility-inlines-hidden", level, name="standard", language="cc")
    assert problems(path) == {}
    assert any("St" in name for name in elf.read_library(path).unique)


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
    """As auditwheel and NVIDIA's wheels have it; `cuplug install` copies the plugin alone."""
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
    assert "needed libraries that are not found: librare.so" in done.output
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

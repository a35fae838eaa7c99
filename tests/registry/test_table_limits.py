# SPDX-License-Identifier: Apache-2.0
"""The compiler rejects text beyond a limit of the table: plugins that build are accepted."""

import re
import shutil

import cuplug
import pytest
from builds import COMPILER, run_compiler
from cuplug._engine.base import flags
from cuplug._integration.author.check import check_file
from cuplug._source.compilers.toolkit import find_nvcc
from places import ROOT

LONGEST = int(
    re.search(
        r"define CUPLUG_MAX_SIGNATURE (\d+)", (ROOT / "include/cuplug/abi.h").read_text()
    ).group(1)
)
NVCC = find_nvcc()
COMPILERS = {"c": [*COMPILER], "cpp": [shutil.which("g++") or ""], "cu": [NVCC or ""]}
TEXT = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int half_host(const cuplug_call *call) { return call->n_tensors ? 0 : 1; }
CUPLUG_HOST_OPERATOR(half_host, "half(x: float32[n]) -> float32[n]%s", "%s");
CUPLUG_PLUGIN(%s, "1.0.0");
"""


@pytest.fixture(params=COMPILERS)
def compile_table(request, tmp_path):
    """Return a function that compiles a table: signature with trailing spaces, doc, name."""
    compiler = COMPILERS[request.param]
    if not compiler[0]:
        pytest.skip(f"needs a compiler for .{request.param}")

    def run(n_spaces=0, doc="Half.", name="half"):
        source, library = tmp_path / f"half.{request.param}", tmp_path / f"lib{name}.so"
        source.write_text(TEXT % (" " * n_spaces, doc, name))
        options = flags.plugin_flags(nvcc=request.param == "cu")
        command = [*compiler, *options, str(source), "-o", str(library)]
        return run_compiler(command), library

    return run


def test_the_longest_signature_is_taken_and_a_longer_one_does_not_compile(compile_table):
    room = LONGEST - len("half(x: float32[n]) -> float32[n]")
    done, library = compile_table(room)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(cuplug.load(library).half.signatures[0]) == LONGEST
    done, library = compile_table(room + 1)
    assert done.returncode
    assert "the signature is too long" in done.stderr


@pytest.mark.sample(3)
def test_a_doc_text_of_any_length_is_taken(compile_table):
    done, library = compile_table(doc="long " * 20_000)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(cuplug.load(library).half.doc) > 90_000
    assert [x.rule for x in check_file(str(library)) if x.level == "error"] == []


def test_the_longest_name_of_a_plugin_is_taken_and_a_longer_one_does_not_compile(compile_table):
    done, library = compile_table(name="x" * 63)
    assert (done.returncode, done.stderr) == (0, "")
    assert cuplug.load(library).name == "x" * 63
    done, library = compile_table(name="x" * 64)
    assert done.returncode
    assert "a plugin's name has at most 63 characters" in done.stderr

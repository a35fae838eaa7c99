# SPDX-License-Identifier: Apache-2.0
"""The build contract: each rule accepts a good plugin, and names the error of a broken one."""

import json
import os
import platform
import shutil
import struct
import subprocess
from functools import partial
from pathlib import Path

import cuplug
import numpy as np
import pytest
from click.testing import CliRunner
from cuplug._engine.base.flags import get_include, number_of
from cuplug._integration.author import elf, fatbin
from cuplug._integration.author.check import check_file
from cuplug._integration.commands.cli import main
from cuplug._source.compilers import toolkit
from good_plugin import GOOD, compile_plugin, problems
from hypothesis import given
from hypothesis import strategies as st


@pytest.fixture
def build(tmp_path):
    """Return a function that compiles source text to lib<name>.so and returns its path."""
    return partial(compile_plugin, tmp_path)


def test_a_good_plugin_passes_every_rule(build):
    findings = check_file(build(GOOD))
    assert {finding.level for finding in findings} == {"ok"}
    assert {"table", "exports", "undefined", "architectures"} <= {f.rule for f in findings}


BROKEN = {
    "name": (GOOD, (), "other", "lib"),
    "version": (GOOD.replace('"1.0.0"', '"one"'), (), "half", "one"),
    "docs": (GOOD.replace('"Half."', '""'), (), "half", "half"),
    "exports": (GOOD + "CUPLUG_ENTRY int stray(void) { return 1; }", (), "half", "stray"),
    "rpath": (GOOD, ("-Wl,-rpath,/somewhere",), "half", "/somewhere"),
    "stack": (GOOD, ("-z", "execstack"), "half", "executable"),
    "undefined": (
        GOOD.replace("return CUPLUG_OK;", "extern int nowhere(void); return nowhere();"),
        (),
        "half",
        "nowhere",
    ),
    "tls": (
        GOOD.replace(
            "return CUPLUG_OK;",
            'static __thread int n __attribute__((tls_model("initial-exec"))); return 0 * n++;',
        ),
        (),
        "half",
        "static",
    ),
}


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_plugin_is_named_by_its_rule(build, rule):
    source, flags, name, seen = BROKEN[rule]
    found = problems(build(source, *flags, name=name))
    assert list(found) == [rule]
    assert seen in found[rule][1]


DEFAULTS = {
    "k: int8 = 300": "k: this default does not fit its type",
    "k: uint8 = -1": "k: this default does not fit its type",
    "k: int = 9223372036854775808": "k: this default does not fit its type",
    "a: float16 = 1e9": "a: this default does not fit its type",
    "k: int = 1.5": "k: this default does not fit its type",
    "k: int = 7) -> T[...] where T: float32, 0 <= k < 5": "defaults do not satisfy 0 <= k < 5",
    "k: int = 7, j: int = 8) -> T[...] where T: float32, j < k": "defaults do not satisfy j < k",
}


@pytest.mark.parametrize("text", DEFAULTS)
def test_defaults_are_of_their_type_and_in_their_range(build, text):
    rest = text if "->" in text else f"{text}) -> T[...] where T: float32"
    path = build(GOOD.replace("x: float32[...]) -> float32[...]", f"x: T[...], {rest}"))
    (finding,) = [f for f in check_file(str(path)) if f.level == "error"]
    assert finding.rule == "signatures"
    assert DEFAULTS[text] in finding.text
    if rest != text:
        with pytest.raises(cuplug.PluginError, match="this default does not fit its type"):
            cuplug.load(path)


@pytest.mark.parametrize("rest", ["k: int8 = 127", "k: int = None", "k: int = 4, n: int = 5"])
def test_good_defaults(build, rest):
    ranged = f"x: T[...], {rest}) -> T[...] where T: float32, 0 <= k < 128"
    assert problems(build(GOOD.replace("x: float32[...]) -> float32[...]", ranged))) == {}


@pytest.mark.parametrize(
    ("signature", "unkept"),
    [
        ("half(x: float32[n, *s]) -> float32[*s, n]", []),
        ("half(x: float32[n, *s]) -> (float32[n, *s], float32[*s])", ["n"]),
        ("half(x: float32[n, n], y: float32[*s]) -> float32[n, *s]", ["n"]),
        ("half(x: float32[...]) -> float32[...]", ["n", "s"]),
    ],
)
def test_promises_of_independent_dimensions(build, signature, unkept):
    text = GOOD.replace("half(x: float32[...]) -> float32[...]", signature)
    path = build(text.replace('"Half."', '"Half." CUPLUG_INDEPENDENT(n, s)'))
    found = [finding.text for finding in check_file(str(path)) if finding.level == "error"]
    assert len(found) == len(unkept)
    for seen, name in zip(found, unkept, strict=True):
        assert f"independent: got {name}, expected a dimension that each output has once" in seen


@pytest.mark.parametrize(
    ("signature", "is_kept"),
    [
        ("half(x: float32[*s], axis: int = -1) -> float32[*s]", True),
        ("half(x: float32[*s], y: float32[*t], axis: int) -> (float32[*t], int64[*s])", True),
        ("half(x: float32[*s], k: int = -1) -> float32[*s]", False),
        ("half(x: float32[*s], axis: float) -> float32[*s]", False),
        ("half(x: float32[*s], axis: int[]) -> float32[*s]", False),
        ("half(x: float32[...], axis: int) -> float32[...]", False),
        ("half(x: float32[n, *s], axis: int) -> float32[n, *s]", False),
    ],
)
def test_promises_of_an_axis(build, signature, is_kept):
    text = GOOD.replace("half(x: float32[...]) -> float32[...]", signature)
    path = build(text.replace('"Half."', '"Half." CUPLUG_ALONG(axis)'))
    found = [finding.text for finding in check_file(str(path)) if finding.level == "error"]
    assert len(found) == (not is_kept)
    assert all("along: got axis, expected an int parameter" in text for text in found)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="clones are for vectors of x86-64")
def test_an_entry_compiled_for_several_cpus(build):
    clones = '__attribute__((target_clones("avx2", "default")))'
    path = build(GOOD.replace("CUPLUG_ENTRY", f"CUPLUG_ENTRY {clones}", 1), "-O3")
    assert problems(path) == {}
    half = cuplug.load(path).half
    assert half(np.array([1, 3], np.float32)).tolist() == [0.5, 1.5]


def test_symbols_that_plugins_would_share(build):
    source = GOOD.replace("call->tensors[0].data", "(const float *)call->tensors[0].data")
    source = source.replace("= call->tensors[1].data", "= (float *)call->tensors[1].data")
    shared = """
    template <class T> struct __attribute__((visibility("default"))) Counter {
      static int &n() { static int value = 0; return value; }
    };
    """
    source = source.replace("CUPLUG_ENTRY", shared + "CUPLUG_ENTRY", 1)
    source = source.replace("return CUPLUG_OK", "return Counter<int>::n()++ * 0")
    found = problems(build(source, language="cc"))
    assert found["unique"][0] == "error"


def test_a_needed_library_that_few_machines_have(build, tmp_path):
    rare = build("int rare(void) { return 1; }", "-fvisibility=default", name="rare")
    source = GOOD.replace("return CUPLUG_OK;", "extern int rare(void); return rare();")
    found = problems(build(source, f"-L{os.path.dirname(rare)}", "-lrare"))
    assert found["undefined"][0] == "error"
    assert found["needed"][0] == "warning"


@pytest.mark.parametrize(("mode", "level"), [(0o757, "error"), (0o775, "warning")])
def test_permissions(build, mode, level):
    path = build(GOOD)
    os.chmod(path, mode)
    assert problems(path)["permissions"][0] == level


def test_a_folder_that_others_may_write_is_the_only_problem(build, tmp_path):
    path = build(GOOD)
    tmp_path.chmod(0o777)
    level, said = problems(path)["table"]
    assert (level, list(problems(path))) == ("error", ["table"])
    assert f"{tmp_path}, on the way to it: anyone may write it (mode 777)" in said


def test_an_ill_formed_signature_gets_a_caret_under_the_place(build):
    path = build(GOOD.replace("x: float32[...]", "x: float32[n"))
    level, text = problems(path)["signatures"]
    lines = text.splitlines()
    assert level == "error"
    assert lines[1].strip() == "half(x: float32[n) -> float32[...]"
    assert lines[1][lines[2].index("^")] == ")"


def test_a_library_without_a_table(build):
    found = problems(build("int f(void) { return 1; }"))
    assert list(found) == ["table"]


def test_a_note_that_no_program_header_covers(build):
    path = build(GOOD)
    data = bytearray(Path(path).read_bytes())
    phoff, phentsize, phnum = struct.unpack_from("<Q14xHH", data, 32)
    for k in range(phnum):
        if struct.unpack_from("<I", data, phoff + k * phentsize)[0] == 4:  # PT_NOTE
            struct.pack_into("<I", data, phoff + k * phentsize, 0)  # PT_NULL
    Path(path).write_bytes(data)
    level, text = problems(path)["table"]
    assert level == "error"
    assert "PT_NOTE" in text


def test_an_entry_that_is_not_exported(build, tmp_path):
    script = tmp_path / "exports.map"
    script.write_text("{ global: cuplug_symbols; local: *; };")
    found = problems(build(GOOD, f"-Wl,--version-script={script}"))
    assert "half_host" in found["entries"][1]


@pytest.mark.parametrize("kind", ["missing", "empty", "text", "directory", "fifo", "executable"])
def test_what_is_no_shared_library_gets_one_sentence(tmp_path, kind):
    path = tmp_path / "libx.so"
    if kind == "empty":
        path.touch()
    elif kind == "text":
        path.write_text("not a library")
    elif kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "executable":
        source = tmp_path / "main.c"
        source.write_text("int main(void) { return 0; }")
        subprocess.run(["gcc", "-no-pie", source, "-o", path], check=True)
    (finding,) = check_file(str(path))
    assert (finding.level, finding.rule) == ("error", "file")
    assert "\n" not in finding.text


def test_damaged_files_raise_nothing(build, tmp_path):
    data = Path(build(GOOD)).read_bytes()
    damaged = tmp_path / "damaged" / "libhalf.so"
    damaged.parent.mkdir()
    for n in range(0, len(data), len(data) // 60):
        damaged.write_bytes(data[:n])
        assert check_file(str(damaged))
        flipped = bytearray(data)
        flipped[n] ^= 0xFF
        damaged.write_bytes(flipped)
        assert check_file(str(damaged))


def test_command_line(build):
    path = build(GOOD)
    result = CliRunner().invoke(main, ["check", path, "--json"])
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert document["ok"] is True
    assert document["file"] == path
    assert set(document["findings"][0]) == {"level", "rule", "text", "advice"}
    os.chmod(path, 0o757)
    assert CliRunner().invoke(main, ["check", path]).exit_code == 1
    assert CliRunner().invoke(main, ["check"]).exit_code == 2


KERNEL = b"\x7fELF .text.kernel"


def container(*entries):
    """Return a fat binary container of (kind, architecture, image) entries."""
    payload = b"".join(
        struct.pack("<HHIQ12xI8xI20x", kind, 0x101, 64, len(image), architecture, *flags) + image
        for kind, architecture, image, *flags in [(*x, 0)[:4] for x in entries]
    )
    return struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(payload)) + payload


def test_fat_binaries():
    first = container((2, 75, KERNEL), (2, 90, b"compressed"))
    second = container((2, 100, KERNEL), (1, 120, b"text"))
    by_linker = container((2, 52, b"\x7fELF .strtab"))
    code = fatbin.read_fatbins([first + bytes(8) + second, by_linker])
    assert code.machine_code == {75, 90, 100}
    assert code.ptx == {120}
    assert fatbin.read_fatbins([container()]) == fatbin.Code()
    alone = container(
        (2, 90, KERNEL, 0x100011), (2, 100, KERNEL, 0x1200011), (1, 103, b"", 0x108011)
    )
    assert fatbin.read_fatbins([alone]) == fatbin.Code({"90a", "100f"}, {"103a"})


@pytest.mark.parametrize("n", [17, 60, 100])
def test_a_cut_fat_binary_is_refused(n):
    with pytest.raises(ValueError, match="fat binary"):
        fatbin.read_fatbins([container((2, 75, bytes(64)))[:n]])


@given(st.binary(max_size=80), st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(before, payload):
    head = struct.pack("<IHHQ", fatbin.MAGIC, 1, 16, len(payload))
    try:
        code = fatbin.read_fatbins([before + head + payload])
    except ValueError:
        return
    assert all(0 <= number_of(x) < 2**32 for x in code.machine_code | code.ptx)


def test_relocatable_code_is_no_code_of_its_own():
    linked = [container((2, 80, KERNEL), (2, 90, KERNEL))]
    own = container((2, 80, KERNEL), (2, 90, KERNEL), (1, 90, b"text"))
    without_ptx = container((2, 80, KERNEL), (2, 90, KERNEL))
    runtime = container((2, 75, KERNEL), (2, 90, KERNEL), (2, 120, KERNEL), (1, 121, b"text"))

    def read(fatbins, *relocatable):
        library = elf.SharedLibrary("", "", fatbins=fatbins, relocatable_fatbins=list(relocatable))
        return fatbin.read_library(library)

    assert read(linked) == fatbin.Code({80, 90})
    assert read(linked, own) == read(linked, own + runtime) == fatbin.Code({80, 90}, {90})
    assert read(linked, own, without_ptx, runtime) == fatbin.Code({80, 90})
    assert read([], own) == read(None, own) == fatbin.Code({80, 90}, {90})


RELOCATABLE = """
#include <cuplug/plugin.hpp>
__global__ void child(float *x) { x[threadIdx.x] += 1; }
__global__ void parent(float *x, int n) { child<<<1, n>>>(x); }
CUPLUG_TYPED_CUDA_OPERATOR(more, "more(inout x: float32[n]) where n < 1025", "One more.");
CUPLUG_CUDA_ENTRY(more, x, n) { return call.launch<parent>({1, 1}, x, (int)n); }
CUPLUG_PLUGIN(more, "1.0.0");
"""


@pytest.mark.slow
@pytest.mark.skipif(not toolkit.find_nvcc(), reason="needs nvcc")
def test_a_plugin_whose_kernels_launch_kernels_has_no_warnings(tmp_path, capfd):
    (tmp_path / "more.cu").write_text(RELOCATABLE)
    path = cuplug.build(tmp_path / "more.cu", arch="90", options=["-rdc=true"])
    assert problems(path) == {}
    assert "warning" not in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("nvcc"), reason="nvcc is not on PATH")
def test_architectures_of_a_compiled_plugin(tmp_path):
    source = GOOD.replace("call->tensors[0].data;", "(const float *)call->tensors[0].data;", 1)
    source = source.replace("call->tensors[1].data;", "(float *)call->tensors[1].data;", 1)
    source += "__global__ void kernel(float *x) { *x = 1; }"
    source = source.replace("HOST_OPERATOR(half_host", "CUDA_OPERATOR(half_host")
    file = tmp_path / "half.cu"
    file.write_text(source)
    path = str(tmp_path / "libhalf.so")
    architectures = "-gencode=arch=compute_80,code=sm_80", "-gencode=arch=compute_90,code=sm_90"
    flags = "-shared", "-Xcompiler", "-fPIC,-fvisibility=hidden", f"-I{get_include()}"
    subprocess.run(["nvcc", *flags, *architectures, file, "-o", path], check=True)
    assert fatbin.read_fatbins(elf.read_library(path).fatbins).machine_code == {80, 90}
    found = problems(path)
    assert list(found) == ["architectures"]
    assert found["architectures"][0] == "warning"
    assert "PTX" in found["architectures"][1]


def test_entries_that_call_libraries_need_no_architectures():
    """Such as entries of the stock plugin linalg, which has no kernels."""
    findings = check_file(cuplug.find("linalg.matmul").path)
    assert [f.text for f in findings if f.level == "error"] == []

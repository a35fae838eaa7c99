# SPDX-License-Identifier: Apache-2.0
"""Wheels: their contents, use in a clean environment, and the same bytes from each build."""

import base64
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cuplug
import pytest
from builds import BUILT
from places import ROOT

pytestmark = pytest.mark.xdist_group("wheels")  # they build in one folder

BACKEND = ROOT / "build_backend"
# Libraries of the machine that manylinux_2_28 permits, and that cuplug may use.
ALLOWED = {"libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
ALLOWED |= {"libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libcuplug.so.1"}
ALLOWED |= {f"libcuplug_runtime-{cuplug.__version__}.so"}
ASK = "ask:; @echo $(CCACHE)"
# Compiles one file in eight without the cache, the same ones in each build: nvcc writes a hash of
# the path into names, so objects of other builds differ.
SAMPLE = """#!/bin/sh
for each; do case $each in *.c | *.cu) source=$each ;; esac; done
crc=$(printf %s "$source" | cksum | cut -d " " -f 1)
if [ $((crc % 8)) = 2 ]; then exec "$@"; else exec ccache "$@"; fi
"""
ALONG_AXES = """
import numpy as np
from cuplug.ops import put, put_along_axis, scatter, scatter_add, take_along_axis
x, indices = np.arange(6.0).reshape(2, 3), np.array([[2, 0], [1, 1]])
values = x[:, :2]
assert (take_along_axis(x, indices, 1) == np.take_along_axis(x, indices, 1)).all()
assert scatter_add(x, indices, values, 1).sum() == x.sum() + values.sum()
y = x.copy()
put_along_axis(y, indices, values, 1)
assert (y == scatter(x, indices, values, 1)).all()
put(y, np.array([1]), x[:1])
assert (y[1] == x[0]).all()
"""


def run(command: list, cwd: Path, **variables: str) -> str:
    """Run a command that must succeed, without variables of `make test`; return its output."""
    unwanted = ("MAKE", "PYTHON", "CUPLUG", "LD_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(unwanted)}
    done = subprocess.run(
        command, cwd=cwd, env=kept | variables, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def copy_and_build(folder: Path) -> None:
    """Build a wheel of a copy of the sources."""
    ignored = ("build", "dist", ".venv", ".git", "__pycache__", "results", ".*_cache")
    shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*ignored))
    build_wheel(folder, folder / "dist", CCACHE=write_sample(folder))


def write_sample(folder: Path) -> str:
    """Return the command before each compiler: a script where there is a cache, else ""."""
    made = run(["make", "-s", "-f", "build_backend/settings.mk", "--eval", ASK, "ask"], ROOT)
    script = folder / "sample.sh"
    script.write_text(SAMPLE)
    return f"sh {script}" if made.strip() else ""


def build_wheel(folder: Path, to: Path, **settings: str) -> None:
    variables = {"CUDA_ARCHS": "90", "CC": os.environ.get("CC", "cc")}
    variables["NVCC"] = os.environ.get("NVCC", shutil.which("nvcc") or "")  # NVCC= for a fast run
    # With the options of `make`, whose objects are in the cache.
    variables |= {"NVCCFLAGS": "-lineinfo", "CCACHE": ""}
    command = [sys.executable, "build_backend/wheels.py", str(to), sys.executable]
    run(command, folder / "source", **variables | settings)


@pytest.fixture(scope="module")
def wheel(once) -> Path:
    for tool in ("auditwheel", "cyclonedx", "ziglang"):
        pytest.importorskip(tool, reason="make wheel-test installs it")
    (file,) = (once("manylinux", copy_and_build) / "dist").glob("*.whl")
    return file


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.slow
def test_a_wheel_needs_only_what_every_machine_has(wheel, unpacked):
    from elftools.elf.elffile import ELFFile

    assert wheel.name.endswith("-manylinux_2_28_x86_64.whl")
    libraries = [path for path in unpacked.rglob("*.so*") if path.name != "libcuplug.so"]
    assert {"libcuplug.so.1", "libgather.so"} <= {path.name for path in libraries}
    for path in libraries:
        with open(path, "rb") as file:
            elf = ELFFile(file)
            tags = elf.get_section_by_name(".dynamic").iter_tags()
            needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
            assert needed <= ALLOWED, path
            assert elf.get_section_by_name(".symtab") is None, f"{path} is not stripped"


@pytest.mark.slow
def test_the_functions_of_cython_are_in_one_module(unpacked):
    modules = unpacked.rglob("*.cpython-*.so")
    name = b"<cyfunction %U at %p>"  # marks of the largest of them
    (holder,) = (path for path in modules if name in path.read_bytes())
    assert holder.name.startswith("_cython.")


@pytest.mark.slow
def test_record_has_the_digest_of_every_file(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (record,) = (name for name in archive.namelist() if name.endswith("/RECORD"))
        rows = {row[0]: row[1] for row in csv.reader(io.TextIOWrapper(archive.open(record)))}
        files = {name for name in archive.namelist() if not name.endswith("/")}
        assert set(rows) == files
        for name in files - {record}:
            digest = hashlib.sha256(archive.read(name)).digest()
            wanted = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            assert rows[name] == f"sha256={wanted}", name


@pytest.mark.slow
def test_what_is_bundled_is_named_with_its_licence(unpacked):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    (metadata,) = unpacked.glob("*.dist-info")
    text = (metadata / "sboms" / "cuplug.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    notice = (metadata / "licenses" / "NOTICE").read_text()
    components = json.loads(text)["components"]
    assert {"cython", "libgcc"} <= {component["name"] for component in components}
    for component in components:
        assert component["name"].lower() in notice.lower()
        assert component["licenses"]
    assert (metadata / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


@pytest.mark.slow
def test_every_stock_operator_works_in_a_clean_environment(wheel, tmp_path):
    run([sys.executable, "-m", "venv", "clean"], tmp_path)
    scripts = tmp_path / "clean" / "bin"
    pip = [scripts / "python", "-m", "pip", "--disable-pip-version-check"]
    run([*pip, "install", "-q", "--no-compile", f"cuplug[author] @ {wheel.as_uri()}"], tmp_path)
    assert "No broken requirements" in run([*pip, "check"], tmp_path)
    listed = json.loads(run([scripts / "cuplug", "list", "--json"], tmp_path))
    plugins = {Path(plugin["path"]).name: plugin["path"] for plugin in listed["plugins"]}
    source = wheel.parent.parent / "source"
    stock = {path.parent.name for path in source.glob("plugins/*/*.c")}
    assert {f"lib{name}.so" for name in stock} == set(plugins)
    for path in plugins.values():
        assert str(tmp_path) in path
        assert "warning" not in run([scripts / "cuplug", "check", path], tmp_path)
    operators = [name for plugin in listed["plugins"] for name in plugin["operators"]]
    run([scripts / "python", "-c", ALONG_AXES], tmp_path)

    def test(name: str) -> str:
        return run([scripts / "cuplug", "test", name, "--examples", "5"], tmp_path)

    tried_with_others = [name for name in operators if name.endswith("_backward")]
    tried_with_others += [name for name in operators if f"{name}(" in ALONG_AXES]
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for said in pool.map(test, {*operators} - {*tried_with_others}):
            assert " 0 failed" in said


@pytest.mark.slow
def test_two_builds_give_the_same_bytes(wheel):
    folder = wheel.parent.parent
    first = wheel.rename(folder / wheel.name)
    shutil.rmtree(folder / "source" / "build" / "wheel")
    build_wheel(folder, wheel.parent, CCACHE=write_sample(folder))
    with zipfile.ZipFile(first) as one, zipfile.ZipFile(wheel) as other:
        assert one.namelist() == other.namelist()
        differing = [name for name in one.namelist() if one.read(name) != other.read(name)]
    assert differing == []
    assert first.read_bytes() == wheel.read_bytes()


@pytest.mark.slow
def test_functions_of_expressions_have_the_same_bits_on_aarch64(tmp_path):
    pytest.importorskip("ziglang", reason="make wheel-test installs it")
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("needs qemu-user")
    folder = ROOT / "cython" / "cuplug" / "_source" / "expressions" / "templates" / "host"
    flags = ["-O3", "-ffp-contract=off", "-fno-math-errno", "-Iinclude", f"-I{folder}"]
    command = [*flags, "tests/fixtures/same_bits.c", "-lm", "-o"]
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-musl", "-static"]
    run([*zig, *command, tmp_path / "there"], ROOT)
    run([os.environ.get("CC", "cc"), "-march=native", *command, tmp_path / "here"], ROOT)
    assert run(["qemu-aarch64", tmp_path / "there"], ROOT) == run([tmp_path / "here"], ROOT)


@pytest.mark.slow
def test_c_programs_work_on_aarch64(tmp_path):
    pytest.importorskip("ziglang", reason="make wheel-test installs it")
    system = Path("/usr/aarch64-linux-gnu/lib")  # of Debian's libc6-arm64-cross
    if shutil.which("qemu-aarch64") is None or not system.is_dir():
        pytest.skip("needs qemu-user and libc6-arm64-cross")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", "aarch64-linux-gnu.2.28"]
    settings = [f"BUILD={tmp_path}", "VENV=", "NVCC=", f"CC={' '.join(zig)}"]
    make = ["make", "-f", "build_backend/build.mk", f"-j{len(os.sched_getaffinity(0))}"]
    run([*make, *settings, "core", "plugins"], ROOT)
    library, examples = tmp_path / "python" / "cuplug" / "lib", ROOT / "examples"
    plugin = [*zig, "-Iinclude", "-fPIC", "-shared", "-fvisibility=hidden"]
    run([*plugin, examples / "positive.c", "-o", tmp_path / "libpositive.so"], ROOT)
    host = [*zig, "-Iinclude", examples / "host.c", f"-L{library}", "-lcuplug"]
    run([*host, "-o", tmp_path / "host"], ROOT)
    loader = ["qemu-aarch64", system / "ld-linux-aarch64.so.1", "--library-path"]
    command = [*loader, f"{system}:{library}", tmp_path / "host"]
    said = run(command, tmp_path, LD_LIBRARY_CUPLUG_PATH=str(tmp_path))
    assert said.endswith("gather: 3.5 0.5 1.5\npositive: 3 2\n")


@pytest.mark.slow
def test_a_wheel_for_aarch64(wheel, tmp_path):
    from elftools.elf.elffile import ELFFile

    zig = f"{sys.executable} -m ziglang cc -target aarch64-linux-gnu.2.28"
    settings = {"CROSS": "aarch64", "CC": zig, "NVCC": "", "CROSS_FROM": str(BUILT.parent)}
    build_wheel(wheel.parent.parent, tmp_path, **settings)
    (other,) = tmp_path.glob("*.whl")
    assert "-manylinux_2_" in other.name
    assert other.name.endswith("_aarch64.whl")
    with zipfile.ZipFile(other) as archive:
        names = [name for name in archive.namelist() if name.endswith(".so")]
        names.remove("cuplug/lib/libcuplug.so")  # a line for the linker
        machines = {ELFFile(io.BytesIO(archive.read(name)))["e_machine"] for name in names}
        assert b"\nrelu: _relu\n" in archive.read("cuplug/ops.pyi")
    modules = [name for name in names if ".cpython-" in name]
    assert modules
    assert all(name.endswith("-aarch64-linux-gnu.so") for name in modules)
    assert machines == {"EM_AARCH64"}


def test_pythons_that_are_not_there_are_left_out(tmp_path):
    for tool in ("auditwheel", "cyclonedx", "ziglang"):
        pytest.importorskip(tool, reason="make wheel-test installs it")
    done = subprocess.run(
        [sys.executable, BACKEND / "wheels.py", tmp_path, "python2.6"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stdout.startswith("python2.6 is left out: ")
    assert done.stderr == "There is none to build a wheel for: PYTHONS names them\n"

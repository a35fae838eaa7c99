# SPDX-License-Identifier: Apache-2.0
"""The examination of the machine always ends, and names a remedy for each finding."""

import json
from types import SimpleNamespace

import cuplug
import pytest
from click.testing import CliRunner
from cuplug._integration.author.fatbin import Code
from cuplug._integration.commands import doctor
from cuplug._integration.commands import machine as machines
from cuplug._integration.commands.cli import main
from cuplug._integration.commands.machine import NOTE, OK, PROBLEM, Machine
from cuplug._source.compilers import processes
from cuplug._source.compilers.toolkit import Toolkit, find_toolkit
from cuplug.errors import CompileError

HOPPER = SimpleNamespace(
    index=0, name="Some GPU", compute_capability=90, memory_bytes=140 * 2**30
)  # as a cuplug.Device


class Record:
    """A plugin or directory, as in listings."""

    def __init__(self, path, state="ok", **fields):
        self.path, self.state, self.reason = path, state, "the reason"
        self.name, self.device_types, self.origin = (
            "half",
            ("cpu", "cuda"),
            "LD_LIBRARY_CUPLUG_PATH",
        )
        self.kind = "plugin"
        self.__dict__.update(fields)


def levels(findings):
    return [finding.level for finding in findings]


def test_this_machine():
    result = CliRunner().invoke(main, ["doctor", "--json"])
    document = json.loads(result.stdout)
    assert result.exit_code == (0 if document["ok"] else 1)
    assert {f["topic"] for f in document["findings"]} >= {topic for topic, _ in doctor.EXAMINATIONS}
    for finding in document["findings"]:
        assert set(finding) == {"level", "topic", "text", "advice"}
        assert finding["text"]
    assert CliRunner().invoke(main, ["doctor"]).exit_code == result.exit_code


def test_an_examination_that_fails_is_a_finding(monkeypatch):
    def fails(machine):
        raise RuntimeError("broken")
        yield

    monkeypatch.setattr(doctor, "EXAMINATIONS", [("driver", fails)])
    (finding,) = doctor.examine()
    assert (finding.level, finding.topic) == (PROBLEM, "driver")
    assert "broken" in finding.text


def test_a_listing_that_fails_is_a_finding(monkeypatch):
    def fails():
        raise OSError("no path")

    monkeypatch.setattr(machines.cuplug, "plugins", fails)
    found = doctor.examine()
    assert any(f.level == PROBLEM and "no path" in f.text for f in found)


def test_temporary_files(tmp_path, monkeypatch):
    def examined(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        found = list(doctor.examine_temporary_files(Machine()))
        return [(finding.level, finding.text) for finding in found]

    cache = str(tmp_path / "cache")
    kept = (OK, f"compiled code is kept in {cache}")
    variables = {"TMPDIR": str(tmp_path), "CUPLUG_CACHE_DIR": cache}
    assert examined(**variables) == [(OK, f"compilers work in {tmp_path}"), kept]
    used, note, _ = examined(TMPDIR=str(tmp_path / "none"))
    assert used[0] == OK
    assert note == (NOTE, f"TMPDIR={tmp_path}/none is not used")
    monkeypatch.setattr(processes, "temporary_places", lambda: iter(["/proc", f"{tmp_path}/none"]))
    note, _ = examined()
    assert note[0] == NOTE
    assert note[1].startswith("no folder for temporary files is usable: operators from source can")
    assert "\n/proc: " in note[1]
    assert f"\n{tmp_path}/none: No such file or directory" in note[1]
    (tmp_path / "file").touch()
    cache = str(tmp_path / "file")
    text = f"compiled code is not kept: {cache} cannot be written"
    assert examined(CUPLUG_CACHE_DIR=cache)[-1] == (NOTE, text)
    text = "compiled code is not kept (CUPLUG_CACHE_BYTES=0)"
    assert examined(CUPLUG_CACHE_BYTES="0")[-1] == (NOTE, text)


@pytest.mark.parametrize(
    ("toolkit", "driver", "level"),
    [
        (None, (13, 0), NOTE),
        ((13, 0), None, OK),
        ((13, 0), (13, 0), OK),
        ((12, 8), (13, 0), OK),
        ((13, 1), (13, 0), NOTE),
        ((13, 0), (12, 8), PROBLEM),
    ],
)
def test_toolkit_against_driver(toolkit, driver, level):
    machine = Machine(driver_version=driver)
    machine.toolkit = Toolkit("/usr/bin/nvcc", toolkit) if toolkit else None
    (finding,) = machines.examine_toolkit(machine)
    assert finding.level == level
    assert level == OK or finding.advice


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (Code({90}), [OK]),
        (Code({80, 90}, {90}), [OK]),
        (Code({80}, {80}), [NOTE, OK]),
        (Code({80}), [PROBLEM, OK]),
        (Code({100}, {100}), [PROBLEM, OK]),
        (Code(), [PROBLEM, OK]),
        (Code({"90a"}, {"90a"}), [OK]),
        (Code({"100a", "100f"}, {"100f"}), [PROBLEM, OK]),
    ],
)
def test_architectures_against_a_gpu(monkeypatch, code, wanted):
    monkeypatch.setattr(machines, "code_of", lambda plugin: code)
    machine = Machine(devices=[HOPPER], plugins=[Record("/x/libhalf.so")])
    found = list(machines.examine_architectures(machine))
    assert levels(found) == wanted
    assert all("9.0" in finding.text for finding in found[:-1])


@pytest.mark.parametrize(
    ("devices", "toolkit", "device_types", "wanted"),
    [
        ([HOPPER], None, ("cpu",), [PROBLEM]),
        ([HOPPER], Toolkit("/nvcc", (13, 0)), ("cpu",), [PROBLEM]),
        ([], Toolkit("/nvcc", (13, 0)), ("cpu",), [NOTE]),
        ([], None, ("cpu",), []),
        ([HOPPER], None, ("cpu", "cuda"), []),
    ],
)
def test_a_build_without_cuda_code(devices, toolkit, device_types, wanted):
    """As built in a container without a GPU."""
    stock = [Record("/x/librelu.so", device_types=("cpu",), origin="stock")]
    stock += [Record("/x/libgather.so", device_types=device_types, origin="stock")]
    machine = Machine(devices=devices, toolkit=toolkit, plugins=stock)
    found = [
        x for x in machines.examine_architectures(machine) if "own 2 plugins have no" in x.text
    ]
    assert levels(found) == wanted
    for finding in found:
        assert f'CUDA_ARCHS="{90 if devices else "all"}"' in finding.advice
    mine = [Record("/x/libhalf.so", device_types=("cpu",))]
    others = Machine(devices=devices, toolkit=toolkit, plugins=mine)
    assert PROBLEM not in levels(machines.examine_architectures(others))


@pytest.mark.parametrize(
    ("architecture", "capability", "runs"),
    [
        *[(80, 80, True), (80, 86, True), (86, 80, False), (80, 90, False), (90, 80, False)],
        *[("90a", 90, True), ("90a", 100, False), ("100a", 103, False), ("100f", 103, True)],
    ],
)
def test_which_code_a_gpu_runs(architecture, capability, runs):
    assert Code({architecture}).kind_for(capability) == ("machine code" if runs else "no code")
    runs |= architecture in (80, 86) and capability >= architecture  # the driver compiles it
    assert Code(set(), {architecture}).kind_for(capability) == ("only PTX" if runs else "no code")


@pytest.mark.slow
def test_code_of_only_one_architecture(tmp_path, monkeypatch):
    if find_toolkit() is None:
        pytest.skip("no nvcc")
    monkeypatch.chdir(tmp_path)
    for name in ("hopper", "family"):
        assert CliRunner().invoke(main, ["new", name]).exit_code == 0
    plugins = [
        Record(cuplug.build("hopper", arch="90a"), name="hopper"),
        Record(cuplug.build("family", arch="100f"), name="family"),
    ]
    blackwell = SimpleNamespace(index=1, name="B", compute_capability=103, memory_bytes=1)
    machine = Machine(devices=[HOPPER, blackwell], plugins=plugins)
    texts = [x.text for x in machines.examine_architectures(machine) if x.level != OK]
    assert texts == [
        "family has no code for cuda:0 (9.0), only for: 10.0f",
        "hopper has no code for cuda:1 (10.3), only for: 9.0a",
    ]


def test_no_gpu_is_no_problem():
    machine = Machine(cuda_error="no NVIDIA driver: libcuda.so.1 was not found")
    found = [*machines.examine_driver(machine), *machines.examine_gpus(machine)]
    assert set(levels(found)) == {NOTE}


def test_adopted_libraries(tmp_path):
    library, sidecar = tmp_path / "libplain.so", tmp_path / "libplain.cuplug.toml"
    for file in (library, sidecar):
        file.touch(mode=0o644)
    sidecar.chmod(0o664)
    machine = Machine(plugins=[Record(str(library), kind="adopted")])
    (found,) = doctor.examine_permissions(machine)
    assert found.text == f"{sidecar} may be written by its group"
    (found,) = machines.examine_architectures(machine)
    assert found.text == "no plugin has kernels"
    machine.plugins[0].state = "rejected"
    assert list(doctor.examine_plugins(machine))[1].advice == "see `cuplug list`"


def test_files_that_are_not_used():
    records = [Record("/x/a", "rejected"), Record("/x/b", "shadowed"), Record("/x/c")]
    found = list(doctor.examine_plugins(Machine(plugins=records)))
    assert sorted(levels(found)) == [NOTE, OK, PROBLEM]
    assert all("the reason" in f.text for f in found if f.level != OK)


def test_directories_that_are_not_used():
    records = [Record("/a", "rejected"), Record("/b", "missing"), Record("/c", "missing")]
    records[2].origin = "system"
    found = list(doctor.examine_search_path(Machine(directories=records)))
    assert [(f.level, f.text.split()[0]) for f in found[:-1]] == [(PROBLEM, "/a"), (NOTE, "/b")]


def test_group_writable_files_are_named(tmp_path):
    tmp_path.chmod(0o775)
    machine = Machine(directories=[Record(str(tmp_path))])
    (finding,) = doctor.examine_permissions(machine)
    assert finding.level == NOTE
    assert f"chmod g-w {tmp_path}" in finding.advice
    tmp_path.chmod(0o755)
    assert levels(doctor.examine_permissions(machine)) == [OK]


def test_variables_in_force(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", "/some/where")
    monkeypatch.setenv("CUPLUG_ALLOW_UNSAFE", "1")
    monkeypatch.setenv("SUDO_UID", "1000")
    monkeypatch.delenv("CUPLUG_TEST_ALL", raising=False)
    found = list(doctor.examine_environment(Machine()))
    assert "LD_LIBRARY_CUPLUG_PATH=/some/where" in found[0].text
    assert levels(found) == [OK, NOTE, NOTE]
    assert "sudo env" in found[2].advice


def test_missing_packages_are_notes(monkeypatch):
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda name: None)
    found = list(doctor.examine_python(Machine()))
    assert {f.advice for f in found} >= {"pip install ml_dtypes", "pip install cython"}
    assert PROBLEM not in levels(found)


def test_toolkit_from_its_variable(monkeypatch, tmp_path):
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.93'\n")
    nvcc.chmod(0o755)
    monkeypatch.setenv("NVCC", str(nvcc))
    assert find_toolkit() == Toolkit(str(nvcc), (12, 8))
    nvcc.write_text("#!/bin/sh\necho nothing\n")
    assert find_toolkit() == Toolkit(str(nvcc), None)


def test_compilers_that_are_missing(monkeypatch):
    def missing():
        raise CompileError("no C compiler: got none; install one")

    monkeypatch.setattr(doctor.host_compiler, "find_compiler", lambda: ["my cc", "-m64"])
    first, _ = doctor.examine_compilers(Machine())
    assert (first.level, first.text) == (OK, "C compiler 'my cc' -m64")
    monkeypatch.setattr(doctor.host_compiler, "find_compiler", missing)
    monkeypatch.setattr(doctor.nvrtc, "find", missing)
    found = list(doctor.examine_compilers(Machine()))
    assert levels(found) == [NOTE, NOTE]
    assert "apt install gcc" in found[0].advice
    assert "nvidia-cuda-nvrtc" in found[1].advice

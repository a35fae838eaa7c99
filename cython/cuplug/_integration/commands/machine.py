# SPDX-License-Identifier: Apache-2.0
"""The machine, examined by `cuplug doctor`: driver, GPUs, toolkit, and code for its GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import cuplug
from cuplug._engine.cuda.devices import driver_version, usable_devices
from cuplug._engine.cuda.placement import Device
from cuplug._engine.lookup.records import Directory, PluginFile
from cuplug._integration.author import elf, fatbin
from cuplug._integration.author.fatbin import dotted
from cuplug._source.compilers.toolkit import WHEELS, Toolkit, find_toolkit

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass
class Finding:
    """One finding about the machine, and the remedy."""

    level: str  # "ok", "note" or "problem"
    text: str
    advice: str = ""
    topic: str = ""

    def as_dict(self) -> dict[str, str]:
        """Return the finding for JSON."""
        return {
            "level": self.level,
            "topic": self.topic,
            "text": self.text,
            "advice": self.advice,
        }


@dataclass
class Machine:
    """Facts that several examinations need."""

    devices: list[Device] = field(default_factory=list)
    # the CUDA version that the driver supports: (13, 0)
    driver_version: tuple[int, int] | None = None
    cuda_error: str = ""  # why no device can be used
    toolkit: Toolkit | None = None
    plugins: list[PluginFile] = field(default_factory=list)
    directories: list[Directory] = field(default_factory=list)
    path_error: str = ""  # why the search path could not be listed


def look_around() -> Machine:
    """Collect the facts. Those that cannot be obtained are empty, with the reason."""
    machine = Machine(toolkit=find_toolkit())
    try:
        machine.plugins = cuplug.plugins()
        machine.directories = cuplug.search_path()
    except (cuplug.PluginError, MemoryError, OSError) as error:
        machine.path_error = str(error)
    try:
        machine.devices = usable_devices()
    except cuplug.CudaError as error:
        machine.cuda_error = str(error)
    version = driver_version()
    machine.driver_version = (version // 1000, version % 1000 // 10) if version else None
    return machine


def examine_driver(machine: Machine) -> Iterator[Finding]:
    """Report whether the driver can be used, and the CUDA version that it supports."""
    if machine.driver_version:
        yield Finding(OK, f"CUDA {_version(machine.driver_version)}")
    if machine.cuda_error:
        yield Finding(
            NOTE,
            machine.cuda_error,
            "without a usable GPU everything with a host entry runs on the CPU",
        )


def examine_gpus(machine: Machine) -> Iterator[Finding]:
    """Report each GPU."""
    for device in machine.devices:
        gib = device.memory_bytes / 2**30
        capability = dotted(device.compute_capability)
        yield Finding(
            OK, f"cuda:{device.index} {device.name}, compute capability {capability}, {gib:.0f} GiB"
        )
    if not machine.devices:
        yield Finding(NOTE, "none that can be used")


def examine_toolkit(machine: Machine) -> Iterator[Finding]:
    """Compare the compiler with the driver."""
    toolkit, driver = machine.toolkit, machine.driver_version
    if toolkit is None:
        yield Finding(
            NOTE,
            "no nvcc on PATH or in CUDA_HOME",
            f"to compile kernels, install the CUDA toolkit (pip install '{WHEELS}'); running "
            "plugins needs none",
        )
        return
    if toolkit.version is None:
        yield Finding(
            PROBLEM, f"{toolkit.nvcc} does not say its version", "reinstall the CUDA toolkit"
        )
        return
    text = f"{toolkit.nvcc} {_version(toolkit.version)}"
    if driver and toolkit.version[0] > driver[0]:
        yield Finding(
            PROBLEM,
            f"{text} is too new for the driver, which supports CUDA {_version(driver)}",
            f"update the driver, or compile with a toolkit of CUDA {driver[0]}.x",
        )
    elif driver and toolkit.version > driver:
        yield Finding(
            NOTE,
            f"{text}; the driver supports CUDA {_version(driver)}: machine code runs, PTX does not",
            "compile for the architecture of your GPU, or update the driver",
        )
    else:
        yield Finding(OK, text)


def examine_architectures(machine: Machine) -> Iterator[Finding]:
    """Report, for each GPU, the plugins without code for it."""
    yield from _judge_stock(machine)
    plugins = _plugins_with_kernels(machine)
    codes = {plugin.path: code_of(plugin) for plugin in plugins}
    for device in machine.devices:
        n_fine = 0
        for plugin in plugins:
            finding = _judge(plugin, codes[plugin.path], device)
            n_fine += finding is None
            if finding:
                yield finding
        yield Finding(OK, f"cuda:{device.index}: {n_fine} plugins have machine code for it")
    if not plugins:
        yield Finding(OK, "no plugin has kernels")
    elif not machine.devices:
        for plugin in plugins:
            yield Finding(OK, f"{plugin.name}: {_describe(codes[plugin.path])}")


def _judge_stock(machine: Machine) -> Iterator[Finding]:
    """Report that cuplug was built without CUDA code, as on a machine without nvcc."""
    stock = [x for x in machine.plugins if x.state == "ok" and x.origin == "stock"]
    if not stock or any("cuda" in x.device_types for x in stock):
        return
    if not (machine.devices or machine.toolkit):
        return  # a machine without CUDA
    capabilities = sorted({device.compute_capability for device in machine.devices})
    archs = " ".join(map(str, capabilities)) or "all"
    yield Finding(
        PROBLEM if machine.devices else NOTE,
        f"cuplug's own {len(stock)} plugins have no CUDA code: no nvcc was used when cuplug was "
        "built",
        f'build cuplug again with nvcc and CUDA_ARCHS="{archs}" in the environment',
    )


def _plugins_with_kernels(machine: Machine) -> list[PluginFile]:
    tables = [p for p in machine.plugins if p.state == "ok" and p.kind == "plugin"]
    return [p for p in tables if "cuda" in p.device_types]


def code_of(plugin: PluginFile) -> fatbin.Code:
    """Return the architectures of a plugin's file; none if it cannot be read."""
    try:
        return fatbin.read_library(elf.read_library(plugin.path))
    except (OSError, ValueError, elf.ElfError):
        return fatbin.Code()


def _judge(plugin: PluginFile, code: fatbin.Code, device: Device) -> Finding | None:
    capability = device.compute_capability
    kind = code.kind_for(capability)
    if kind == "machine code":
        return None
    if kind == "only PTX":
        return Finding(
            NOTE,
            f"{plugin.name} has only PTX for cuda:{device.index} ({dotted(capability)}): the "
            "driver compiles it at its first use",
            f"add -gencode arch=compute_{capability},code=sm_{capability}",
        )
    return Finding(
        PROBLEM,
        f"{plugin.name} has no code for cuda:{device.index} ({dotted(capability)}), only for: "
        f"{_describe(code)}",
        f"compile it with -gencode arch=compute_{capability},code=sm_{capability}",
    )


def _describe(code: fatbin.Code) -> str:
    parts = [dotted(architecture) for architecture in fatbin.in_order(code.machine_code)]
    parts += [f"PTX {dotted(architecture)}" for architecture in fatbin.in_order(code.ptx)]
    return ", ".join(parts) or "nothing"


def _version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"

# SPDX-License-Identifier: Apache-2.0
"""The part of `cuplug doctor` that is about CUDA: driver, GPUs, toolkit, architectures."""

from __future__ import annotations

from collections.abc import Iterator

from cuplug._engine.cuda.placement import Device
from cuplug._engine.lookup.records import PluginFile
from cuplug._integration.author import elf, fatbin
from cuplug._integration.author.fatbin import dotted
from cuplug._integration.commands.machine import NOTE, OK, PROBLEM, Finding, Machine
from cuplug._source.compilers.toolkit import WHEELS


def examine_driver(machine: Machine) -> Iterator[Finding]:
    """Say whether there is a driver to use, and which CUDA version it supports."""
    if machine.driver_version:
        yield Finding(OK, f"CUDA {_version(machine.driver_version)}")
    if machine.cuda_error:
        yield Finding(
            NOTE,
            machine.cuda_error,
            "without a usable GPU everything with a host entry runs on the CPU",
        )


def examine_gpus(machine: Machine) -> Iterator[Finding]:
    """Name each GPU."""
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
    """Say for each GPU which plugins lack code for it."""
    yield from _judge_stock(machine)
    plugins = _plugins_with_kernels(machine)
    codes = {plugin.path: _code(plugin) for plugin in plugins}
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
    """Say that cuplug was built without CUDA code, as it is where no GPU is visible."""
    stock = [x for x in machine.plugins if x.state == "ok" and x.origin == "stock"]
    if not stock or any("cuda" in x.sides for x in stock):
        return
    if not (machine.devices or machine.toolkit):
        return  # a machine without CUDA
    capabilities = sorted({device.compute_capability for device in machine.devices})
    archs = " ".join(map(str, capabilities)) or "all"
    yield Finding(
        PROBLEM if machine.devices else NOTE,
        f"cuplug's own {len(stock)} plugins have no CUDA code: no GPU or no nvcc was found when "
        "cuplug was built",
        f'build cuplug again with nvcc and CUDA_ARCHS="{archs}" in the environment',
    )


def runs_machine_code(code: fatbin.Code, capability: int) -> bool:
    """Say whether a GPU runs one of these: same major number, a minor number not above its own."""
    return any(a // 10 == capability // 10 and a <= capability for a in code.machine_code)


def _plugins_with_kernels(machine: Machine) -> list[PluginFile]:
    tables = [p for p in machine.plugins if p.state == "ok" and p.kind == "plugin"]
    return [p for p in tables if "cuda" in p.sides]


def _code(plugin: PluginFile) -> fatbin.Code:
    try:
        return fatbin.read_library(elf.read_library(plugin.path))
    except (OSError, ValueError, elf.ElfError):
        return fatbin.Code()


def _judge(plugin: PluginFile, code: fatbin.Code, device: Device) -> Finding | None:
    capability = device.compute_capability
    if runs_machine_code(code, capability):
        return None
    if any(architecture <= capability for architecture in code.ptx):
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
    parts = [dotted(architecture) for architecture in sorted(code.machine_code)]
    parts += [f"PTX {dotted(architecture)}" for architecture in sorted(code.ptx)]
    return ", ".join(parts) or "nothing"


def _version(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"

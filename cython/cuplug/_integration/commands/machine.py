# SPDX-License-Identifier: Apache-2.0
"""What the examinations of `cuplug doctor` share: the machine, and what they report."""

from __future__ import annotations

from dataclasses import dataclass, field

import cuplug
from cuplug._engine.cuda.devices import driver_version, usable_devices
from cuplug._engine.cuda.placement import Device
from cuplug._engine.lookup.records import Directory, PluginFile
from cuplug._source.compilers.toolkit import Toolkit, find_toolkit

OK, NOTE, PROBLEM = "ok", "note", "problem"


@dataclass
class Finding:
    """One thing about the machine, and what to do about it."""

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
    """What several examinations ask about."""

    devices: list[Device] = field(default_factory=list)
    driver_version: tuple[int, int] | None = None  # the CUDA version it supports: (13, 0)
    cuda_error: str = ""  # why there is no device to use
    toolkit: Toolkit | None = None
    plugins: list[PluginFile] = field(default_factory=list)
    directories: list[Directory] = field(default_factory=list)
    path_error: str = ""  # why the search path could not be listed


def look_around() -> Machine:
    """Collect the facts; what cannot be had is left empty, with the reason."""
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

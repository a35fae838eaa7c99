# SPDX-License-Identifier: Apache-2.0
"""What this machine has and lacks for cuplug: `cuplug doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuplug._integration.commands import examine_cuda, examine_setup
from cuplug._integration.commands.machine import NOTE, OK, PROBLEM, Finding, Machine, look_around

__all__ = ["NOTE", "OK", "PROBLEM", "Finding", "examine"]

EXAMINATIONS: list[tuple[str, Callable[[Machine], Iterator[Finding]]]] = [
    ("cuplug", examine_setup.examine_package),
    ("driver", examine_cuda.examine_driver),
    ("gpu", examine_cuda.examine_gpus),
    ("toolkit", examine_cuda.examine_toolkit),
    ("compilers", examine_setup.examine_compilers),
    ("temporary files", examine_setup.examine_temporary_files),
    ("search path", examine_setup.examine_search_path),
    ("plugins", examine_setup.examine_plugins),
    ("architectures", examine_cuda.examine_architectures),
    ("permissions", examine_setup.examine_permissions),
    ("environment", examine_setup.examine_environment),
    ("python", examine_setup.examine_python),
]


def examine() -> list[Finding]:
    """Examine the machine. Never raises: an examination that fails becomes a finding."""
    machine = look_around()
    findings: list[Finding] = []
    for topic, examination in EXAMINATIONS:
        try:
            found = list(examination(machine))
        except Exception as error:  # one broken examination must not hide the others
            found = [Finding(PROBLEM, f"this could not be examined: {error!r}")]
        for finding in found:
            finding.topic = topic
        findings += found
    return findings

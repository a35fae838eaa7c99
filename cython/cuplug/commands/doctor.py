# SPDX-License-Identifier: Apache-2.0
"""What this machine has and lacks for cuplug: `cuplug doctor`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cuplug.commands import cuda_examination, surroundings
from cuplug.commands.examination import NOTE, OK, PROBLEM, Finding, Machine, look_around

__all__ = ["NOTE", "OK", "PROBLEM", "Finding", "examine"]

EXAMINATIONS: list[tuple[str, Callable[[Machine], Iterator[Finding]]]] = [
    ("cuplug", surroundings.examine_package),
    ("driver", cuda_examination.examine_driver),
    ("gpu", cuda_examination.examine_gpus),
    ("toolkit", cuda_examination.examine_toolkit),
    ("search path", surroundings.examine_search_path),
    ("plugins", surroundings.examine_plugins),
    ("architectures", cuda_examination.examine_architectures),
    ("permissions", surroundings.examine_permissions),
    ("environment", surroundings.examine_environment),
    ("python", surroundings.examine_python),
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

# SPDX-License-Identifier: Apache-2.0
"""The JSON files of measured data: one line per result, and floats with six significant digits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def rounded(value: Any) -> Any:
    """Return the data with floats of six significant digits.

    >>> rounded({"median": [1.23456789, 2, 300000.0]})
    {'median': [1.23457, 2, 300000.0]}
    """
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def dumps(value: Any, indent: str = "") -> str:
    """Return JSON in which a container without dictionaries takes one line.

    >>> dumps({"a": {"x": 1, "y": [2, 3]}})
    '{\n "a": {"x": 1, "y": [2, 3]}\n}'
    """
    items = list(value.values() if isinstance(value, dict) else value)
    if not any(_has_dictionary(item) for item in items):
        return json.dumps(value)
    inner = indent + " "
    texts = [dumps(x, inner) if isinstance(x, dict | list) else json.dumps(x) for x in items]
    if isinstance(value, dict):
        names = map(json.dumps, value)
        texts = [f"{name}: {text}" for name, text in zip(names, texts, strict=True)]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n{inner}" + f",\n{inner}".join(texts) + f"\n{indent}{end}"


def _has_dictionary(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_has_dictionary, value)))


def write_data(path: Path, report: dict[str, Any]) -> dict[str, Any]:
    """Write a report; return it as read from the file."""
    report = rounded(report)
    path.write_text(dumps(report) + "\n")
    return report

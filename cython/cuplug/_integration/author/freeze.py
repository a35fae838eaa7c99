# SPDX-License-Identifier: Apache-2.0
"""Support for PyInstaller: its entry point `hook-dirs` names `hook_folders`."""

from __future__ import annotations

import os


def hook_folders() -> list[str]:
    """Return the folders with hooks for PyInstaller."""
    return [os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")]

# SPDX-License-Identifier: Apache-2.0
"""The operators of the plugins in this folder; operators.pyi has their types."""

from pathlib import Path

import cuplug

blend = cuplug.load(Path(__file__).parent / "libblend.so").blend

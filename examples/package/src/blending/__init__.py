# SPDX-License-Identifier: Apache-2.0
"""Blends of arrays of NumPy, PyTorch, CuPy and cuplug, on the CPU and on GPUs."""

from blending.operators import blend
from blending.rows import blend_rows

__all__ = ["blend", "blend_rows"]

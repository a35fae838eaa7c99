# SPDX-License-Identifier: Apache-2.0
"""Operators from expressions, reductions and kernels as text.

templates/ has the surrounding C and CUDA code.
"""

# SPDX-License-Identifier: Apache-2.0
"""Compilation of source text to machine code, by NVRTC and the C compiler, cached on disk.

Uses no operators.
"""

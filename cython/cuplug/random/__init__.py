# SPDX-License-Identifier: Apache-2.0
"""Random numbers as cuplug arrays, with the same bits on the CPU and on GPUs."""

from cuplug.random.generator import Generator, default_rng

Generator.__module__ = default_rng.__module__ = __name__  # for pickles, and for help()

__all__ = ["Generator", "default_rng"]


def __getattr__(name: str) -> object:
    text = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(f"{text}: numbers come from a generator, as rng = default_rng(seed)")

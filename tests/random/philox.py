# SPDX-License-Identifier: Apache-2.0
"""The random bits of cuplug.random, and numbers from them, implemented again with NumPy."""

import numpy as np

WORD = np.uint64(0xFFFFFFFF)
TOP = 1 << 63
ALL = (1 << 64) - 1


def philox(key, low, high):
    """Return the words of blocks `low` of sequence `high`: four arrays of uint64."""
    low = np.asarray(low, "uint64")
    a, b = low & WORD, low >> np.uint64(32)
    c, d = (np.full_like(low, high) & WORD), np.full_like(low, high) >> np.uint64(32)
    for step in range(10):
        keys = [
            np.uint64((half + step * weyl) & 0xFFFFFFFF)
            for half, weyl in ((key & 0xFFFFFFFF, 0x9E3779B9), (key >> 32, 0xBB67AE85))
        ]
        x, y = a * np.uint64(0xD2511F53), c * np.uint64(0xCD9E8D57)
        a, c = (y >> np.uint64(32)) ^ b ^ keys[0], (x >> np.uint64(32)) ^ d ^ keys[1]
        b, d = y & WORD, x & WORD
    return a, b, c, d


def elements(first, n):
    return np.uint64(first) + np.arange(n, dtype="uint64")


def narrow(key, sequence, first, n):
    """Return the narrow bits of n elements."""
    i = elements(first, n)
    words = philox(key, i >> np.uint64(2), sequence)
    return np.choose((i & np.uint64(3)).astype(int), words)


def wide(key, sequence, first, n):
    """Return the wide bits of n elements."""
    i = elements(first, n)
    a, b, c, d = philox(key, i >> np.uint64(1) | np.uint64(TOP), sequence)
    return np.where(i & np.uint64(1), d << np.uint64(32) | c, b << np.uint64(32) | a)


def deciding(key, sequence, first, n):
    """Return the deciding bits of n elements."""
    a, b, _, _ = philox(key, elements(first, n), ~sequence & ALL)
    return b << np.uint64(32) | a


def integers(key, sequence, first, n, low, many):
    """Return n Python integers from `low` to `low` + `many` - 1."""
    is_narrow = many <= 1 << 24
    bits = (narrow if is_narrow else wide)(key, sequence, first, n)
    more = deciding(key, sequence, first, n)
    width = 32 if is_narrow else 64
    pairs = zip(bits.tolist(), more.tolist(), strict=True)
    return [low + ((one << 64 | two) * many >> width + 64) for one, two in pairs]


def permutation(key, sequence, first, n):
    """Return the numbers below n in random order."""
    keys = (deciding(key, sequence, first, n), narrow(key, sequence, first, n))
    return np.lexsort(keys)

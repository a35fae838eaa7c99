# SPDX-License-Identifier: Apache-2.0
"""The examples with libraries that are installed, against what Python has of the same."""

import ctypes
import hashlib
import runpy
import zlib

import numpy as np
import pytest
from places import ROOT

pytest.importorskip("cffi")


def example(name, *libraries):
    """Return the names of an example, if the libraries that it adopts are installed."""
    for library in libraries:
        try:
            ctypes.CDLL(library)
        except OSError:
            pytest.skip(f"no {library}")
    return runpy.run_path(str(ROOT / "examples" / "adopted" / f"{name}.py"))


def test_lapack(capsys):
    names = example("lapack", "liblapack.so.3")
    numbers = np.random.default_rng(3)
    a, b = numbers.random((5, 5)), numbers.random((5, 2))
    x = b.copy()
    names["lapack"].solve(a.copy(), x)
    np.testing.assert_allclose(a @ x, b, atol=1e-12)
    stack = np.stack([a + a.T, a @ a.T])
    before = stack.copy()
    values = names["lapack"].eigenvalues(stack)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(stack), atol=1e-12)
    np.testing.assert_array_equal(stack, before)
    names["main"]()
    assert "solve: the function returned 1, expected 0" in capsys.readouterr().out


def test_checksums(capsys):
    names = example("checksums", "libz.so.1", "libcrypto.so.3")
    rows = np.random.default_rng(3).integers(0, 9, (3, 500)).astype("uint8")
    assert names["zlib"].crc32(rows).tolist() == [zlib.crc32(row) for row in rows]
    digests = names["crypto"].sha256(rows)
    assert [x.tobytes() for x in digests] == [hashlib.sha256(row).digest() for row in rows]
    used = np.array([513], np.uint64)
    packed = names["zlib"].compress(rows[0], used)[: used[0]]
    assert zlib.decompress(packed.tobytes()) == rows[0].tobytes()
    assert len(packed) < 500
    names["main"]()
    assert "300 bytes become" in capsys.readouterr().out


def test_gsl(capsys):
    names = example("gsl", "libgsl.so.27")
    x = np.random.default_rng(3).random((3, 8))
    np.testing.assert_allclose(names["gsl"].mean(x), x.mean(axis=1))
    z = x.astype(complex)
    names["gsl"].fft(z)
    np.testing.assert_allclose(z, np.fft.fft(x), atol=1e-14)
    names["main"]()
    assert "J0(1) = 0.765198" in capsys.readouterr().out

# SPDX-License-Identifier: Apache-2.0
"""The examples with installed libraries, compared with Python's own results."""

import contextlib
import ctypes
import hashlib
import math
import re
import runpy
import shutil
import zlib

import cuplug
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
    with skipped_without_headers():
        return runpy.run_path(str(ROOT / "examples" / "adopted" / f"{name}.py"))


@contextlib.contextmanager
def skipped_without_headers():
    """Skip a test whose description has source text with a header that is not installed."""
    try:
        yield
    except cuplug.CompileError as error:
        if "No such file or directory" in str(error):
            pytest.skip(str(error))
        raise


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
    assert "solve: result: got 1, expected 0" in capsys.readouterr().out


def test_checksums(capsys):
    names = example("checksums", "libz.so.1", "libcrypto.so.3")
    rows = np.random.default_rng(3).integers(0, 9, (3, 500)).astype("uint8")
    assert names["zlib"].crc32(rows).tolist() == [zlib.crc32(row) for row in rows]
    digests = names["crypto"].sha256(rows)
    assert [x.tobytes() for x in digests] == [hashlib.sha256(row).digest() for row in rows]
    packed = names["zlib"].compress(rows[0])
    assert zlib.decompress(packed.tobytes()) == rows[0].tobytes()
    assert len(packed) < 500
    crypto = names["crypto"]
    context, algorithm = crypto.context(), crypto.algorithm("SHA384")
    crypto.begin(context, algorithm)
    for row in rows:
        crypto.update(context, row)
    assert crypto.digest(context).tobytes() == hashlib.sha384(rows.tobytes()).digest()
    with pytest.raises(cuplug.PluginError, match="algorithm: result: got NULL"):
        crypto.algorithm("nothing")
    names["main"]()
    assert "300 bytes become" in capsys.readouterr().out


def test_gsl(capsys):
    names = example("gsl", "libgsl.so.27")
    x = np.random.default_rng(3).random((3, 8))
    np.testing.assert_allclose(names["gsl"].mean(x), x.mean(axis=1))
    z = x.astype(complex)
    names["gsl"].fft(z)
    np.testing.assert_allclose(z, np.fft.fft(x), atol=1e-14)
    gsl = names["gsl"]
    gsl.return_errors()
    workspace = gsl.workspace(50)
    for f in (math.sin, "sin(x)"):
        value, error = gsl.integrate(gsl.integrand(f), 0, math.pi, workspace, 50)
        assert abs(value - 2) <= max(error, 1e-12)
    with pytest.raises(cuplug.PluginError, match=r"integrate: result: got \d+, expected 0"):
        gsl.integrate(gsl.integrand("1 / (x - 0.3)"), 0, 1, workspace, 5)
    names["main"]()
    assert "J0(1) = 0.765198" in capsys.readouterr().out


def test_fftw(capsys):
    names = example("fftw", "libfftw3.so.3")
    x = np.random.default_rng(3).random((2, 3, 12)) + 1j
    with names["fftw"].plan(12) as plan:
        np.testing.assert_allclose(names["fftw"].execute(plan, x), np.fft.fft(x), atol=1e-13)
    names["main"]()
    assert "got a closed handle[plan]" in capsys.readouterr().out


def test_images(capsys):
    names = example("images", "libwebp.so.7", "libturbojpeg.so.0", "libpng16.so.16")
    image = np.random.default_rng(3).integers(0, 256, (5, 7, 3)).astype("uint8")
    webp, jpeg = names["webp"], names["jpeg"]
    np.testing.assert_array_equal(webp.decode(webp.encode_lossless(image)), image)
    flat = np.full((16, 24, 3), 90, np.uint8)
    np.testing.assert_allclose(webp.decode(webp.encode(flat)), flat, atol=3)
    with jpeg.compressor() as compressor:
        data = jpeg.encode(compressor, flat)
        assert data[:2].tobytes() == b"\xff\xd8"
        assert data[-2:].tobytes() == b"\xff\xd9"
    with pytest.raises(cuplug.PluginError, match="decode: result: got NULL"):
        webp.decode(np.zeros(9, np.uint8))
    with skipped_without_headers():
        png = names["adopt_png"]()
    data = png.encode(image)
    assert data[:4].tobytes() == b"\x89PNG"
    np.testing.assert_array_equal(png.decode(data), image)
    with pytest.raises(cuplug.PluginError, match="decode: result: got 1, expected 0"):
        png.decode(data[:20])
    names["main"]()
    assert "png is the same image: True" in capsys.readouterr().out


@pytest.mark.slow
def test_cplusplus(capsys):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    names = example("cplusplus", "libstdc++.so.6")
    find, text = names["cplusplus"].find, "one, two; three"
    pattern = names["cplusplus"].regex("[a-z]+")
    assert find(pattern, text).tolist() == [x.start() for x in re.finditer("[a-z]+", text)]
    assert find(pattern, "").tolist() == []
    names["main"]()
    assert "regex: result: got NULL" in capsys.readouterr().out


@pytest.mark.slow
def test_rust(capsys, tmp_path, monkeypatch):
    if shutil.which("rustc") is None:
        pytest.skip("no rustc")
    monkeypatch.delenv("LD_PRELOAD", raising=False)  # sanitizers, with which rustc does not run
    names = example("rust")
    rust = names["compile_and_adopt"](tmp_path)
    x = np.random.default_rng(3).integers(0, 5, 1000)
    with rust.counter() as counter:
        rust.add(counter, x)
        assert [int(rust.get(counter, k)) for k in range(6)] == np.bincount(x, minlength=6).tolist()
    names["main"]()
    assert "3 was there 3 times" in capsys.readouterr().out


def test_sundials(capsys):
    names = example("sundials", "libsundials_cvode.so.6")
    sundials, times = names["sundials"], np.array([0.5, 1.0, 4.0])
    for f in (lambda t, y: -3 * y, "for (long k = 0; k < n; k++) dydt[k] = -3 * y[k];"):
        found = sundials.solve(sundials.rhs(f), np.array([1.0, 2]), times)
        np.testing.assert_allclose(found, np.exp(-3 * times)[:, None] * [1, 2], atol=1e-6)
    names["main"]()
    assert "division by zero" in capsys.readouterr().out

# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/gallery.md with small data: compared with NumPy, and with a GPU."""

import importlib.util

import numpy as np
import pytest
from places import ROOT

GALLERY = ROOT / "examples" / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "picture")
SMALL = {
    "equalisation": (48, 64),
    "heat": (20, 30, 100),
    "image_filter": (48, 64),
    "kmeans": (300, 3, 8),
    "life": (20, 30, 12),
    "mandelbrot": (24, 32, 30),
}


def run(name, device):
    """Return the results of a program as NumPy arrays."""
    spec = importlib.util.spec_from_file_location(name, GALLERY / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.compute(device, *SMALL[name])
    return [x.numpy() for x in (found if isinstance(found, tuple) else [found])]


def test_each_program_is_tried_and_shown():
    text = (ROOT / "docs" / "gallery.md").read_text()
    assert list(SMALL) == NAMES
    for name in NAMES:
        assert f"<!-- tested: copy of examples/gallery/{name}.py -->" in text
        assert f"(pictures/gallery-{name}.png)" in text
        picture = ROOT / "docs" / "pictures" / f"gallery-{name}.png"
        assert 1000 < picture.stat().st_size < 100_000
        assert len((GALLERY / f"{name}.py").read_text().splitlines()) <= 48


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_the_same_on_a_gpu(name):
    """Sums, and functions such as sin, differ in the last places."""
    for host, gpu in zip(run(name, "cpu"), run(name, "cuda"), strict=True):
        assert host.dtype == gpu.dtype
        assert np.mean(~np.isclose(host, gpu, 1e-3, 1e-4)) < 0.01


def test_mandelbrot():
    (steps,) = run("mandelbrot", "cpu")
    im, re = np.mgrid[0:24, 0:32] + 0.5
    point = -2.2 + 3.2 * re / 32 + 1j * (-1.2 + 2.4 * im / 24)
    z, expected = np.zeros_like(point), np.zeros(point.shape, "int32")
    for _ in range(30):
        inside = abs(z) < 2
        expected += inside
        z = np.where(inside, z * z + point, z)
    assert np.mean(steps != expected) < 0.01
    assert steps.max() == 30


def test_heat():
    (found,) = run("heat", "cpu")
    u = np.zeros((20, 30))
    u[0] += 1
    u[11:, 0] += 0.7
    for _ in range(100):
        inner = u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1] - 4 * u[1:-1, 1:-1]
        u[1:-1, 1:-1] += 0.24 * inner
    np.testing.assert_allclose(found, u, 1e-4, 1e-5)


def test_life():
    import cuplug

    cells = cuplug.random.default_rng(1).integers(2, size=(20, 30), dtype="uint8", device="cpu")
    cells = cells.numpy()
    for _ in range(12):
        around = [np.roll(cells, (r, c), (0, 1)) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c]
        alive = sum(around)
        cells = ((alive == 3) | ((alive == 2) & (cells == 1))).astype("uint8")
    np.testing.assert_array_equal(run("life", "cpu")[0], cells)


def test_equalisation():
    picture, equal = run("equalisation", "cpu")
    share = np.searchsorted(np.sort(picture.ravel()), picture, side="right") * 255 // picture.size
    np.testing.assert_array_equal(equal, share)
    assert np.ptp(equal) > 3 * np.ptp(picture)


def test_kmeans():
    points, labels, centres = run("kmeans", "cpu")
    distances = ((points[:, None] - centres) ** 2).sum(axis=-1)
    assert np.mean(distances.argmin(axis=1) == labels) > 0.95
    for k, centre in enumerate(centres):
        np.testing.assert_allclose(points[labels == k].mean(axis=0), centre, atol=1e-9)


def test_image_filter():
    (edges,) = run("image_filter", "cpu")
    y, x = np.mgrid[0:48, 0:64]
    scene = (np.hypot(y - 24, x - 25.6) < 14.4) | ((y > 28.8) & (x > 32))
    near = np.abs(np.gradient(scene.astype(float))).sum(axis=0) > 0
    assert edges[near].mean() > 4 * np.median(edges)

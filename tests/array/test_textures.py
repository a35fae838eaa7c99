# SPDX-License-Identifier: Apache-2.0
"""Textures and surfaces on the emulated driver, with its texture functions, and on a GPU."""

import cuplug
import numpy as np
import pytest
from emulated_driver import need_nvrtc

READ = """
#define READ(name, T, call) \\
  __global__ void name(cudaTextureObject_t t, T *y, const float *at, int n) { \\
    for (int i = 0; i < n; i++) y[i] = call; \\
  }
READ(read1, float, tex1D<float>(t, at[i]))
READ(read2, float, (tex2D<float>(t, at[2 * i], at[2 * i + 1])))
READ(read3, float, (tex3D<float>(t, at[3 * i], at[3 * i + 1], at[3 * i + 2])))
READ(read2i, int, (tex2D<int>(t, at[2 * i], at[2 * i + 1])))
extern "C" __global__ void write2(cudaSurfaceObject_t s) {
  surf2Dwrite((float)(10 * threadIdx.y + threadIdx.x), s, (int)(threadIdx.x * sizeof(float)),
              (int)threadIdx.y);
}
"""
NAMES = ["read1", "read2", "read3", "read2i"]
# Common code of the tests, as text for the processes with the emulated driver.
CHECKS = '''
def read(module, name, texture, places, dtype=np.float32):
    """Return what a kernel reads at (x, y)."""
    places = np.array(places, np.float32)
    y = np.empty(len(places), dtype)
    module[name][1, 1](texture, cuplug.Out(y), cuplug.In(places), len(places))
    return y.tolist()


def wants(wanted, *args):
    np.testing.assert_array_equal(read(*args), wanted)


def check(module):
    """Read and write textures of each form."""
    line = np.arange(8, dtype=np.float32)
    texture = cuplug.Texture(line)
    wants([0, 0, 1, 7, 7], module, "read1", texture, [-3, 0.5, 1.9, 7.5, 99])
    texture.set(2 * line)
    wants([2], module, "read1", texture, [1.5])
    texture = cuplug.Texture(line, filter="linear", address="border")
    wants([0.5, 1, 1.75, 0, 3.5], module, "read1", texture, [1, 1.5, 2.25, -3, 8])
    texture = cuplug.Texture(line, address="wrap", normalized=True)
    wants([0, 0, 7], module, "read1", texture, [0.0625, 1.0625, -0.0625])
    texture = cuplug.Texture(line, address="mirror", normalized=True)
    wants([7, 0], module, "read1", texture, [1.0625, -0.0625])

    plane = np.arange(12, dtype=np.float32).reshape(3, 4)
    for values in (plane, cuplug.asarray(plane, device="cuda"), np.asfortranarray(plane)):
        texture = cuplug.Texture(values)
        wants([6, 8, 11], module, "read2", texture, [(2.5, 1.5), (0.5, 2.5), (99, 99)])
    wide = cuplug.asarray(np.repeat(plane, 2, axis=1), device="cuda")[:, ::2]
    wants([6], module, "read2", cuplug.Texture(wide), [(2.5, 1.5)])
    texture = cuplug.Texture(plane.astype(np.int32))
    wants([6], module, "read2i", texture, [(2.5, 1.5)], np.int32)
    solid = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    texture = cuplug.Texture(solid)
    wants([21], module, "read3", texture, [(1.5, 2.5, 1.5)])
    np.testing.assert_array_equal(texture.numpy(), solid)

    surface = cuplug.Texture(np.zeros((3, 4), np.float32))
    module["write2"][1, (4, 3)](surface.surface)
    np.testing.assert_array_equal(surface.numpy(), np.add.outer([0, 10, 20], [0, 1, 2, 3]))
    wants([12], module, "read2", surface, [(2.5, 1.5)])
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "float32"):
        for shape in ((5,), (3, 5), (2, 3, 5), (2, 3, 5, 4)):
            values = (np.arange(np.prod(shape)) % 100).reshape(shape).astype(dtype)
            texture = cuplug.Texture(values, channels=len(shape) == 4)
            assert (texture.shape, texture.dtype) == (shape, values.dtype)
            np.testing.assert_array_equal(texture.numpy(), values)
'''
exec(CHECKS)


def test_on_the_emulated_gpu(run_kernels):
    head = "from emulation import install_expressions\ninstall_expressions()"
    run_kernels(f"{head}\n{CHECKS}\ncheck(cuplug.compile({READ!r}, names={NAMES!r}))")


def test_what_textures_do_not_have(run_kernels):
    body = """
    plane = np.zeros((3, 4), np.float32)
    for keywords, part in (
        ({"filter": "cubic"}, "filter: got 'cubic', expected 'nearest' or 'linear'"),
        ({"address": 3}, "address: got 3, expected 'wrap' or 'clamp' or 'mirror' or 'border'"),
        ({"address": "wrap"}, "address: got 'wrap', expected it with normalized=True"),
        ({"floats": True}, "floats: got float32, expected integers of 8 or 16 bits"),
    ):
        raises(ValueError, "Texture: " + part, lambda: cuplug.Texture(plane, **keywords))
    raises(ValueError, "filter: got 'linear' of int16, expected floats=True",
           lambda: cuplug.Texture(plane.astype(np.int16), filter="linear"))
    cuplug.Texture(plane.astype(np.int16), filter="linear", floats=True)
    raises(TypeError, "Texture: got dtype float64, expected one of uint8", cuplug.Texture,
           np.zeros(3))
    for shape in ((), (0, 3), (1, 2, 3, 4)):
        x = np.zeros(shape, np.float32)
        raises(ValueError, "expected 1 to 3 dimensions", cuplug.Texture, x)
    for shape in ((3,), (3, 3)):
        raises(ValueError, "1, 2 or 4 channels",
               lambda: cuplug.Texture(np.zeros(shape, np.float32), channels=True))
    texture = cuplug.Texture(plane)
    assert repr(texture) == "<texture, float32, shape (3, 4), on cuda:0>"
    assert str(texture.device) == "cuda:0" and int(texture.handle) == texture.__index__()
    raises(ValueError, "set: got float32 of shape (4, 3), expected float32 of shape (3, 4)",
           texture.set, plane.T)
    raises(TypeError, "it was made before", texture.__init__, plane)
    f = cuplug.compile("__global__ void f(signed char x) {}")["f"]
    raises(ValueError, "f: argument 1: got <texture", f[1, 1], texture)
    """
    run_kernels(body)


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_on_a_gpu():
    need_nvrtc()
    check(cuplug.compile(READ, names=NAMES))  # noqa: F821


@pytest.mark.gpu
def test_a_texture_lives_until_kernels_are_done():
    need_nvrtc()
    module = cuplug.compile(READ, names=NAMES)
    places = cuplug.asarray(np.full(100_000, 3.5, np.float32), device="cuda")
    y = cuplug.asarray(np.zeros(100_000, np.float32), device="cuda")
    for _ in range(10):
        texture = cuplug.Texture(np.arange(8, dtype=np.float32))
        module["read1"][1, 1](texture, y, places, 100_000)
        del texture
        assert np.all(y.numpy() == 3)


@pytest.mark.gpu
def test_integers_as_floats_and_channels():
    need_nvrtc()
    source = """
    __global__ void f(cudaTextureObject_t t, float4 *y) { *y = tex2D<float4>(t, 1.5f, 0.5f); }
    """
    f = cuplug.compile(source)["f"]
    pixels = np.array([[[0, 0, 0, 0], [0, 51, 102, 255]]], np.uint8)
    y = np.empty(4, np.float32)
    f[1, 1](cuplug.Texture(pixels, channels=True, floats=True), cuplug.Out(y))
    np.testing.assert_allclose(y, [0, 0.2, 0.4, 1], atol=1e-6)

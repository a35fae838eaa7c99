# SPDX-License-Identifier: Apache-2.0
"""Modules without a GPU: PTX output, code that was compiled elsewhere, missing names, pickles.
Loading needs a GPU."""

import copy
import pickle
import shutil
import subprocess

import cuplug
import numpy
import pytest
from cuplug._source.kernels import make
from emulated_driver import need_nvrtc

SOURCE = """
template <int N> __global__ void scale(float *x, float factor) { x[threadIdx.x] *= N * factor; }
extern "C" __global__ void add(float *x, float y) { x[threadIdx.x] += y; }
__global__ void shift(float *x) { x[threadIdx.x] += 1; }
"""
NAMES = ["scale<4>"]
SYMBOLS = ["_Z5scaleILi4EEvPff", "_Z5shiftPf", "add"]


@pytest.fixture
def module():
    need_nvrtc()
    return cuplug.compile(SOURCE, names=NAMES, architecture="90")


def test_ptx_is_text_of_the_kernels_alone(module):
    assert ".target sm_90" in module.ptx
    assert all(f".entry {symbol}(" in module.ptx for symbol in SYMBOLS)
    assert "cuplug_jit" not in module.ptx
    assert module.image.startswith(b"\x7fELF")


def test_a_virtual_architecture_gives_ptx():
    need_nvrtc()
    module = cuplug.compile(SOURCE, names=NAMES, architecture="compute_80")
    assert b".target sm_80" in module.image
    assert module["scale<4>"].signature == "scale<4>(float *, float)"
    assert ".target sm_80" in module.ptx
    same = cuplug.compile(SOURCE, names=NAMES, architecture="sm_90")
    assert same is cuplug.compile(SOURCE, names=NAMES, architecture="90")
    with pytest.raises(
        cuplug.CompileError, match="architecture: got compute_33, expected one that"
    ):
        cuplug.compile(SOURCE, architecture="compute_33")


@pytest.mark.parametrize("form", ["cubin", "ptx", "path"])
def test_what_was_compiled_elsewhere(module, form, tmp_path):
    path = tmp_path / "mine.cubin"
    path.write_bytes(module.image)
    image = {"cubin": module.image, "ptx": module.ptx, "path": path}[form]
    loaded = cuplug.load_image(image, {"scale": SYMBOLS[0]})
    assert list(loaded) == ["scale", *SYMBOLS]
    assert loaded["scale"].symbol == SYMBOLS[0]
    assert loaded["add"].signature is None
    assert loaded["add"].prepare("float *, float").signature == "add(float *, float)"
    assert cuplug.load_image(image, {"scale": SYMBOLS[0]}) is loaded
    assert loaded.name == ("mine.cubin" if form == "path" else "<image>")
    if form == "ptx":
        assert loaded.ptx == module.ptx
    else:
        with pytest.raises(ValueError, match="ptx: got loaded machine code"):
            _ = loaded.ptx


def test_a_fatbin(tmp_path):
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("needs nvcc")
    (tmp_path / "a.cu").write_text(SOURCE)
    command = [nvcc, "-fatbin", "-arch=sm_90", "-o", "a.fatbin", "a.cu"]
    subprocess.run(command, cwd=tmp_path, check=True)
    loaded = cuplug.load_image(tmp_path / "a.fatbin", {"shift": SYMBOLS[1]})
    assert list(loaded) == ["shift"]
    assert loaded["shift"].symbol == SYMBOLS[1]


@pytest.mark.parametrize(
    ("image", "kind", "part"),
    [
        (b"some text", ValueError, "load_image: <image>: got b'some text', expected PTX, a cubin"),
        (b"\x7fELF" + bytes(60), ValueError, "got code for a CPU"),
        (7, TypeError, "load_image: image: got int, expected bytes, PTX as text, or a path"),
        ("no/such/file", FileNotFoundError, "load_image: image: No such file"),
    ],
)
def test_what_is_no_image(image, kind, part):
    with pytest.raises(kind) as caught:
        cuplug.load_image(image)
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("ad", "no kernel ad: did you mean add?"),
        (
            "scale<3>",
            "no kernel scale<3>, name it in names=: did you mean scale<4>?",
        ),
        ("nothing", "no kernel nothing: got scale<4>, add, shift, "),
    ],
)
def test_a_name_that_is_not_there_is_an_error_at_once(module, name, part):
    with pytest.raises(cuplug.NotFoundError) as caught:
        module[name]
    assert part in str(caught.value)
    assert name not in module


@pytest.mark.parametrize("name", ["get_function", "add"])
def test_kernels_are_no_attributes(module, name):
    with pytest.raises(
        AttributeError, match=rf"no attribute '{name}': a kernel is module\[\"f\"\]"
    ):
        getattr(module, name)
    assert copy.copy(module)["add"].name == "add"
    assert "<li><code>add</code></li>" in module._repr_html_()


def test_kernels_that_a_macro_makes_are_there():
    need_nvrtc()
    source = '#define MAKE(name) extern "C" __global__ void name(int *x) { *x = 1; }\nMAKE(made)'
    module = cuplug.compile(source, architecture="90")
    assert module["made"].types is None
    with pytest.raises(cuplug.NotFoundError, match="no kernel mad: did you mean made"):
        module["mad"]
    empty = cuplug.compile("__device__ int x;", architecture="90")
    with pytest.raises(cuplug.NotFoundError, match="no kernel f: it has no kernels"):
        empty["f"]


def again(x, monkeypatch):
    """Return the object that another process would unpickle."""
    data = pickle.dumps(x)
    assert b"cuplug._source.kernels" not in data  # only public names
    monkeypatch.setattr(make, "_modules", {})
    return pickle.loads(data)


def test_modules_and_kernels_are_pickled_by_what_they_were_made_of(module, monkeypatch):
    copy = again(module, monkeypatch)
    assert copy is not module
    assert (copy.image, list(copy)) == (module.image, list(module))
    kernel = again(module["scale<4>"], monkeypatch)
    assert (kernel.name, kernel.types) == ("scale<4>", module["scale<4>"].types)
    loaded = cuplug.load_image(module.image, {"scale": SYMBOLS[0]}, name="mine")
    assert again(loaded, monkeypatch).image == module.image
    declared = again(loaded["scale"].prepare("float *, float"), monkeypatch)
    assert declared.signature == "scale(float *, float)"
    alone = cuplug.Kernel(cuplug._source.kernels.function.Image(b"", "m"), "f", "f", None, 0)
    with pytest.raises(TypeError, match="f: it is of no module, as which it could be pickled"):
        pickle.dumps(alone)


@pytest.mark.gpu  # not with sanitizers: the driver's missing parameters are errors
@pytest.mark.parametrize("form", ["cubin", "ptx"])
def test_launches_of_loaded_code(form):
    need_nvrtc()
    module = cuplug.compile(SOURCE, names=NAMES)
    code = module.image if form == "cubin" else module.ptx
    loaded = cuplug.load_image(code, {"scale": SYMBOLS[0]})
    x = numpy.arange(8, dtype=numpy.float32)
    loaded["scale"].prepare("float *, float")[1, 8](cuplug.InOut(x), 0.5)
    loaded["add"][1, 8](cuplug.InOut(x), numpy.float32(1))
    numpy.testing.assert_array_equal(x, 2 * numpy.arange(8) + 1)
    copy = pickle.loads(pickle.dumps(loaded["add"]))
    copy[1, 8](cuplug.InOut(x), numpy.float32(1))
    numpy.testing.assert_array_equal(x, 2 * numpy.arange(8) + 2)


@pytest.mark.gpu
def test_ptx_that_the_driver_refuses():
    ptx = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f() { nonsense; }\n"
    with pytest.raises(cuplug.CudaError, match="the driver refuses it: ptxas"):
        cuplug.load_image(ptx)["f"][1, 1]()

# SPDX-License-Identifier: Apache-2.0
"""`cuplug.compile`: kernels, their arguments, variables, on the emulated driver. Tests
of the real driver are marked."""

import pytest
from emulated_driver import need_nvrtc


def test_arrays_in_and_out(run_kernels):
    body = """
    scale = cuplug.compile(SCALE, names=["scale<1>", "scale<4>"])["scale<4>"]
    x = np.arange(100, dtype=np.float32)
    scale[1, 32](InOut(x), 2.5, 100)
    np.testing.assert_array_equal(x, np.arange(100) * np.float32(2.5))
    d = cuplug.asarray(x)
    launch = scale[(1, 1), (32,)]
    launch(d, 2, len(x))
    launch(Foreign(d), 2, len(x))
    launch(d.data_ptr, np.float32(2), np.int64(50))
    np.testing.assert_array_equal(d.numpy(), np.where(np.arange(100) < 50, 8, 4) * x)
    strided = np.arange(200, dtype=np.float32)
    scale[1, 32](InOut(strided[::2]), 3, 100)
    np.testing.assert_array_equal(strided[::2], 3 * np.arange(0, 200, 2))
    np.testing.assert_array_equal(strided[1::2], np.arange(1, 200, 2))
    scale[0, 32](d, 2, 0)
    scale[1, 32](None, 2, 0)
    empty = np.empty(0, np.float32)
    scale[1, 32](InOut(empty), 2, 0)
    """
    run_kernels(body)


PRINTING = """
#include <stdio.h>
__global__ void HelloKernel() { printf("hello from thread %d\\n", threadIdx.x); }
"""
HELLO = f"""
import cuplug
cuplug.compile({PRINTING!r})["HelloKernel"][1, 3]()
cuplug.synchronize()
"""
PRINTED = "".join(f"hello from thread {k}\n" for k in range(3))


def test_a_kernel_that_prints(run_kernels):
    assert run_kernels(HELLO) == PRINTED


@pytest.mark.gpu
def test_a_kernel_that_prints_on_a_gpu(run_python):
    need_nvrtc()
    done = run_python(HELLO)
    assert (done.stdout, done.stderr) == (PRINTED, "")


def test_out_is_written_alone(run_kernels):
    body = """
    source = "__global__ void f(const int *x, int *y) { y[threadIdx.x] = x[threadIdx.x] + 1; }"
    f = cuplug.compile(source)["f"]
    y = np.zeros((2, 3), np.int32)
    f[1, 6](In(np.array([[1, 2, 3], [4, 5, 6]], np.int32)), Out(y.T))
    np.testing.assert_array_equal(y.T.ravel(), [2, 3, 4, 5, 6, 7])
    """
    run_kernels(body)


def test_scalars_of_every_type(run_kernels):
    types = {
        "bool": "True",
        "char": "-7",
        "unsigned char": "200",
        "short": "-30000",
        "unsigned short": "60000",
        "int": "-2**31",
        "unsigned int": "2**32 - 1",
        "long": "-2**63",
        "unsigned long long": "2**64 - 1",
        "float": "1.5",
        "double": "-1e300",
    }
    parameters = ", ".join(f"{name} a{k}" for k, name in enumerate(types))
    stores = " ".join(f"out[{k}] = (double)a{k};" for k in range(len(types)))
    body = f"""
    source = "__global__ void f(double *out, {parameters}) {{ {stores} }}"
    f = cuplug.compile(source)["f"]
    out = np.zeros({len(types)})
    values = [{", ".join(types.values())}]
    f[1, 1](Out(out), *values)
    np.testing.assert_array_equal(out, [float(value) for value in values])
    """
    run_kernels(body)


def test_narrow_floats(run_kernels):
    body = """
    import ml_dtypes
    from cuplug._source.compilers import kernel_types
    source = "__global__ void f(short a, unsigned char *out) { *(short *)out = a; }"
    f = cuplug.compile(source)["f"]
    real = f.types[0]
    for kind, size, dtype in ((4, 2, np.float16), (5, 2, ml_dtypes.bfloat16)):
        g = cuplug.Kernel(f_image := cuplug._source.kernels.function.Image(
            cuplug.compile(source).image, "f"), "f", f.symbol, (kind | size << 16, f.types[1]), 0)
        for value in (0.0, 1.5, -2.25, 3.14159, 1e-6):
            out = np.zeros(2, np.uint8)
            g[1, 1](value, Out(out))
            assert out.view(dtype)[0] == dtype(value)
        raises(ValueError, "out of range", g[1, 1], 1e39, Out(out))
    """
    run_kernels(body)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("argument", "kind", "part"),
    [
        ("1.5, x", "TypeError", "argument 1: got float 1.5, expected int"),
        ("'a', x", "TypeError", "argument 1: got str 'a', expected int"),
        ("True, x", "TypeError", "argument 1: got bool True, expected int"),
        ("2**31, x", "ValueError", "out of range, expected int: -2147483648 to 2147483647"),
        ("-2**80, x", "ValueError", "out of range"),
        ("1, x.numpy()", "TypeError", "got a NumPy array in host memory, float32, shape (4,)"),
        ("1, cuplug.asarray(np.zeros(4))", "TypeError", "argument 2: got Array, float64"),
        ("1, 'x'", "TypeError", "argument 2: got str 'x', expected float *"),
        ("1, 2.5", "TypeError", "argument 2: got float 2.5, expected float *"),
        ("1, In(np.zeros(3, np.int32))", "TypeError", "int32, shape (3,), expected float *"),
        ("In(np.zeros(3, np.int32)), x", "TypeError", "argument 1: got a NumPy array"),
        ("1", "TypeError", "f: got 1 arguments, expected 2: f(int, float *)"),
        ("1, Foreign(x, strides=(8,), shape=(2,))", "ValueError", "got a strided array"),
        ("1, Foreign(x, data=(x.data_ptr, True))", "ValueError", "got a read-only array"),
    ],
)
def test_wrong_arguments(run_kernels, argument, kind, part):
    body = f"""
    f = cuplug.compile("__global__ void f(int n, float *x) {{ x[0] = n; }}")["f"]
    x = cuplug.asarray(np.zeros(4, np.float32))
    raises({kind}, {part!r}, lambda: f[1, 1]({argument}))
    f[1, 1](7, x)
    assert x.numpy()[0] == 7
    """
    run_kernels(body)


@pytest.mark.parametrize(
    ("configuration", "kind", "part"),
    [
        ("1", "TypeError", "expected kernel[grid, block]"),
        ("1, 2.0", "TypeError", "block: got float, expected an int"),
        ("-1, 2", "ValueError", "grid: got -1"),
        ("1, (1, 1, 1, 1)", "ValueError", "block: got 4 sizes, expected 1 to 3"),
        ("1, 0", "ValueError", "block: got 0 threads, expected 1 to 1024"),
        ("1, 1025", "ValueError", "block: got 1025 in dimension x, expected at most 1024"),
        ("1, (32, 33)", "ValueError", "block: got 1056 threads, expected 1 to 1024"),
        ("(1, 65536), 1", "ValueError", "grid: got 65536 in dimension y, expected at most 65535"),
        ("1, 1, 300000", "ValueError", "shared: got 300000 bytes, expected at most 232432"),
        ("1, 1, 0, 'stream'", "TypeError", "f: stream: got str"),
    ],
)
def test_wrong_grids(run_kernels, configuration, kind, part):
    body = f"""
    f = cuplug.compile("__global__ void f() {{}}")["f"]
    raises({kind}, {part!r}, lambda: f[{configuration}]())
    f[1, 1]()
    """
    run_kernels(body)


def test_a_kernel_called_without_a_grid_says_how(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f(int *x) { *x = 1; }")["f"]
    try:
        f(np.zeros(1, np.int32))
    except TypeError as error:
        assert str(error) == "f: got a call without a grid, expected f[grid, block](...)"
    else:
        raise AssertionError("it was launched")
    """
    run_kernels(body)


def test_architectures_are_texts_or_numbers(run_kernels):
    body = """
    source = "__global__ void f(int *x) { *x = 1; }"
    by_number, by_text = (cuplug.compile(source, architecture=x) for x in (90, "90"))
    assert by_number is by_text
    """
    run_kernels(body)


def test_shared_memory_beyond_the_usual_is_opted_in_to(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f() {}")["f"]
    for shared in (1000, 100_000, 200_000, 50_000):
        f[1, 1, shared]()
        f[1, 1, shared, 1]()
    """
    run_kernels(body)


def test_structs(run_kernels):
    body = """
    source = '''
    struct part { int n; float *data; };
    __global__ void twice(part p) { if (threadIdx.x < p.n) p.data[threadIdx.x] *= 2; }
    __global__ void every(const part *parts) {
      const part &p = parts[blockIdx.x];
      if (threadIdx.x < p.n) p.data[threadIdx.x] *= 2;
    }
    '''
    module = cuplug.compile(source)
    part = np.dtype([("n", np.int32), ("data", np.uint64)], align=True)
    packed = np.dtype([("n", np.int32), ("data", np.uint64)])
    x = cuplug.asarray(np.ones(10, np.float32))
    for value in (np.array((3, x.data_ptr), part), np.array((3, x.data_ptr), part)[()]):
        module["twice"][1, 32](value)
    np.testing.assert_array_equal(x.numpy(), [4] * 3 + [1] * 7)
    parts = np.array([(3, x.data_ptr), (2, x.data_ptr + 4 * 5)], part)
    module["every"][2, 32](In(parts))
    np.testing.assert_array_equal(x.numpy(), [8] * 3 + [1, 1, 2, 2] + [1] * 3)
    bad = np.array((3, x.data_ptr), packed)
    raises(TypeError, "a structure of 12 bytes (n at 0, data at 4; numpy.dtype(..., align=True)",
           module["twice"][1, 32], bad[()])
    raises(TypeError, "expected struct of 16 bytes", module["twice"][1, 32], bad[()])
    raises(TypeError, "a structure of 12 bytes", module["every"][2, 32], In(bad.reshape(1)))
    raises(TypeError, "got int 3, expected struct of 16 bytes", module["twice"][1, 32], 3)
    """
    run_kernels(body)


def test_structs_with_complex_numbers(run_kernels):
    body = """
    source = '''
    struct complex { float real, imag; };
    struct point { int n; complex z; };
    __global__ void f(point p, const point *all, complex *sums) {
      sums[threadIdx.x].real = p.n + p.z.real + all[threadIdx.x].z.real;
      sums[threadIdx.x].imag = p.z.imag + all[threadIdx.x].z.imag;
    }
    '''
    point = np.dtype([("n", np.int32), ("z", np.complex64)], align=True)
    all = np.array([(0, 1 + 2j), (0, 3 + 4j)], point)
    sums = np.zeros(2, np.complex64)
    cuplug.compile(source)["f"][1, 2](np.array((5, 10 - 1j), point), In(all), Out(sums))
    np.testing.assert_array_equal(sums, [16 + 1j, 18 + 3j])
    """
    run_kernels(body)


def test_arrays_of_pointers(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f(float **x) { x[blockIdx.x][threadIdx.x] += 1; }")["f"]
    arrays = [cuplug.asarray(np.full(4, k, np.float32)) for k in range(3)]
    pointers = np.array([x.data_ptr for x in arrays], np.uint64)
    f[3, 4](In(pointers))
    f[3, 4](cuplug.asarray(pointers))
    for k, x in enumerate(arrays):
        np.testing.assert_array_equal(x.numpy(), [k + 2] * 4)
    """
    run_kernels(body)


def test_globals(run_kernels):
    body = """
    source = '''
    __constant__ float table[2][2];
    namespace mine { __device__ int counter; }
    __global__ void use(float *x) { x[threadIdx.x] = table[0][threadIdx.x]; mine::counter++; }
    '''
    module = cuplug.compile(source, names=["&mine::counter"])
    table = module.global_("table", "float32", (2, 2))
    table.set([[1, 2], [3, 4]])
    x = np.empty(2, np.float32)
    module["use"][1, 2](Out(x))
    np.testing.assert_array_equal(x, [1, 2])
    np.testing.assert_array_equal(table.numpy(), [[1, 2], [3, 4]])
    assert table.nbytes == 16
    assert module.global_("mine::counter", "int32").numpy() == 2
    module["use"][1, 2](table)
    assert module.global_("table").shape == (16,)
    raises(ValueError, "expected 16 bytes in all", module.global_, "table", "float64", 3)
    raises(cuplug.NotFoundError, "there is no variable nothing", module.global_, "nothing")
    raises(TypeError, "got dtype float64, expected float32", table.set, np.zeros(4))
    """
    run_kernels(body)


def test_several_gpus(run_kernels):
    body = """
    scale = cuplug.compile(SCALE, names=["scale<1>"])["scale<1>"]
    for device in (0, 1):
        x = cuplug.asarray(np.ones(8, np.float32), device=device)
        scale[1, 8](x, 3, 8)
        np.testing.assert_array_equal(x.numpy(), [3] * 8)
    y = cuplug.asarray(np.ones(8, np.float32), device=0)
    source = "__global__ void f(float *x, float *y) {}"
    raises(ValueError, "argument 2: got an array on cuda:0, expected one on cuda:1",
           cuplug.compile(source)["f"][1, 1], x, y)
    """
    run_kernels(body)


def test_occupancy_and_attributes(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f() {}")["f"]
    assert f.max_active_blocks(128) == 16
    assert f.suggest_block() == (1024, 264)
    assert f.attributes().max_threads == 1024
    assert f.function() == f.function(device="cuda:0") != 0
    """
    run_kernels(body)


def test_declared_types(run_kernels):
    """Kernels that the source's text does not show take sizes from the driver."""
    body = """
    from cuplug._source.kernels.function import Image
    module = cuplug.compile(SCALE, names=["scale<1>"])
    known = module["scale<1>"]
    kernel = cuplug.Kernel(Image(module.image, "m"), "scale", known.symbol, None, 0)
    x = cuplug.asarray(np.ones(8, np.float32))
    kernel[1, 8](x, np.float32(2), np.int64(8))
    raises(TypeError, "declare it with kernel.prepare", kernel[1, 8], x, 2.0, np.int64(8))
    raises(TypeError, "got float64 2.0", kernel[1, 8], x, np.float64(2), np.int64(8))
    kernel.prepare("float *x, float, int64_t n")[1, 8](x, 2, 8)
    np.testing.assert_array_equal(x.numpy(), [4] * 8)
    raises(ValueError, "got types of [8, 4, 4] bytes, expected [8, 4, 8]",
           kernel.prepare("float *, float, int")[1, 8], x, 2, 8)
    raises(ValueError, "expected a C type", kernel.prepare, "float *, whatever, int")
    raises(ValueError, "expected the compiled types", known.prepare, "float *, int, int64")
    """
    run_kernels(body)


def test_addresses_for_parameters_of_unknown_types(run_kernels):
    body = """
    from collections import namedtuple
    from cuplug._source.kernels.function import Image
    module = cuplug.compile(SCALE, names=["scale<1>"])
    symbol = module["scale<1>"].symbol
    kernel = cuplug.Kernel(Image(module.image, "m"), "scale", symbol, None, 0)
    x = cuplug.asarray(np.ones(8, np.float32))
    args = [x.data_ptr, np.float32(2), 8]
    kernel[1, 8](*args)
    own = cuplug.Stream()
    for stream in (0, own.handle, namedtuple("Stream", ["ptr"])(ptr=own.handle)):
        kernel[(1, 1), (8, 1), 0, stream](*args)
    cuplug.synchronize()
    np.testing.assert_array_equal(x.numpy(), [16] * 8)
    raises(ValueError, f"argument 1: got {1 << 64}, expected an int that 8 bytes hold",
           kernel[1, 8], 1 << 64, np.float32(2), 8)
    raises(ValueError, f"argument 2: got {x.data_ptr}, expected an int that 4 bytes hold",
           kernel[1, 8], x.data_ptr, x.data_ptr, 8)
    """
    run_kernels(body)


def test_staged_arguments_are_not_captured(run_kernels):
    body = """
    import ctypes
    scale = cuplug.compile(SCALE, names=["scale<1>"])["scale<1>"]
    x = np.ones(8, np.float32)
    for wrong, kind in ((np.zeros(3, ">f4"), TypeError), ([1.0], TypeError), (None, TypeError)):
        raises(kind, "InOut: got", InOut, wrong)
    frozen = np.zeros(3, np.float32)
    frozen.flags.writeable = False
    raises(ValueError, "InOut: got a read-only array", InOut, frozen)
    raises(TypeError, "In: got dtype object", In, [object()])
    """
    run_kernels(body)


def test_same_source_same_module(run_kernels):
    body = """
    a = cuplug.compile(SCALE, names=["scale<1>"])
    assert cuplug.compile(SCALE, names=["scale<1>"]) is a
    assert a["scale<1>"] is a["scale<1>"]
    assert cuplug.compile(SCALE, names=["scale<1>"], options=["-DX"]) is not a
    assert list(a) == ["scale<1>"] and "scale<1>" in a and len(a) == 1
    raises(cuplug.NotFoundError, "name it in names=", lambda: a["scale<2>"])
    raises(cuplug.NotFoundError, "no kernel nothing",
           lambda: a["nothing"][1, 1]())
    raises(TypeError, "options: got str", cuplug.compile, SCALE, "-DX")
    """
    run_kernels(body)


def test_a_sticky_error_names_the_kernel(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f(float *x) { x[0] = 1; }")["f"]
    x = cuplug.asarray(np.zeros(1, np.float32))
    raises(cuplug.CudaError, "f: launch: CUDA error 700", f[1, 1], x)
    raises(cuplug.CudaError, "first seen after operator f: restart it", f[1, 1], x)
    """
    run_kernels(body, FAKE_CUDA_FAIL="cuLaunchKernelEx:1:700")

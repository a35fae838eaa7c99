# SPDX-License-Identifier: Apache-2.0
"""Launches of compiled kernels with odd arguments, in threads and after errors, on the emulated
driver."""

import textwrap

import cuplug
import numpy as np
import pytest


def test_what_a_kernel_is_asked(run_kernels):
    body = """
    module = cuplug.compile("__global__ void f(float *x) {}")
    f = module["f"]
    raises(TypeError, "f: prepare: got int, expected a str", f.prepare, 5)
    raises(TypeError, "f: n_threads: got str, expected an int", f.max_active_blocks, "a")
    raises(ValueError, "f: n_threads: got 2147483648", f.max_active_blocks, 1 << 31)
    raises(ValueError, "f: shared: got -1, expected 0 to", f.suggest_block, -1)
    raises(TypeError, "global_: name: got int, expected a str", module.global_, 5)
    raises(TypeError, "In: got dtype object, expected numbers or structs", cuplug.In, None)
    """
    run_kernels(body)


def test_odd_arrays_on_the_gpu(run_kernels):
    body = """
    module = cuplug.compile(
        "__global__ void f(float *x) { if (x) x[0] = 1; } __global__ void g(void *x) {}")
    x = cuplug.asarray(np.zeros(8, np.float32))
    misaligned = Foreign(x, data=(x.data_ptr + 2, False), shape=(2,))
    raises(ValueError, "argument 1: got a misaligned array", module["f"][1, 1], misaligned)
    module["g"][1, 1](misaligned)
    for launch in (module["f"][1, 1], module["g"][1, 1]):
        raises(TypeError, "got a byte-swapped array", launch, Foreign(x, typestr=">f4"))
        for strides in ((5,), (8,), (-4,)):
            raises(ValueError, "argument 1: got a ", launch,
                   Foreign(x, strides=strides, shape=(2,)))
        launch(Foreign(x, strides=(400,), shape=(1,)))
        launch(Foreign(x, strides=(1, 3), shape=(0, 2), data=(0, False)))
    vectors = cuplug.compile("struct alignas(16) v { float x[4]; }; __global__ void f(v *x) {}")
    vectors["f"][1, 1](Foreign(x, data=(x.data_ptr + 16, False), shape=(4,)))
    raises(ValueError, "f: argument 1: got a misaligned array, expected an address that is a "
           "multiple of 16", vectors["f"][1, 1],
           Foreign(x, data=(x.data_ptr + 4, False), shape=(4,)))
    raises(TypeError, "f: argument 1: got Foreign with a mask, which would be lost",
           module["f"][1, 1], Foreign(x, mask=x))
    raises(TypeError, "ill-formed", module["f"][1, 1], Foreign(x, shape=None))

    class Memory:
        def __init__(self, ptr):
            self.ptr = ptr

    module["f"][1, 1](Memory(x.data_ptr))
    assert x.numpy()[0] == 1
    for address in (-1, 1 << 64):
        raises(ValueError, f"argument 1: got the address {address}", module["f"][1, 1],
               Memory(address))
    """
    run_kernels(body)


def test_written_arrays_must_not_overlap(run_kernels):
    body = """
    source = "__global__ void f(const int *x, int *y, int *z) { int k = threadIdx.x;"
    source += " y[k] = x[k] + 1; z[k] = x[k] + 2; }"
    launch = cuplug.compile(source)["f"][1, 4]
    x = np.arange(8, dtype=np.int32)
    for y, z in ((x, x), (x[:5], x[3:]), (x[::2], x[2::2]), (x[:4], x[3::-1])):
        for a, b in ((Out, Out), (InOut, Out), (InOut, InOut)):
            raises(ValueError, "f: argument 3: got memory of argument 2", launch,
                   In(x), a(y), b(z))
    np.testing.assert_array_equal(x, np.arange(8))
    both = np.zeros(8, np.int32)
    launch(In(x), Out(both[::2]), Out(both[1::2]))
    np.testing.assert_array_equal(both, [1, 2, 2, 3, 3, 4, 4, 5])
    launch(In(both), Out(both[:4]), Out(both[4:]))
    np.testing.assert_array_equal(both, [2, 3, 3, 4, 3, 4, 4, 5])
    """
    run_kernels(body)


def test_odd_arrays_of_the_host(run_kernels):
    body = """
    source = "__global__ void f(float *x, int n) { for (int i = 0; i < n; i++) x[i] += i; }"
    launch = cuplug.compile(source)["f"][1, 1]
    whole = np.zeros(4 * 12 + 1, np.uint8)
    arrays = [
        np.zeros((), np.float32),
        np.zeros((0, 3), np.float32),
        np.zeros((3, 4), np.float32, order="F"),
        np.zeros((3, 8), np.float32)[::-1, ::2],
        np.zeros((2, 3, 4), np.float32).transpose(2, 0, 1),
        whole[1:].view(np.float32),
        np.lib.stride_tricks.as_strided(np.zeros(3, np.float32), (3, 1), (4, 0)),
        np.zeros((3, 4), np.float32).view(np.recarray),
    ]
    for x in arrays:
        launch(InOut(x), x.size)
        np.testing.assert_array_equal(x, np.arange(x.size, dtype=np.float32).reshape(x.shape))
        launch(In(x), x.size)
        np.testing.assert_array_equal(x, np.arange(x.size, dtype=np.float32).reshape(x.shape))
    raises(ValueError, "Out: got a read-only array", Out, np.broadcast_to(np.float32(0), (3,)))
    for wrap in (In, Out, InOut):
        raises(TypeError, "got a masked array, whose mask would be lost", wrap,
               np.ma.masked_array(np.zeros(3, np.float32), [0, 1, 0]))
    x = np.zeros(3, np.float32)
    wrapped = Out(x)
    x.flags.writeable = False
    raises(ValueError, "f: argument 1: got a read-only array", launch, wrapped, 3)
    np.testing.assert_array_equal(x, np.zeros(3))
    """
    run_kernels(body)


def test_numpy_scalars(run_kernels):
    body = """
    import ml_dtypes
    source = "__global__ void f(double *out, double x, int n, bool yes)"
    source += " { out[0] = x; out[1] = n; out[2] = yes; }"
    launch = cuplug.compile(source)["f"][1, 1]
    out = np.zeros(3)
    reals = [np.float16, np.float32, np.float64, np.longdouble, np.int8, np.uint64,
             ml_dtypes.bfloat16]
    integers = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
    for real in reals:
        for integer in integers:
            launch(Out(out), real(3), integer(5), np.bool_(True))
            np.testing.assert_array_equal(out, [3, 5, 1])
            launch(Out(out), np.array(3, real), np.array(5, integer), np.array(False))
            np.testing.assert_array_equal(out, [3, 5, 0])
    wrong = [(np.complex64(1), 1, True), (1, np.float32(1), True), (1, np.bool_(1), True),
             (1, np.timedelta64(1, "s"), True), (np.str_("1"), 1, True),
             (1, 1, np.int8(1)), (np.bool_(1), 1, True), (np.zeros(1), 1, True),
             (1, np.datetime64(0, "s"), True)]
    for arguments in wrong:
        raises(TypeError, "f: argument ", launch, Out(out), *arguments)
    raises(ValueError, "out of range", launch, Out(out), 1, np.int64(2**31), True)
    raises(ValueError, "out of range", launch, Out(out), 1, np.uint64(2**64 - 1), True)
    """
    run_kernels(body)


def test_structs_are_copied_and_native(run_kernels):
    body = """
    source = "struct s { int a, b; }; __global__ void f(s x, int *out) { out[0] = x.a - x.b; }"
    launch = cuplug.compile(source)["f"][1, 1]
    out = np.zeros(1, np.int32)
    pairs = np.array([(5, 1), (7, 9)], [("a", "i4"), ("b", "i4")])
    launch(pairs[1], Out(out))
    assert out[0] == -2
    launch(np.array([5, 0, 3, 0], np.int32)[::2], Out(out))
    assert out[0] == 2
    launch(bytearray(b"\\1\\0\\0\\0\\0\\0\\0\\0"), Out(out))
    assert out[0] == 1
    swapped = pairs.astype([("a", ">i4"), ("b", ">i4")])
    for wrong in (swapped[0], swapped[:1], pairs, np.array([None]), b"1234567", 1.0):
        raises(TypeError, "f: argument 1: got ", launch, wrong, Out(out))
    """
    run_kernels(body)


def test_how_launches_are_made_and_called(run_kernels):
    body = """
    module = cuplug.compile("__global__ void f(int n) {}")
    f = module["f"]
    launch = f[1, 1]
    assert f[1, 1] is launch and f[[1], [1, 1]] is not None
    raises(TypeError, "f: got keywords, expected arguments by position", lambda: launch(n=1))
    raises(TypeError, "f: got keywords", lambda: launch(1, n=1))
    launch(*[1], **{})
    type(launch).__call__(launch, 1)
    for wrong in ((), (None, (1, 1)), (f, None), (1, (1, 1))):
        raises(TypeError, "", type(launch), *wrong)
        raises(TypeError, "", type(launch).__new__, type(launch), *wrong)
    raises(TypeError, "", cuplug.Kernel.__new__, cuplug.Kernel)
    raises(TypeError, "expected the name of a kernel", lambda: module[1])
    """
    run_kernels(body)


def test_variables_of_odd_dtypes(run_kernels):
    body = """
    source = "__device__ int v[4]; __global__ void f() { v[0] = 1; }"
    module = cuplug.compile(source)
    for dtype in (object, ">i4", "S0"):
        raises(TypeError, "v: got dtype ", module.global_, "v", dtype)
    for shape in ((-2, -2), (4, 0), 3, (2, 1)):
        raises(ValueError, "expected 16 bytes in all", module.global_, "v", "int32", shape)
    v = module.global_("v", "int32", np.int64(4))
    v.set([1, 2, 3, True])
    np.testing.assert_array_equal(v.numpy(), [1, 2, 3, 1])
    v.set(7)
    for lossy in (1.5, [1, 2, 3, 4.5], [1j] * 4):
        raises(TypeError, "v: got dtype ", v.set, lossy)
    np.testing.assert_array_equal(v.numpy(), [7] * 4)
    """
    run_kernels(body)


def test_without_arrays_the_stream_says_where(run_kernels):
    body = """
    import ctypes
    source = "__global__ void f(int n, int *out) { if (out) out[0] = n; }"
    f = cuplug.compile(source)["f"]
    driver = ctypes.CDLL("libcuda.so.1")
    context, stream = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 1) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    assert driver.cuCtxSetCurrent(None) == 0
    launch = f[1, 1, 0, stream.value]
    launch(1, None)
    out = np.zeros(1, np.int32)
    launch(3, Out(out))
    assert out[0] == 3
    launch(4, cuplug.asarray(out, device=1))
    raises(ValueError, "f: stream: got one of cuda:1, expected one of cuda:0", launch, 4,
           cuplug.asarray(out, device=0))
    """
    run_kernels(body)


@pytest.mark.parametrize("declared", [True, False])
def test_threads_use_a_kernel_for_the_first_time(run_kernels, declared):
    body = f"""
    import threading
    from cuplug._source.kernels.function import Image
    source = "__global__ void f(int *x, int n) {{ x[n] = n; }}"
    module = cuplug.compile(source)
    for _ in range(20):
        f = module["f"]
        types = f.types if {declared} else None
        f = cuplug.Kernel(Image(module.image, "m"), "f", f.symbol, types, 0)
        x = cuplug.asarray(np.zeros(8, np.int32))
        barrier = threading.Barrier(8)

        def work(k):
            barrier.wait()
            f[1, 1](x, np.int32(k))

        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        np.testing.assert_array_equal(x.numpy(), np.arange(8))
    """
    run_kernels(body)


def test_nothing_is_left_after_errors(run_kernels):
    """Memory on the GPU, references to the caller's arrays."""
    body = """
    f = cuplug.compile("__global__ void f(float *x, float *y, int n) {}")["f"]
    launch = f[1, 1]
    x, y = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    launch(InOut(x), InOut(y), 1)
    cuplug.synchronize()
    used = cuplug.memory_info()
    before = sys.getrefcount(x), sys.getrefcount(y)
    for _ in range(100):
        raises(TypeError, "f: argument 2", launch, InOut(x), In(np.zeros(3)), 1)
        raises(TypeError, "f: argument 3", launch, InOut(x), InOut(y), "1")
        raises(ValueError, "f: argument 2", launch, InOut(x), InOut(x), 1)
        raises(TypeError, "f: got 2 arguments", launch, InOut(x), y)
    cuplug.synchronize()
    assert cuplug.memory_info() == used
    assert (sys.getrefcount(x), sys.getrefcount(y)) == before
    """
    run_kernels(body)


def test_errors_of_staged_arguments(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f(float *x, float *y) { x[0] = y[0] = 1; }")["f"]
    launch = f[1, 1]
    small, large = np.zeros(10, np.float32), np.zeros(1 << 20, np.float32)
    raises(MemoryError, "f: argument 2: ", launch, InOut(small), InOut(large))
    assert small[0] == 0
    launch(InOut(small), InOut(small.copy()))
    assert small[0] == 1
    """
    run_kernels(body, FAKE_CUDA_MEMORY_BYTES="1000000")


def test_errors_of_the_kernel_show_when_results_are_copied(run_kernels):
    body = """
    f = cuplug.compile("__global__ void f(float *x) { x[0] = 1; }")["f"]
    x = np.zeros(1 << 20, np.float32)
    for _ in range(2):
        raises(cuplug.CudaError, "first seen after operator f: restart it", f[1, 1], InOut(x))
    """
    run_kernels(body, FAKE_CUDA_FAIL="cuMemcpyDtoHAsync:1:700")


FAULTS = """
    pick = cuplug.operator(
        "pick(x: T[n], index: int64[m]) -> y: T[m] where T: float32",
        arguments="x, index, y, n, m, fault", threads="m",
        cuda='''
        __global__ void pick(const float *x, const int64_t *index, float *y, int64_t n, int64_t m,
                             cuplug_fault *fault) {
          int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
          if (k < m && (index[k] < 0 || index[k] >= n))
            return cuplug_fault_index(fault, 1, k, index[k], 0, n);
          if (k < m) y[k] = x[index[k]];
        }''')
    module = cuplug.compile('''
        __global__ void add(const float *x, const float *y, float *z) { *z = *x + *y; }
        __global__ void same(const float *x, float *y) { *y = *x; }''')
    add, same = module["add"][1, 1], module["same"][1, 1]

    def fault_of(call):
        try:
            call()
        except IndexError as error:
            return str(error)

    def on_gpu(*values, dtype="float32"):
        return cuplug.asarray(np.array(values, dtype), device="cuda")

    def bad(index):
        result = pick(x, on_gpu(index, dtype="int64"))
        assert f"index {index} at" in fault_of(cuplug.synchronize)
        return result

    x = on_gpu(5, 6, 7)
    good, wrong, other = pick(x, on_gpu(2, dtype="int64")), bad(1000), bad(2000)
    for first, second in ((good, wrong), (wrong, good), (wrong, wrong)):
        result, again = on_gpu(0), on_gpu(0)
        add(first, second, result)
        same(result, again)
        for array in (result, again, wrong, result):
            text = "pick: index: index 1000 at position 0 is out of bounds for size 3"
            assert fault_of(array.numpy) == text, array
        host = np.zeros(1, np.float32)
        assert fault_of(lambda: same(result, Out(host))) == text
    add(wrong, other, result)
    assert "index 1000" in fault_of(result.numpy) or "index 2000" in fault_of(result.numpy)
    result = on_gpu(0)
    add(good, pick(x, on_gpu(0, dtype="int64")), result)
    assert result.numpy() == 12
    same(good, Out(host))
    assert host == 7
    same(good, wrong)  # not known to write all of it
    assert fault_of(wrong.numpy) == text
    wrong.set(np.ones(1, np.float32))
    same(wrong, result)
    assert result.numpy() == 1
"""


def test_launches_pass_faults_on(run_kernels):
    run_kernels("    from emulation import install_expressions; install_expressions()" + FAULTS)


@pytest.mark.gpu
def test_launches_on_a_gpu_pass_faults_on():
    exec(textwrap.dedent(FAULTS), {"np": np, "cuplug": cuplug, "Out": cuplug.Out})

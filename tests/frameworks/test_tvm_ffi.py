# SPDX-License-Identifier: Apache-2.0
"""The released package apache-tvm-ffi: its modules, and operators as its functions."""

import gc
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._engine.lookup.tvm_modules import describe_file
from cuplug._integration.author.lock_file import read_lock, write_lock
from cuplug._integration.commands.bandwidth import find_operator
from places import FIXTURES

tvm_ffi = pytest.importorskip("tvm_ffi")
cuplug_tvm = pytest.importorskip("cuplug.tvm_ffi")


def compile_module(path, *flags):
    """Compile the module in C++."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    package = Path(tvm_ffi.__file__).parent
    command = [compiler, "-std=c++17", "-shared", "-fPIC", f"-I{package}/include", *flags]
    command += [str(FIXTURES / "tvm_cpp.cc"), "-o", str(path), f"-L{package}/lib", "-ltvm_ffi"]
    subprocess.run(command, check=True)
    path.chmod(0o644)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Return the path of a module in C++."""
    return compile_module(tmp_path_factory.mktemp("module") / "module.so")


@pytest.fixture(scope="module")
def module(path):
    return cuplug.load(path)


def test_arrays(module):
    x, y = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    assert module.add_one(x, y) is None
    np.testing.assert_array_equal(y, x + 1)
    given = tvm_ffi.from_dlpack(x)
    module.add_one(y, given)
    np.testing.assert_array_equal(x, y + 1)


def test_tensors_of_tvm_ffi_are_passed_as_they_are(module):
    x = np.arange(4, dtype="float32")
    given, result = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(np.zeros(4, "float32"))
    for k in range(3):  # from the second call on, nothing but the object is read
        x[:] = k
        assert module.add_one(given, result) is None
        np.testing.assert_array_equal(np.from_dlpack(result), np.full(4, k + 1))
        with pytest.raises(ValueError, match="add_one: sizes differ"):
            module.add_one(given, tvm_ffi.from_dlpack(np.zeros(3, "float32")))
        assert module.shape(given) == (4,)
    same = module.identity(given)
    assert np.shares_memory(np.from_dlpack(same), x)
    before = sys.getrefcount(x)
    module.keep(given)
    del given, same
    gc.collect()
    assert sys.getrefcount(x) == before
    module.forget()
    assert sys.getrefcount(x) == before - 1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, x: m.add_one(x, x[1:]), ValueError, "add_one: sizes differ"),
        (lambda m, x: m.odd(), cuplug.PluginError, "odd: OddError: something odd"),
        (lambda m, x: m.add_one(x), TypeError, "add_one: .* Expected 2 but got 1"),
        (lambda m, x: m.add_one(1, x), TypeError, "add_one: .* but got `int`"),
    ],
)
def test_errors(module, call, error, text):
    with pytest.raises(error, match=text):
        call(module, np.zeros(3, "float32"))


def test_owned_tensors(module):
    x = np.zeros(3, "float32")
    before = sys.getrefcount(x)
    assert module.identity(x) is x
    module.keep(x)
    assert sys.getrefcount(x) == before + 1
    module.forget()
    assert sys.getrefcount(x) == before


def test_tensors_that_the_module_allocates_are_of_cuplug(module):
    made = module.filled(np.zeros((2, 3), "float32"), 7.0)
    assert type(made) is np.ndarray
    np.testing.assert_array_equal(made, np.full((2, 3), 7, "float32"))
    own = module.filled(cuplug.array_api.zeros(2, dtype="float32", device="cpu"), 1.0)
    assert type(own) is cuplug.Array


def test_other_values(module):
    x = np.zeros((2, 3), "float32")
    assert module.greet("wörld", 3, True) == "hello wörld 3 yes"
    assert module.total([x, x]) == 12
    assert module.total([]) == 0
    assert module.first_and_text((3, 4)) == (3, "a text of more than seven bytes")
    assert module.shape(x) == (2, 3)


def test_lists_release_their_arrays(module):
    x = np.zeros(2, "float32")
    before = sys.getrefcount(x)
    module.total([x, x])
    gc.collect()
    assert sys.getrefcount(x) == before


def test_described(path, tmp_path):
    copy = Path(shutil.copy(path, tmp_path / "described.so"))
    copy.with_suffix(".cuplug.toml").write_text(
        '[plus_one]\nfunction = "add_one"\n'
        'signature = "plus_one(x: float32[n], k: int32[m]) -> y: float32[m]"\narguments = "x, y"\n'
    )
    plus_one = cuplug.load(copy).plus_one
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(plus_one(x, np.zeros(3, "int32")), x + 1)
    with pytest.raises(ValueError, match="plus_one: sizes differ"):
        plus_one(x, np.zeros(2, "int32"))


def test_a_module_with_a_context(tmp_path):
    module = cuplug.load(compile_module(tmp_path / "context.so", "-DCONTEXT"))
    assert module.has_context() is True
    x = np.zeros(3, "float32")
    module.add_one(x, x)
    assert x.tolist() == [1, 1, 1]
    with pytest.raises(cuplug.PluginError, match="odd: OddError: something odd"):
        module.odd()


def test_the_lock_file_has_the_runtime_library(path, tmp_path):
    lock = tmp_path / "lock"
    write_lock(str(lock), [describe_file(str(path), "loaded")], "1")
    assert set(read_lock(str(lock))[0]) >= {"module.so", "libtvm_ffi.so"}


def test_a_bench_requires_operators(path):
    with pytest.raises(cuplug.PluginError, match="a tvm-ffi module without a description"):
        find_operator(str(path))


def test_exceptions_of_callbacks_pass_through(module):
    def fail():
        raise KeyError("of the callback")

    tvm_ffi.register_global_func("cuplug.test.fail", fail, override=True)
    with pytest.raises(KeyError, match="of the callback"):
        module.call_global("cuplug.test.fail")


def test_operators_as_functions():
    gather = cuplug_tvm.function(cuplug.ops.gather, "cuplug.test.gather")
    x, index = np.float32([10, 20, 30]), np.int64([2, 0])
    tensors = tvm_ffi.from_dlpack(x), tvm_ffi.from_dlpack(index)
    np.testing.assert_array_equal(np.from_dlpack(gather(*tensors)), [30, 10])
    out = np.zeros(2, "float32")
    into = cuplug_tvm.function(cuplug.ops.gather, n_outputs=1)
    assert into(*tensors, tvm_ffi.from_dlpack(out)) is None
    np.testing.assert_array_equal(out, [30, 10])
    found = tvm_ffi.get_global_func("cuplug.test.gather")
    np.testing.assert_array_equal(np.from_dlpack(found(*tensors)), [30, 10])
    with pytest.raises(IndexError, match="gather: "):
        gather(tensors[0], tvm_ffi.from_dlpack(np.int64([5])))
    with pytest.raises(TypeError, match="operator: got int, expected cuplug.Operator"):
        cuplug_tvm.function(1)
    with pytest.raises(ValueError, match="n_outputs: got 2, expected 0 or 1"):
        cuplug_tvm.function(cuplug.ops.gather, n_outputs=2)


def tensor_of(values, dtype):
    return tvm_ffi.from_dlpack(np.array(values, dtype))


def test_functions_take_numbers_defaults_and_choices():
    values = tensor_of([1.0, 2, 3], "float32")
    leaky = cuplug_tvm.function(cuplug.ops.leaky_relu)
    negative = tensor_of([-2.0, 4], "float32")
    np.testing.assert_array_equal(np.from_dlpack(leaky(negative, 0.5)), [-1, 4])
    np.testing.assert_array_equal(
        np.from_dlpack(leaky(negative)), cuplug.ops.leaky_relu(np.float32([-2, 4]))
    )
    gather = cuplug_tvm.function(cuplug.ops.gather)
    index = tensor_of([-1, 9], "int64")
    np.testing.assert_array_equal(np.from_dlpack(gather(values, index, "clip")), [1, 3])
    np.testing.assert_array_equal(np.from_dlpack(gather(values, index, "wrap")), [3, 1])
    with pytest.raises(ValueError, match="gather: mode: got"):
        gather(values, index, "other")
    with pytest.raises(TypeError, match="gather"):
        gather(values)
    with pytest.raises(TypeError, match="gather"):
        gather(values, index, "clip", 1, 2)


def test_functions_of_several_outputs():
    topk = cuplug_tvm.function(cuplug.ops.topk)
    values, indices = topk(tensor_of([1.0, 5, 3], "float32"), 2)
    assert np.from_dlpack(values).tolist() == [5, 3]
    assert np.from_dlpack(indices).tolist() == [1, 2]
    into = cuplug_tvm.function(cuplug.ops.topk, n_outputs=2)
    made = tensor_of([0, 0], "float32"), tensor_of([0, 0], "int64")
    assert into(tensor_of([1.0, 5, 3], "float32"), 2, *made) is None
    assert np.from_dlpack(made[0]).tolist() == [5, 3]
    assert np.from_dlpack(made[1]).tolist() == [1, 2]


def test_results_of_functions_outlive_them():
    relu = cuplug_tvm.function(cuplug.ops.relu)
    found = [relu(tensor_of(np.full(1000, k), "float32")) for k in range(50)]
    del relu
    gc.collect()
    for k, x in enumerate(found):
        np.testing.assert_array_equal(np.from_dlpack(x), np.full(1000, k))


def test_functions_on_many_threads():
    relu = cuplug_tvm.function(cuplug.ops.relu)
    x = tensor_of(np.arange(-500, 500), "float32")
    with ThreadPoolExecutor(8) as pool:
        for y in pool.map(relu, [x] * 200):
            np.testing.assert_array_equal(np.from_dlpack(y), np.arange(-500, 500).clip(0))


def test_functions_take_arrays_that_are_empty_or_have_no_dimension():
    relu = cuplug_tvm.function(cuplug.ops.relu)
    assert np.from_dlpack(relu(tensor_of([], "float32"))).shape == (0,)
    assert np.from_dlpack(relu(tensor_of(-3, "float32"))).tolist() == 0


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "bool"])
def test_tensors_of_tvm_ffi_are_arrays(dtype):
    x = np.ones((4, 6), dtype)[::2, ::3]
    given = tvm_ffi.from_dlpack(x)
    for found in (cuplug.asarray(given), cuplug.asarray(given).numpy()):
        assert found.shape == (2, 2)
    np.testing.assert_array_equal(cuplug.asarray(given).numpy(), x)
    index = np.int64([1])
    np.testing.assert_array_equal(np.from_dlpack(cuplug.ops.gather(given, index)), x[1:])


def test_borrowed_tensors_of_tvm_ffi_are_arrays():
    """Tensors that a callback receives may have no object."""
    seen = []
    function = tvm_ffi.convert(lambda x: seen.append(cuplug.asarray(x).numpy().copy()))
    function(np.float32([1, 2]))
    function(tensor_of([3, 4], "float32"))
    assert [x.tolist() for x in seen] == [[1, 2], [3, 4]]


def test_python_callbacks_may_keep_arrays(module):
    kept = []
    tvm_ffi.register_global_func("cuplug.test.keep", kept.append, override=True)
    x = np.arange(3, dtype="float32")
    before = sys.getrefcount(x)
    for _ in range(3):
        module.call_global("cuplug.test.keep", x)
        assert sys.getrefcount(x) == before + 1
        np.testing.assert_array_equal(np.from_dlpack(kept[0]), x)
        kept.clear()
        gc.collect()
        assert sys.getrefcount(x) == before


def test_modules_call_operators(module):
    cuplug_tvm.function(cuplug.ops.relu, "cuplug.test.relu")
    x = np.float32([-1, 2])
    assert module.call_global("cuplug.test.relu", x).tolist() == [0, 2]


@pytest.mark.gpu
def test_on_the_stream_of_the_caller(module):
    torch = pytest.importorskip("torch")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        assert module.stream(torch.zeros(2, device="cuda")) == side.cuda_stream
    x = torch.arange(3.0, device="cuda")
    made = module.identity(x)
    assert made is x


@pytest.mark.gpu
def test_operators_on_the_stream_of_tvm_ffi():
    torch = pytest.importorskip("torch")
    relu = cuplug_tvm.function(cuplug.ops.relu)
    x = torch.tensor([-1.0, 2.0], device="cuda")
    with tvm_ffi.use_torch_stream(torch.cuda.stream(torch.cuda.Stream())):
        y = relu(x)
    torch.cuda.synchronize()
    assert torch.from_dlpack(y).tolist() == [0, 2]

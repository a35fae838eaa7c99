# SPDX-License-Identifier: Apache-2.0
"""The headers that stand for the standard library in code for NVRTC, which needs no GPU."""

import os

import cuplug
import numpy as np
import pytest
from cuplug.compilers import nvrtc
from emulated_driver import need_nvrtc

HEADERS = sorted(
    os.path.relpath(os.path.join(folder, name), top)
    for top in (nvrtc.STANDARD_C, nvrtc.STANDARD_CPP)
    for folder, _, names in os.walk(top)
    for name in names
)

# What stands in one header each, said as tutorials say it.
USES = {
    "algorithm": "*x = std::max(*x, 3);",
    "array": "std::array<int, 2> a{1, 2}; *x = a[1];",
    "cassert": "assert(*x);",
    "climits": "*x = INT_MAX;",
    "cmath": "*x = (int)std::sqrt(2.0f);",
    "complex": "std::complex<float> z(1, 2); *x = (int)z.imag();",
    "cstdint": "std::uint8_t a = 3; int64_t b = a; *x = (int)b;",
    "cstdio": 'std::printf("%d", *x);',
    "functional": "*x = std::plus<int>()(*x, 1);",
    "limits": "*x = std::numeric_limits<int>::max();",
    "stdint.h": "uint64_t a = 3; *x = (int)a;",
    "stdio.h": 'printf("%d", *x);',
    "tuple": "auto t = std::make_tuple(1, 2.0f); *x = std::get<0>(t);",
    "type_traits": "static_assert(std::is_same<std::remove_const_t<const int>, int>::value);",
    "utility": "std::pair<int, int> p(1, 2); *x = std::move(p.first);",
}

SUM = """
__global__ void sum(const int *x, int *y) {
  typedef cub::BlockReduce<int, 128> reduce;
  __shared__ typename reduce::TempStorage storage;
  int total = reduce(storage).Sum(x[threadIdx.x]);
  if (!threadIdx.x) *y = total;
}
"""
UNIFORM = """
#include <curand_kernel.h>
__global__ void uniform(float *x) {
  curandStatePhilox4_32_10_t state;
  curand_init(7, threadIdx.x, 0, &state);
  x[threadIdx.x] = curand_uniform(&state);
}
"""


@pytest.fixture(autouse=True)
def there_is_a_compiler():
    need_nvrtc()
    if len(nvrtc.find().include) < 3:
        pytest.skip("CUDA's headers are not here")


def test_cuda_headers_without_those_of_its_compiler(tmp_path, monkeypatch):
    """As CUDA's packages for Python have them: crt/ is in one of its own, which may be missing."""
    compiler = nvrtc.find()
    *own, runtime = compiler.include[:4]
    for name in os.listdir(runtime):
        if name != "crt":
            (tmp_path / name).symlink_to(os.path.join(runtime, name))
    without = nvrtc.Compiler(compiler.path, (*own, str(tmp_path), *compiler.include[4:]))
    monkeypatch.setattr(nvrtc, "find", lambda: without)
    call = "cudaGridDependencySynchronize();"
    source = f"#include <cuda_device_runtime_api.h>\n__global__ void f() {{ {call} }}"
    assert list(cuplug.compile(source, architecture="90")) == ["f"]


@pytest.mark.parametrize("header", USES)
def test_what_tutorials_include(header):
    source = f"#include <{header}>\n__global__ void f(int *x) {{ {USES[header]} }}"
    assert list(cuplug.compile(source, architecture="90")) == ["f"]


def test_all_at_once():
    lines = "".join(f"#include <{header}>\n" for header in HEADERS)
    module = cuplug.compile(f"{lines}__global__ void f(int *x) {{}}", architecture="90")
    assert list(module) == ["f"]


def test_headers_of_ones_own_come_first(tmp_path):
    (tmp_path / "algorithm").write_text("#define MINE 3\n")
    source = "#include <algorithm>\n__global__ void f(int *x) { *x = MINE; }"
    assert "f" in cuplug.compile(source, [f"-I{tmp_path}"], architecture="90")


def needs_curand():
    if not any(os.path.exists(f"{x}/curand_kernel.h") for x in nvrtc.find().include):
        pytest.skip("cuRAND's headers are not here")


@pytest.mark.parametrize("header", ["cub/cub.cuh", "cub/block/block_reduce.cuh"])
def test_algorithms_of_blocks(header):
    assert list(cuplug.compile(f"#include <{header}>\n{SUM}", architecture="90")) == ["sum"]


def test_random_numbers_of_curand():
    needs_curand()
    assert list(cuplug.compile(UNIFORM, architecture="90")) == ["uniform"]


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_algorithms_of_blocks_on_a_gpu():
    x, y = np.arange(128, dtype=np.int32), np.zeros(1, np.int32)
    cuplug.compile(f"#include <cub/cub.cuh>\n{SUM}")["sum"][1, 128](cuplug.In(x), cuplug.Out(y))
    assert y[0] == x.sum()


@pytest.mark.gpu
def test_random_numbers_of_curand_on_a_gpu():
    needs_curand()
    x = np.zeros(128, np.float32)
    cuplug.compile(UNIFORM)["uniform"][1, 128](cuplug.Out(x))
    assert np.unique(x).size > 120
    assert ((x > 0) & (x <= 1)).all()

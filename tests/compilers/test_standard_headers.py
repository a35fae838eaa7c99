# SPDX-License-Identifier: Apache-2.0
"""The headers that replace the standard library in code for NVRTC, which needs no GPU."""

import os
import re

import cuplug
import numpy as np
import pytest
from cuplug._source.compilers import nvrtc
from cuplug._source.compilers.program import compile_program
from emulated_driver import need_nvrtc

HEADERS = sorted(
    os.path.relpath(os.path.join(folder, name), top)
    for top in (nvrtc.STANDARD_C, nvrtc.STANDARD_CPP)
    for folder, _, names in os.walk(top)
    for name in names
)

# Code for one header each, as in tutorials.
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

# Headers that replace CUDA's in less time, with their macros.
_MACROS = {
    "stdint.h": """{INT,INT_LEAST,INT_FAST}{8,16,32,64}_{MIN,MAX} {INT,UINT}{8,16,32,64}_C(3)
        {UINT,UINT_LEAST,UINT_FAST}{8,16,32,64}_MAX {INTPTR,INTMAX,PTRDIFF}_{MIN,MAX}
        {UINTPTR,UINTMAX,SIZE}_MAX {INTMAX,UINTMAX}_C(3)""",
    "limits.h": """CHAR_BIT {SCHAR,CHAR,SHRT,INT,LONG,LLONG}_{MIN,MAX}
        {UCHAR,USHRT,UINT,ULONG,ULLONG}_MAX""",
    "math.h": "FP_{NAN,INFINITE,ZERO,SUBNORMAL,NORMAL} INFINITY",
    "float.h": """{FLT,DBL}_{MANT_DIG,DIG,DECIMAL_DIG,MIN_EXP,MAX_EXP,MIN_10_EXP,MAX_10_EXP,MIN,MAX}
        {FLT,DBL}_{EPSILON,TRUE_MIN,HAS_SUBNORM} FLT_{RADIX,ROUNDS,EVAL_METHOD} DECIMAL_DIG""",
}
THEIRS = {"stdint.h": "cstdint", "limits.h": "climits", "math.h": "cmath", "float.h": "cfloat"}
TYPES = [
    f"{sign}int{kind}_t"
    for sign in ("", "u")
    for kind in [f"{k}{n}" for k in ("", "_least", "_fast") for n in (8, 16, 32, 64)]
    + ["ptr", "max"]
]

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
    if nvrtc.find().include[-1] == nvrtc.STANDARD_CPP:
        pytest.skip("CUDA's headers are not here")


def test_cuda_headers_without_those_of_its_compiler(tmp_path, monkeypatch):
    """As in CUDA's Python packages: crt/ is in a separate one, which may be missing."""
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


@pytest.mark.sample(5)
@pytest.mark.parametrize("header", USES)
def test_what_tutorials_include(header):
    source = f"#include <{header}>\n__global__ void f(int *x) {{ {USES[header]} }}"
    assert list(cuplug.compile(source, architecture="90")) == ["f"]


@pytest.mark.slow
def test_all_at_once():
    lines = "".join(f"#include <{header}>\n" for header in HEADERS)
    module = cuplug.compile(f"{lines}__global__ void f(int *x) {{}}", architecture="90")
    assert list(module) == ["f"]


def test_headers_of_ones_own_come_first(tmp_path):
    (tmp_path / "algorithm").write_text("#define MINE 3\n")
    source = "#include <algorithm>\n__global__ void f(int *x) { *x = MINE; }"
    assert "f" in cuplug.compile(source, [f"-I{tmp_path}"], architecture="90")


def spelled_out(text: str) -> list[str]:
    """Expand braces like a shell."""
    braces = re.search(r"\{([^}]*)\}", text)
    if not braces:
        return [text]
    choices = [text.replace(braces[0], each, 1) for each in braces[1].split(",")]
    return [each for choice in choices for each in spelled_out(choice)]


def macros(header: str) -> dict[str, str]:
    """Return the names and macros of a header, for comparison."""
    uses = [use for text in _MACROS[header].split() for use in spelled_out(text)]
    return {use.partition("(")[0]: use for use in uses}


def constants(header: str, name: str) -> str:
    """Return a struct with the values of a header's macros, if it has any."""
    lines = [
        f"#ifdef {macro}\nstatic constexpr auto {macro}_ = {use};\n#endif"
        for macro, use in macros(header).items()
    ]
    return "\n".join([f"struct {name} {{", *lines, "};"])


def log_of(*lines: str) -> str:
    """Return NVRTC's log for lines that it accepts."""
    compiler = nvrtc.find()
    options = ["--std=c++17", *(f"-I{folder}" for folder in compiler.include)]
    source = "\n".join([*lines, "__global__ void f(int *x) {}"])
    return compile_program(compiler.path, source, "f.cu", "90", options, [], {}, False)[3]


@pytest.mark.sample(4)
@pytest.mark.parametrize("header", THEIRS)
def test_macros_are_those_of_cuda(header):
    """With the same values and types, in either order, and without a warning."""
    own, theirs = f"#include <{header}>", f"#include <cuda/std/{THEIRS[header]}>"
    for first, second in ((own, theirs), (theirs, own)):
        checks = []
        for macro, use in macros(header).items():
            before, after = f"before::{macro}_", f"after::{macro}_"
            same = f"cuda::std::is_same_v<decltype({before}), decltype({after})>"
            text = f"{before} == {after} && {same}"
            if header == "float.h" and first == theirs:  # the header of CUDA 13.0 has none
                text = f"{after} == {use}"
            checks.append(f'static_assert({text}, "{macro}");')
        structs = [first, constants(header, "before"), second, constants(header, "after")]
        assert log_of("#include <cuda/std/type_traits>", *structs, *checks) == ""


def test_types_are_those_of_cuda():
    same = "static_assert(cuda::std::is_same_v<::{0}, cuda::std::{0}>);"
    in_std = "static_assert(cuda::std::is_same_v<::{0}, std::{0}>);"
    checks = [line.format(each) for each in TYPES for line in (same, in_std)]
    own, theirs = ["#include <stdint.h>", "#include <cstdint>"], ["#include <cuda/std/cstdint>"]
    for headers in (own + theirs, theirs + own):
        assert log_of(*headers, "#include <cuda/std/type_traits>", *checks) == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    ["cub/cub.cuh", "cuda/std/limits", "cuda/std/cstddef", "cuda/std/complex", "cuda_fp16.h"],
)
def test_beside_headers_of_cuda(other):
    """In either order, without a warning."""
    own = [each for each in HEADERS if each.endswith(".h") and "/" not in each]
    own = [f"#include <{each}>" for each in (*own, "cstdint", "climits", "cfloat", "cassert")]
    for headers in ([*own, f"#include <{other}>"], [f"#include <{other}>", *own]):
        assert log_of(*headers) == ""


@pytest.mark.parametrize("header", sorted(nvrtc.LIGHT))
def test_light_headers_need_none_of_cuda(header):
    own = [f"-I{folder}" for folder in (nvrtc.STANDARD_C, nvrtc.STANDARD_CPP)]
    use = {"assert.h": "assert(*x);", "math.h": "*x = sqrtf(2.0f) < INFINITY;"} | {
        **{"stddef.h": "struct s { int a, b; }; *x = offsetof(s, b);", "float.h": "*x = FLT_DIG;"},
        **{"stdlib.h": "free(malloc(4));", "string.h": "memset(x, 0, 4);"},
    }
    body = use.get(header) or USES.get(header, "")
    source = f"#include <{header}>\n__global__ void f(int *x) {{ {body} }}"
    asked = (source, "f.cu", "90", ["--minimal", *own], ["f"], {}, False)
    assert compile_program(nvrtc.find().path, *asked)[3] == ""


def needs_curand():
    if not any(os.path.exists(f"{x}/curand_kernel.h") for x in nvrtc.find().include):
        pytest.skip("cuRAND's headers are not here")


@pytest.mark.sample(2)
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


@pytest.mark.parametrize(
    "before",
    ["", "#include <sys/types.h>\n", "typedef unsigned int uint;\n", "#define uint unsigned int\n"],
)
def test_kernels_for_nvcc_have_the_unsigned_types_of_glibc(before):
    need_nvrtc()
    source = f'{before}extern "C" __global__ void f(uint *x, ushort a, ulong n) {{ x[n] = a; }}'
    module = cuplug.compile(source, architecture="90")
    assert module["f"].signature == "f(unsigned int *, unsigned short, unsigned long long)"


@pytest.mark.parametrize(
    "before",
    ["", "#include <stdint.h>\n", "typedef long int64_t;\n", "#define int64_t long long\n"],
)
def test_kernels_without_headers_have_fixed_width_types(before):
    need_nvrtc()
    source = f"{before}__global__ void f(int64_t *x) {{ *x = 1; }}"
    assert cuplug.compile(source, architecture="90")["f"]
    if before in ("", "#include <stdint.h>\n"):
        every = source.replace(") {", ", uint8_t a, int32_t b, uintptr_t c) {")
        assert cuplug.compile(every, architecture="90")["f"]

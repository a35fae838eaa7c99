# SPDX-License-Identifier: Apache-2.0
"""Types of kernels from CUDA source and declarations, without a compiler."""

import pytest
from cuplug._source.compilers import kernel_types


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("float *x, const double * y", "float * | const double *"),
        ("int64_t, uint32, size_t n", "long long | unsigned int | unsigned long long"),
        ("half, const bfloat16 *__restrict__ y", "__half | const __nv_bfloat16 *"),
        ("unsigned long long int", "unsigned long long"),
        ("char **names, void *", "void * * | void *"),
        ("", ""),
    ],
)
def test_declared_signatures(text, wanted):
    codes = kernel_types.parse_signature(text)
    assert " | ".join(map(kernel_types.describe, codes)) == wanted


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('extern "C" __global__ void f(int x) {}', ["f"]),
        (
            'extern "C" {\n__global__ void f(int x);\n__global__ void g() { {} }\n}',
            ["f", "g"],
        ),
        ("template <class T>\n__global__ void f(T x) {}", []),
        ("__global__ void __launch_bounds__(256, 2) f(int (*p)[4]) {}", ["f"]),
        ("__global__ __launch_bounds__(2 * (N + 1))\nstatic void f() {}", ["f"]),
        ("// __global__ void f() {}\n/* __global__ void g() {} */", []),
        ("#define K __global__ void f() {}\n__device__ void g() {}", []),
        ('__device__ const char *s = "__global__ void f() {}";', []),
    ],
)
def test_kernels_found_in_a_source(source, wanted):
    assert kernel_types.kernels_of(source) == wanted


def test_a_long_statement_is_read_once():
    """It is not read again from each of its positions, which would take minutes."""
    source = f"const int ones[] = {{{'1, ' * 300_000}}};\n__global__ void f() {{}}"
    assert kernel_types.kernels_of(source) == ["f"]

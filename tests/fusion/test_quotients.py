# SPDX-License-Identifier: Apache-2.0
"""Quotients by a number of a row, as GPUs compute them, compared with IEEE division."""

import ctypes
import subprocess

import cuplug
import numpy as np
import pytest
from builds import COMPILER
from places import ROOT

TEMPLATE = ROOT / "cython/cuplug/_source/expressions/templates/quotients.h"
SOURCE = f"""
#include <math.h>
#define __device__ static
#define __CUDA_ARCH__ 900
#include "{TEMPLATE}"
void quotients(const float *x, const float *by, float *to, long n) {{
  for (long k = 0; k < n; k++) to[k] = cuplug_quotient(x[k], cuplug_row_divisor_of(by[k]));
}}
"""
SPECIAL = [0, 1, 3, 7, 1e-45, 1e-38, 1e-30, 1e-10, 1e10, 1e30, 2.5e38, 3.4028235e38, np.inf, np.nan]


def operands():
    """Return all pairs of special values, and random bits."""
    special = np.array([s * v for v in SPECIAL for s in (1, -1)], np.float32)
    random = np.random.default_rng(0).integers(0, 1 << 32, (2, 1 << 18), dtype=np.uint32)
    return [
        np.concatenate([pairs.ravel(), bits])
        for pairs, bits in zip(np.meshgrid(special, special), random.view(np.float32), strict=True)
    ]


def check(found, x, by):
    """Check that results are within one unit of IEEE's, with its signs, infinities and NaN."""
    with np.errstate(all="ignore"):
        exact = x / by
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    bits, wanted = (v[~np.isnan(exact)].view(np.int32) for v in (found, exact))
    np.testing.assert_array_equal(bits < 0, wanted < 0)
    assert abs((bits & 0x7FFFFFFF) - (wanted & 0x7FFFFFFF)).max() <= 1


def test_quotients_of_gpus_in_c(tmp_path):
    (tmp_path / "quotients.c").write_text(SOURCE)
    options = ["-std=c11", "-O1", "-ffp-contract=off", "-shared", "-fPIC"]
    command = [*COMPILER, *options, "quotients.c", "-lm", "-o", "quotients.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    x, by = operands()
    found = np.empty_like(x)
    places = [ctypes.c_void_p(v.ctypes.data) for v in (x, by, found)]
    ctypes.CDLL(tmp_path / "quotients.so").quotients(*places, ctypes.c_long(len(x)))
    check(found, x, by)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_quotients_of_fused_functions(device):
    fused = cuplug.fuse(lambda x, by: x / np.max(by, axis=-1, keepdims=True))
    x, by = (v[:4096, None] for v in operands())
    check(np.asarray(fused(x, by, device=device))[:, 0], x[:, 0], by[:, 0])

# SPDX-License-Identifier: Apache-2.0
"""The stock operator matmul: its declarations of cuBLAS, and its message without cuBLAS."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._source.compilers import toolkit
from places import ROOT

CHECK = """
#include <cublasLt.h>
#include "linalg/cublas.h"
#include <stddef.h>
#define SAME(own, theirs) _Static_assert((int)(own) == (int)(theirs), #theirs)
SAME(CUBLAS_R_32F, CUDA_R_32F);
SAME(CUBLAS_R_64F, CUDA_R_64F);
SAME(CUBLAS_R_16F, CUDA_R_16F);
SAME(CUBLAS_C_32F, CUDA_C_32F);
SAME(CUBLAS_C_64F, CUDA_C_64F);
SAME(CUBLAS_R_16BF, CUDA_R_16BF);
SAME(CUBLAS_IN_32F, CUBLAS_COMPUTE_32F);
SAME(CUBLAS_IN_64F, CUBLAS_COMPUTE_64F);
SAME(CUBLAS_TRANSPOSE_A, CUBLASLT_MATMUL_DESC_TRANSA);
SAME(CUBLAS_TRANSPOSE_B, CUBLASLT_MATMUL_DESC_TRANSB);
SAME(CUBLAS_BATCH_COUNT, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT);
SAME(CUBLAS_BATCH_OFFSET, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET);
SAME(CUBLAS_MAX_WORKSPACE, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
SAME(CUBLAS_MIN_ALIGNMENT_OF_A, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES);
SAME(CUBLAS_MIN_ALIGNMENT_OF_A + 3, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES);
SAME(sizeof(cublas_choice), sizeof(cublasLtMatmulHeuristicResult_t));
SAME(offsetof(cublas_choice, workspace_bytes),
     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
SAME(offsetof(cublas_choice, status), offsetof(cublasLtMatmulHeuristicResult_t, state));
SAME(15, CUBLAS_STATUS_NOT_SUPPORTED);
"""


def test_numbers_of_cublas(tmp_path):
    nvcc = toolkit.find_nvcc()
    include = Path(nvcc).resolve().parents[1] / "include" if nvcc else Path("none")
    if not (include / "cublasLt.h").exists():
        pytest.skip("needs <cublasLt.h>")
    source = tmp_path / "check.c"
    source.write_text(CHECK)
    folders = [f"-I{folder}" for folder in (ROOT / "plugins", ROOT / "include", include)]
    command = ["cc", "-std=c11", "-fsyntax-only", *folders, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_signature():
    matmul = cuplug.find("linalg.matmul")
    assert matmul.device_types == ("cuda",)
    spec = cuplug.ArraySpec("float32", (5, 1, 2, 3)), cuplug.ArraySpec("float32", (4, 3, 6))
    assert matmul.infer(*spec).outputs[0].shape == (5, 4, 2, 6)


@pytest.mark.gpu
def test_layouts():
    """Rows or columns must be contiguous; out= may have rows that are further apart."""
    matmul = cuplug.find("linalg.matmul")
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    wide = cuplug.asarray(np.repeat(x, 2, axis=1), device="cuda")
    with pytest.raises(
        ValueError, match=r"^matmul: x: got matrices with strides \(12, 2\), expect"
    ):
        matmul(wide[:, ::2], cuplug.asarray(x.T.copy(), device="cuda"))
    y, z = (cuplug.asarray(each, device="cuda") for each in (x, x.T.copy()))
    out = cuplug.asarray(np.zeros((4, 10), np.float32), device="cuda")
    matmul(y, z, out=out[:, 3:7])
    wanted = np.zeros((4, 10), np.float32)
    wanted[:, 3:7] = x @ x.T
    assert np.array_equal(out.numpy(), wanted)
    with pytest.raises(ValueError, match=r"^matmul: k: got 0, expected k > 0|matmul: .*k > 0"):
        matmul(y[:, :0], z[:0])


@pytest.mark.gpu
def test_many_shapes():
    """More shapes than cached plans."""
    random = np.random.default_rng(0)
    for m in range(1, 300):
        x, y = random.integers(0, 9, (m, 3)), random.integers(0, 9, (3, 2))
        x, y = x.astype(np.float32), y.astype(np.float32)
        found = cuplug.asarray(x, device="cuda") @ cuplug.asarray(y, device="cuda")
        assert np.array_equal(found.numpy(), x @ y)


@pytest.mark.gpu
def test_captured():
    """A graph keeps the plan and the workspace of each call."""
    xp = cuplug.array_api
    x = np.random.default_rng(0).integers(-9, 9, (2, 64, 64)).astype(np.complex64)
    a, b = (cuplug.asarray(each, device="cuda") for each in x)
    xp.fft.fft(a @ b).numpy()
    graph = cuplug.Graph()
    with graph:
        found = xp.fft.fft(a @ b)
    for k in range(3):
        a.set(x[0] + k)
        graph.launch()
        np.testing.assert_allclose(found.numpy(), np.fft.fft((x[0] + k) @ x[1]), rtol=1e-4, atol=1)


@pytest.mark.gpu
def test_threads():
    x = np.random.default_rng(0).integers(-9, 9, (40, 30)).astype(np.float32)

    def run(k):
        own = cuplug.asarray(x + k, device="cuda")
        return all(np.array_equal((own @ own.mT).numpy(), (x + k) @ (x + k).T) for _ in range(50))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(run, range(8)))

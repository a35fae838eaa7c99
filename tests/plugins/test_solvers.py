# SPDX-License-Identifier: Apache-2.0
"""The factorizations of the stock plugin linalg: its declarations of cuSOLVER, and values."""

import subprocess
from pathlib import Path

import cuplug
import numpy as np
import pytest
import solver_checks
from builds import COMPILER, compile_library
from cuplug._source.compilers import toolkit
from emulated_driver import PLUGINS
from places import FIXTURES, ROOT

# Types of enumerations are int here, pointers are void *.
CHECK = """
#include <cusolverDn.h>
#include <type_traits>
#include "linalg/cusolver.h"
template <class T> struct plain {
  using type = std::conditional_t<std::is_enum_v<T>, int,
                                  std::conditional_t<std::is_pointer_v<T>, void *, T>>;
};
template <class R, class... A> void (*shape(R (*)(A...)))(typename plain<A>::type...);
#define SAME(own, theirs)                                                                       \\
  static_assert(std::is_same_v<decltype(shape(cusolver{}.own)),                                 \\
                               decltype(shape(cusolverDn##theirs))>, #theirs)
#define BOTH(own, theirs) SAME(own, theirs); SAME(own##_size, theirs##_bufferSize)
SAME(create, Create);
SAME(create_parameters, CreateParams);
SAME(set_stream, SetStream);
BOTH(potrf, Xpotrf);
BOTH(getrf, Xgetrf);
SAME(getrs, Xgetrs);
BOTH(geqrf, Xgeqrf);
BOTH(syevd, Xsyevd);
BOTH(gesvd, Xgesvd);
SAME(generate[0], Sorgqr);
SAME(generate[1], Dorgqr);
SAME(generate[2], Cungqr);
SAME(generate[3], Zungqr);
SAME(generate_size[3], Zungqr_bufferSize);
static_assert(std::is_same_v<decltype(shape(batched{}.syev)),
                             decltype(shape(cusolverDnXsyevBatched))>);
static_assert(std::is_same_v<decltype(shape(batched{}.syev_size)),
                             decltype(shape(cusolverDnXsyevBatched_bufferSize))>);
static_assert(std::is_same_v<decltype(shape(general{}.geev)),
                             decltype(shape(cusolverDnXgeev))>);
static_assert(std::is_same_v<decltype(shape(general{}.geev_size)),
                             decltype(shape(cusolverDnXgeev_bufferSize))>);
#define EQUAL(own, theirs) static_assert(int(own) == int(theirs), #theirs)
EQUAL(SOLVER_LOWER, CUBLAS_FILL_MODE_LOWER);
EQUAL(SOLVER_UPPER, CUBLAS_FILL_MODE_UPPER);
EQUAL(SOLVER_PLAIN, CUBLAS_OP_N);
EQUAL(SOLVER_TRANSPOSED, CUBLAS_OP_T);
EQUAL(0, CUSOLVER_EIG_MODE_NOVECTOR);
EQUAL(1, CUSOLVER_EIG_MODE_VECTOR);
"""

# The stock plugin finds the replacement because the process has loaded it.
FAKE = """
import ctypes
import os

ctypes.CDLL(os.environ["FAKE_CUSOLVER"])
build_plugin("indexing")
from cuplug._engine.lookup import find

find.find_stock = cuplug.find  # which finds the emulated plugins
import solver_checks

check = {name: getattr(solver_checks, f"check_{name}") for name in solver_checks.CHECKS}
"""


def test_types_of_cusolver(tmp_path):
    nvcc = toolkit.find_nvcc()
    include = Path(nvcc).resolve().parents[1] / "include" if nvcc else Path("none")
    if not (include / "cusolverDn.h").exists():
        pytest.skip("needs <cusolverDn.h>")
    source = tmp_path / "check.cpp"
    source.write_text(CHECK)
    folders = [f"-I{folder}" for folder in (ROOT / "plugins", ROOT / "include", include)]
    command = ["c++", "-std=c++17", "-fsyntax-only", *folders, source]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_signatures():
    spec = cuplug.ArraySpec("complex64", (5, 1, 3, 3)), cuplug.ArraySpec("complex64", (4, 2, 3))
    solve = cuplug.find("linalg.solve")
    assert solve.device_types == ("cuda",)
    assert [x.shape for x in solve.infer(*spec).outputs] == [(5, 4, 2, 3), (5, 4)]
    wide = cuplug.ArraySpec("complex64", (3, 5))
    found = cuplug.find("linalg.svd").infer(wide, 5).outputs
    assert [(x.dtype, x.shape) for x in found] == [
        ("complex64", (3, 3)),
        ("float32", (3,)),
        ("complex64", (5, 5)),
        ("int32", ()),
    ]
    for k in (2, 4):
        with pytest.raises(ValueError, match="k == 0 or k == m or k == n"):
            cuplug.find("linalg.svd").infer(wide, k)
    with pytest.raises(ValueError, match="min\\(m, n\\) <= q <= m"):
        cuplug.find("linalg.qr").infer(wide, 6)


@pytest.fixture
def run_solvers(run_emulated, emulated_cuda, once):
    """Return a function that runs Python text with emulated plugins and a fake cuSOLVER."""
    lapack = [*Path(np.__file__).parents[1].glob("numpy.libs/libscipy_openblas64_*.so")]
    if not toolkit.find_nvcc() or not lapack:
        pytest.skip("needs the headers of nvcc, and the LAPACK of NumPy's wheels")

    def fill(folder: Path) -> None:
        options = ["-std=gnu11", "-O1", "-g", "-shared", "-fPIC", "-Wl,-soname,libcusolver.so.12"]
        include = [f"-I{ROOT / folder}" for folder in ("include", "plugins")]
        source, output = FIXTURES / "fake_cusolver.c", folder / "libcusolver.so.12"
        compile_library([*COMPILER, *options, *include, str(source), "-o", str(output)])

    fake = once("fake_cusolver", fill) / "libcusolver.so.12"
    usual = {"FAKE_CUSOLVER": str(fake), "FAKE_LAPACK": str(lapack[0])}
    usual["LD_LIBRARY_CUPLUG_PATH"] = str(emulated_cuda)
    return lambda text: run_emulated(PLUGINS + FAKE + text, **usual)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", solver_checks.FLOATING)
def test_emulated(run_solvers, dtype):
    """Layouts, workspaces and errors, with LAPACK instead of cuSOLVER."""
    run_solvers(f"""
check["square"]({dtype!r}, sizes=(1, 4))
check["rectangular"]({dtype!r}, shapes=((5, 3), (3, 5), (4, 4), (1, 6), (6, 1)))
check["views"]({dtype!r})
check["failures"]({dtype!r})
check["no_elements"]({dtype!r})
""")


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", solver_checks.FLOATING)
@pytest.mark.parametrize("what", solver_checks.CHECKS)
def test_values(dtype, what):
    getattr(solver_checks, f"check_{what}")(dtype)

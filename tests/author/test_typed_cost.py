# SPDX-License-Identifier: Apache-2.0
"""The code that a cimport of a typed function adds to a module, compared with a manual wrapper."""

import subprocess
import sys

import pytest
from builds import BUILT

BY_HAND = """
from libc.stdint cimport int32_t, int64_t

cdef extern from "dlfcn.h" nogil:
    void *dlopen(const char *path, int flags)
    void *dlsym(void *library, const char *name)
    enum:
        RTLD_NOW

ctypedef int (*gather_function)(
    const float *source, int64_t m, const int32_t *index, int64_t n, float *out
) noexcept nogil

cdef void *library = dlopen(b"libgather.so", RTLD_NOW)
if library == NULL:
    raise ImportError("libgather.so was not found")
cdef gather_function gather = <gather_function>dlsym(library, b"gather_floats")


def gathered(const float[::1] source, const int32_t[::1] index, float[::1] out):
    cdef int status
    if out.shape[0] != index.shape[0]:
        raise ValueError("the sizes differ")
    with nogil:
        status = gather(&source[0], source.shape[0], &index[0], index.shape[0], &out[0])
    if status:
        raise IndexError("an index is out of range")
"""
TYPED = """
from {module} cimport gather, view
from libc.stdint cimport int32_t


def gathered(const float[::1] source, const int32_t[::1] index, float[::1] out):
    with nogil:
        gather(view(source), view(index), view(out))
"""


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """Return a function that runs Cython: it returns the size of the C, and the files it read."""

    def translate(text):
        folder = tmp_path_factory.mktemp("cost")
        (folder / "wrapper.pyx").write_text(text)
        command = [sys.executable, "-m", "cython", "-3", "--depfile", "-I", str(BUILT)]
        done = subprocess.run([*command, "wrapper.pyx"], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        listed = (folder / "wrapper.c.dep").read_text().replace("\\\n", " ").split()
        read = {file.rpartition("/typed/")[2] for file in listed if "/typed/" in file}
        return (folder / "wrapper.c").stat().st_size, read

    return translate


@pytest.mark.slow
def test_one_operator_is_one_file_and_a_tenth_more(translated):
    by_hand, _ = translated(BY_HAND)
    size, read = translated(TYPED.format(module="cuplug.typed.gather"))
    assert read == {"gather.pxd"}
    assert size < 1.2 * by_hand


@pytest.mark.slow
def test_all_operators_are_one_file(translated):
    by_hand, _ = translated(BY_HAND)
    size, read = translated(TYPED.format(module="cuplug.typed"))
    assert read == {"__init__.pxd"}
    assert size < 1.7 * by_hand

# SPDX-License-Identifier: Apache-2.0
"""Fused functions as objects: methods, pickles, and names in dask."""

import pickle

import cuplug
import numpy as np
import pytest


@cuplug.fuse
def doubled(x):
    return 2 * x


def test_functions_that_no_module_has_are_pickled_whole():
    pytest.importorskip("cloudpickle")
    offset = 2.5
    fused = cuplug.fuse(lambda x: x + offset)
    sent = pickle.loads(pickle.dumps(fused))
    assert sent(np.arange(3.0)).tolist() == [2.5, 3.5, 4.5]
    assert pickle.loads(pickle.dumps(sent))(np.arange(2.0)).tolist() == [2.5, 3.5]


def test_functions_of_the_main_program_are_pickled_whole(run_python, tmp_path):
    """Another process, as a worker, has a program of its own."""
    pytest.importorskip("cloudpickle")
    (tmp_path / "own.py").write_text(
        "import cuplug, pickle, sys\n"
        "@cuplug.fuse\n"
        "def tripled(x): return 3 * x\n"
        "pickle.dump(tripled, open(sys.argv[1], 'wb'))\n"
    )
    run_python(f"import runpy, sys; sys.argv[1:] = [{str(tmp_path / 'sent')!r}]\n"
               f"runpy.run_path({str(tmp_path / 'own.py')!r}, run_name='__main__')")  # fmt: skip
    sent = pickle.loads((tmp_path / "sent").read_bytes())
    assert sent(np.arange(3.0)).tolist() == [0, 3, 6]


def test_names_of_one_function_are_equal_in_dask():
    tokenize = pytest.importorskip("dask.base").tokenize
    fused = cuplug.fuse(lambda x: x + 1)
    assert tokenize(fused) == tokenize(fused) != tokenize(cuplug.fuse(lambda x: x + 2))
    assert tokenize(doubled) == tokenize(doubled)


class Scaled:
    """An object whose method is fused."""

    def __init__(self, factor):
        self.factor = factor

    @cuplug.fuse
    def apply(self, x, offset=0.0):
        return self.factor * x + offset


def test_methods():
    scaled, x = Scaled(2.0), np.arange(3.0)
    assert scaled.apply(x).tolist() == [0, 2, 4]
    assert scaled.apply(x, offset=1.0).tolist() == [1, 3, 5]
    scaled.factor = 3.0
    assert scaled.apply(x).tolist() == [0, 3, 6]
    assert Scaled(4.0).apply(x).tolist() == [0, 4, 8]
    out = np.empty(3)
    assert Scaled(5.0).apply(x, out=out) is out
    assert out.tolist() == [0, 5, 10]

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
    """Another process, such as a worker, has another main program."""
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


def test_calls_with_known_dtypes():
    """They call the operator directly, and change with their arguments."""
    fused = cuplug.fuse(lambda x, s: x * s + 1)
    x = np.random.default_rng(0).normal(2, 3, (3, 4)).astype(np.float32)
    out = np.empty_like(x)
    for _ in range(3):
        np.testing.assert_array_equal(fused(x, 2), x * 2 + 1)
        np.testing.assert_array_equal(fused(x, 0.5), x * np.float32(0.5) + 1)
        np.testing.assert_array_equal(fused(s=2, x=x), x * 2 + 1)
        assert fused(x, 2, out=out, device="cpu") is out
        assert fused(x, np.float64(2)).dtype == np.float64
        assert fused(x.astype(np.int8), 2).dtype == np.int8
        assert fused(cuplug.asarray(x), 2).numpy().tolist() == (x * 2 + 1).tolist()
        with pytest.raises(OverflowError, match="got 1.*0, expected a value of int8"):
            fused(x.astype(np.int8), 10**22)
        with pytest.raises(TypeError, match="got an unexpected keyword argument 'y'"):
            fused(x, 2, y=2)
        with pytest.raises(ValueError, match="^fused: out: "):
            fused(x, 2, out=np.empty(5, np.float32))
        with pytest.raises(TypeError, match="^fuse: fused: missing a required argument: 's'"):
            fused(x)
    total = cuplug.fuse(lambda x: x.sum(axis=0, keepdims=True))
    for _ in range(2):
        np.testing.assert_allclose(total(x), x.sum(axis=0, keepdims=True), rtol=1e-6)
        np.testing.assert_allclose(total(x, out=out[:1]), total(x))

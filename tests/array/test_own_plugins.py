# SPDX-License-Identifier: Apache-2.0
"""Users' plugins may have the names of stock ones: functions of arrays mean the stock ones."""

import cuplug
import pytest
from cuplug.array_api.functions import stock
from raw_plugins import named_plugin

NAMES = ("gather", "indexing", "scan", "sorting")
CODE = """
import cuplug, numpy as np
from cuplug import array_api as xp
from pathlib import Path
folder = Path({folder!r})
if {is_loaded}:
    for path in folder.iterdir():
        cuplug.load(path)
assert Path(cuplug.find("gather").path).parent == folder
x = cuplug.asarray(np.array([[3.0, 1.0], [2.0, 0.0]]), copy=True, device="cpu")
k = cuplug.asarray(np.array([1, 0]), device="cpu")
rows = [[2, 0], [3, 1]]
assert x[k].numpy().tolist() == xp.take(x, k, axis=0).numpy().tolist() == rows
assert x[x > 1].numpy().tolist() == [3, 2]
assert xp.sort(x, axis=0).numpy().tolist() == rows
assert xp.cumulative_sum(x, axis=0).numpy().tolist() == [[3, 1], [5, 1]]
assert xp.searchsorted(k[::-1], k).numpy().tolist() == [1, 0]
assert xp.unique_values(x).numpy().tolist() == [0, 1, 2, 3]
assert sorted(cuplug.random.default_rng(1).permutation(4).numpy().tolist()) == [0, 1, 2, 3]
x[k] = 5
assert (x.numpy() == 5).all()
"""


@pytest.mark.parametrize("is_loaded", [False, True], ids=["on the path", "loaded"])
def test_own_plugins_of_stock_names(place, run_python, tmp_path, is_loaded):
    for name in NAMES:
        named_plugin(place / f"lib{name}.so", name)
    variables = {} if is_loaded else {"LD_LIBRARY_CUPLUG_PATH": str(place)}
    done = run_python(CODE.format(folder=str(place), is_loaded=is_loaded), env=variables)
    assert not done.returncode, done.stderr


def test_no_such_stock_operator():
    with pytest.raises(cuplug.NotFoundError, match=r"gather\.other: the stock plugin .* has no"):
        stock("gather.other")
    with pytest.raises(cuplug.NotFoundError, match=r"other\.other: .*libother\.so: no such file"):
        stock("other.other")

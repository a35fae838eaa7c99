# SPDX-License-Identifier: Apache-2.0
"""Arguments of libraries that cuplug has no module for are refused like any others."""

import sys

import cuplug
import numpy as np
import pytest


def test_a_library_without_a_module_of_cuplug():
    class Column:
        """Named like a class of a library that is imported."""

        __module__ = "numpy.column"

    with pytest.raises(TypeError, match="^relu: x: seen .*Column"):
        cuplug.find("relu")(Column())


def test_a_library_that_is_imported_and_unknown(monkeypatch):
    from cuplug._engine.call.delegate import hand_on

    assert hand_on("json", cuplug.find("relu"), (np.zeros(1),), {}) is NotImplemented
    monkeypatch.setitem(sys.modules, "pandas", np)
    assert hand_on("pandas", cuplug.find("relu"), (np.zeros(1),), {}) is NotImplemented

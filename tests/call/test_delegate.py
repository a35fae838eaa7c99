# SPDX-License-Identifier: Apache-2.0
"""Arguments of libraries without a cuplug module are rejected like any others."""

import sys
from types import SimpleNamespace

import cuplug
import numpy as np
import pytest


def test_a_library_without_a_module_of_cuplug():
    class Column:
        """Named like a class of a library that is imported."""

        __module__ = "numpy.column"

    with pytest.raises(TypeError, match="^relu: x: got .*Column"):
        cuplug.find("relu")(Column())


def test_outputs_that_were_not_asked_for(monkeypatch):
    from cuplug._engine.call import delegate

    class Library:
        @staticmethod
        def hand_on(operator, args, keywords):
            assert keywords == {"k": 2}
            return args

    monkeypatch.setattr(delegate, "PROVIDERS", ("json",))
    monkeypatch.setattr(delegate, "provider", lambda name: Library)
    operator = SimpleNamespace(returns={"return_b": 1, "return_c": 2})
    for asked, wanted in ({"return_b": True}, (1, 2, None)), ({"return_b": False}, (1, None, None)):
        assert delegate.hand_on("json", operator, (1, 2, 3), {"k": 2, **asked}) == wanted


def test_a_library_that_is_imported_and_unknown(monkeypatch):
    from cuplug._engine.call.delegate import hand_on

    assert hand_on("json", cuplug.find("relu"), (np.zeros(1),), {}) is NotImplemented
    monkeypatch.setitem(sys.modules, "pandas", np)
    assert hand_on("pandas", cuplug.find("relu"), (np.zeros(1),), {}) is NotImplemented

# SPDX-License-Identifier: Apache-2.0
"""Modules that a test loads are neither found nor reloaded in other tests of the process."""

import pytest
from cuplug._engine.lookup import tvm_modules
from cuplug._engine.modules import module


@pytest.fixture(autouse=True)
def modules_of_one_test(monkeypatch):
    monkeypatch.setattr(tvm_modules, "_loaded", [])
    monkeypatch.setattr(module, "_bound", {})

# SPDX-License-Identifier: Apache-2.0
"""Each test runs twice: its calls go by compiled code where that can be, and all by cffi."""

import pytest
from cuplug._engine.adoption import adopt, adopted_call


@pytest.fixture(autouse=True, params=["compiled", "cffi"])
def way(request, monkeypatch):
    """Let functions that are adopted in the test go this way."""
    adopt._define.cache_clear()
    if request.param == "cffi":
        monkeypatch.setattr(adopted_call, "find_way", lambda function: None)
    yield request.param
    adopt._define.cache_clear()

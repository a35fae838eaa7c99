# SPDX-License-Identifier: Apache-2.0
"""Each test runs twice: with compiled code for all calls that support it, and with only cffi."""

import pytest
from cuplug._engine.adoption import adopt, adopted_call


@pytest.fixture(autouse=True, params=["compiled", "cffi"])
def way(request, monkeypatch):
    """Make functions that the test adopts use this way."""
    adopt._define.cache_clear()
    if request.param == "cffi":
        monkeypatch.setattr(adopted_call, "find_way", lambda function: None)
    yield request.param
    adopt._define.cache_clear()

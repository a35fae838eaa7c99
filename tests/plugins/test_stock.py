# SPDX-License-Identifier: Apache-2.0
"""What holds for all stock plugins."""

import cuplug
import pytest

STOCK = [plugin for plugin in cuplug.plugins() if plugin.origin == "stock"]


@pytest.mark.parametrize("plugin", STOCK, ids=lambda x: x.name)
def test_all_operators_run_on_both_sides(plugin):
    if not plugin.architectures:
        pytest.skip("it was built without CUDA")
    operators = [cuplug.find(f"{plugin.name}.{name}") for name in plugin.operators]
    assert {x.name: x.sides for x in operators} == dict.fromkeys(plugin.operators, plugin.sides)
    assert plugin.sides == ("cpu", "cuda")

# SPDX-License-Identifier: Apache-2.0
"""Properties of all stock plugins."""

import json

import cuplug
import pytest
from stock_calls import CALLS, SEED, arguments, on_each_operator, on_host

# In a separate process: other tests load plugins of the same names.
SIDES = """
import cuplug, json
print(json.dumps({
    x.name: {name: cuplug.find(f"{x.name}.{name}").device_types for name in x.operators}
    for x in cuplug.plugins() if x.origin == "stock" and x.name != "linalg"
}))
"""


def test_all_operators_run_on_both_sides(run_python, place):
    # linalg has no CPU entries: GPU libraries do its work.
    stock = [x for x in cuplug.plugins() if x.origin == "stock" and x.name != "linalg"]
    if not all(x.architectures for x in stock):
        pytest.skip("they were built without CUDA")
    sides = json.loads(run_python(SIDES).stdout)
    assert sides == {x.name: {each: ["cpu", "cuda"] for each in x.operators} for x in stock}
    assert all(x.device_types == ("cpu", "cuda") for x in stock)


@on_each_operator
def test_read_only_arrays_are_not_written(name):
    operator, given = CALLS[name][0], arguments(name, SEED)
    keywords = {"out": on_host(name, SEED)} if "->" in operator.signatures[0] else {}
    written = keywords.get("out", given[0])
    before = written.tobytes()
    written.flags.writeable = False
    with pytest.raises(ValueError, match="got a read-only array"):
        operator(*given, **keywords)
    assert written.tobytes() == before

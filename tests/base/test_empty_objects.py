# SPDX-License-Identifier: Apache-2.0
"""Objects that `cls.__new__(cls)` creates without contents: rejected, or safe to use."""

import copy
import json
import pickle

import cuplug
import numpy as np
import pytest
from processes import run_on

# Each Cython type of cuplug, and all attributes and methods of its objects.
USES = """
import importlib, json, pkgutil, cuplug, numpy as np

HEAP_TYPE = 1 << 9
OUTSIDE = {"__class__", "__new__", "__init_subclass__", "__subclasshook__"}
types = {}
for module in pkgutil.walk_packages(cuplug.__path__, "cuplug."):
    try:
        names = vars(importlib.import_module(module.name))
    except ImportError:  # of a library that is not installed
        continue
    for x in list(names.values()):
        if not isinstance(x, type) or x.__flags__ & HEAP_TYPE:
            continue
        if x.__module__.startswith("cuplug"):
            types[f"{x.__module__}.{x.__name__}"] = x

def attempt(use, *arguments):
    try:
        return use(*arguments)
    except Exception:
        return None

made = []
for name, cls in types.items():
    x = attempt(cls.__new__, cls)
    if x is None:
        continue
    made.append(name)
    print(json.dumps(name), flush=True)
    for use in (repr, str, hash, len, iter, bool, np.asarray, memoryview, cuplug.ops.relu):
        attempt(use, x)
    attempt(lambda: cuplug.ops.relu(np.ones(2), out=x))
    for name in set(dir(x)) - OUTSIDE:
        found = attempt(getattr, x, name)
        for arguments in ((), (1,), (np.ones(2),)):
            attempt(found, *arguments)
print(json.dumps([sorted(types), made]))
"""


def test_objects_without_contents_end_no_process():
    types, made = json.loads(run_on("", USES).splitlines()[-1])
    assert {"cuplug.Array", "cuplug.Operator", "cuplug.Kernel", "cuplug.Handle"} <= set(types)
    assert not {"cuplug.Operator", "cuplug.Kernel", "cuplug.Handle"} & set(made)


@pytest.mark.parametrize("arguments", [(), (1,), (np.ones(3),)])
def test_no_operator_is_made_by_its_class(arguments):
    for make in (cuplug.Operator, lambda *given: cuplug.Operator.__new__(cuplug.Operator, *given)):
        with pytest.raises(TypeError, match="get one with cuplug.find or from cuplug.ops"):
            make(*arguments)


def test_copies_of_operators_are_the_same_operators():
    fused = cuplug.fuse(lambda x: x * 2 + 1)
    doubled = cuplug.elementwise("doubled(x: T) -> T", "2 * x")
    for op in (fused, doubled, cuplug.ops.relu):
        assert copy.copy(op) == copy.deepcopy(op) == op
    assert copy.deepcopy({"of a model": fused})["of a model"] is fused
    assert pickle.loads(pickle.dumps(doubled)) == doubled

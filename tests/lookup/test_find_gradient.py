# SPDX-License-Identifier: Apache-2.0
"""The operator that computes a gradient is found, and matched with the overload."""

import re
import subprocess

import cuplug
import pytest
from cuplug._engine.base.flags import get_include
from cuplug._engine.lookup.gradient import find_gradient
from cuplug._engine.signature.gradient import Origin

SOURCE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int any_host(const cuplug_call *call) { return call ? CUPLUG_OK : 0; }
#define OPERATOR(name, properties) \\
  CUPLUG_HOST_OPERATOR(any_host, #name "(x: float32[n]) -> float32[n]", "None." properties)
OPERATOR(own, CUPLUG_GRADIENT(back));
OPERATOR(qualified, CUPLUG_GRADIENT(relu.relu_backward));
OPERATOR(missing, CUPLUG_GRADIENT(nowhere));
OPERATOR(none, "");
CUPLUG_HOST_OPERATOR(any_host, "back(grad: float32[n]) -> float32[n]", "None.");
CUPLUG_PLUGIN(graded, "1.0.0");
"""
GRAD = Origin("gradient", 0)


@pytest.fixture
def graded(tmp_path):
    return load(tmp_path, SOURCE)


def load(tmp_path, source):
    (tmp_path / "graded.c").write_text(source)
    path = tmp_path / "libgraded.so"
    flags = ["-shared", "-fPIC", "-fvisibility=hidden", f"-I{get_include()}"]
    subprocess.run(["gcc", *flags, tmp_path / "graded.c", "-o", path], check=True)
    return cuplug.load(path)


def test_of_stock_operators():
    for name, linear in (("relu", False), ("relu_backward", True)):
        operator = cuplug.find(name)
        found, gradient = find_gradient(operator, 0)
        assert found.name == "relu_backward"
        x = Origin("argument", int(linear))
        assert gradient.arguments == {"grad": GRAD, "x": x}
        assert gradient.targets == (0,)
        assert operator.properties[0].get("linear") == ("grad" if linear else None)


def test_of_the_same_file_though_it_is_not_on_the_search_path(graded):
    found, gradient = find_gradient(graded.own, 0)
    assert (found.name, found.path) == ("back", graded.own.path)
    assert gradient.arguments == {"grad": GRAD}


def test_of_another_plugin(graded):
    assert find_gradient(graded.qualified, 0)[0].plugin == "relu"


def test_none(graded):
    assert find_gradient(graded.none, 0) is None


def test_a_gradient_that_would_be_zero_is_refused_at_load(tmp_path):
    changed = SOURCE.replace('"back(grad: float32[n])', '"back(x: float32[n])')
    sentence = "the gradient of own does not fit: back: no parameter takes the gradient of a result"
    with pytest.raises(cuplug.PluginError, match=rf"load: .*libgraded\.so: {sentence}"):
        load(tmp_path, changed)


def test_missing(graded):
    sentence = f"graded.missing: its gradient: there is no nowhere in {graded.missing.path}"
    with pytest.raises(cuplug.NotFoundError, match=re.escape(sentence)):
        find_gradient(graded.missing, 0)

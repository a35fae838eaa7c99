# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` reports once a reason that prevents all checks."""

import json

import cuplug
import pytest
from cuplug._integration.commands.property_runner import try_all
from processes import run

HEAD = """/* SPDX-License-Identifier: Apache-2.0 */
#include <cuplug/plugin.h>

CUPLUG_ENTRY int fill(const cuplug_call *call) {
  return call->n_inputs == 1 ? CUPLUG_OK : CUPLUG_ERROR_PLUGIN;
}
CUPLUG_ENTRY int refuse(const cuplug_call *call, void **state) {
  *state = NULL;
  return cuplug_fail(call, CUPLUG_ERROR_PLUGIN,
                     call->device.type == CUPLUG_CUDA ? "the tables of the GPU are missing"
                                                      : "the tables of the host are missing");
}
#define TWO                                                                                 \\
  CUPLUG_OPERATOR(fill, fill, "first(x: float32[n]) -> float32[n]", "Nothing.");       \\
  CUPLUG_OPERATOR(fill, fill, "second(x: float32[n]) -> float32[n]", "Nothing.")
"""
UNDEFINED = """
float missing_helper(float x);
CUPLUG_ENTRY int helped(const cuplug_call *call) { return (int)missing_helper(call->abi_version); }
TWO;
CUPLUG_PLUGIN(undefined, "1.0.0");
"""
CRASHES = """
__attribute__((constructor)) static void start(void) { __builtin_abort(); }
TWO;
CUPLUG_PLUGIN(crashes, "1.0.0");
"""
STATES = """
TWO;
CUPLUG_PLUGIN(states, "1.0.0" CUPLUG_STATE(refuse));
"""
FINE = """
TWO;
CUPLUG_PLUGIN(fine, "1.0.0");
"""


def seen(results):
    return [(r.operator, r.property, r.ok, r.text) for r in results if r.property != "CUDA"]


def once_for(text):
    """Return the results of two operators of a plugin that does not load."""
    note = "not tried: as in: loading of first"
    return [("first", "loading", False, text), ("second", "loading", True, note)]


def test_an_undefined_symbol(build_plugin):
    path = build_plugin(HEAD + UNDEFINED, "undefined", extra=["-Wl,-z,lazy"])
    text = f"PluginError: first: {path}: undefined symbol: missing_helper"
    assert seen(try_all(str(path))) == once_for(text)


@pytest.mark.slow
def test_a_crash(build_plugin):
    path = build_plugin(HEAD + CRASHES, "crashes")
    assert seen(try_all(str(path))) == once_for("the process was ended by SIGABRT")


@pytest.mark.slow
def test_a_fixture(build_plugin, tmp_path):
    path = build_plugin(HEAD + FINE, "fine")
    file = tmp_path / "broken.py"
    file.write_text("import nowhere_to_be_found\n\n\ndef x(): pass\n")
    text = f"ValueError: {file}: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    assert seen(try_all(str(path), fixture=str(file))) == once_for(text)


@pytest.mark.slow
def test_states_on_both_sides(build_plugin, fake_cuda):
    path = build_plugin(HEAD + STATES, "states", defines=["CUPLUG_ARCHITECTURES=900"])
    with pytest.raises(cuplug.PluginError, match=r"^first: the tables of the host are missing$"):
        cuplug.prepare(cuplug.load(path).first)
    done = run("test", str(path), "--json", LD_LIBRARY_PATH=str(fake_cuda), PATH="/")
    results = json.loads(done.stdout)["results"]
    texts = [(r["operator"], r["property"], r["ok"], r["text"]) for r in results]
    error = "PluginError: first: the tables of {} are missing".format
    host, gpu = once_for(error("the host")), once_for(error("the GPU"))
    assert texts == [host[0], gpu[0], host[1], gpu[1]]

# SPDX-License-Identifier: Apache-2.0
"""Reloading: new code under old names, and the old code for running calls."""

import gc
import threading

import cuplug
import numpy as np
import pytest

SOURCE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int reloaded_host(const cuplug_call *call) {
  for (int64_t i = 0; i < cuplug_n_elements(&call->tensors[0]); i++)
    ((float *)call->tensors[1].data)[i] = %s * ((const float *)call->tensors[0].data)[i];
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(reloaded_host, "%s(%s: float32[n]) -> float32[n]", "Product.");
CUPLUG_PLUGIN(reloaded, "%s");
"""
X = np.arange(4, dtype=np.float32)


@pytest.fixture
def write(tmp_path):
    """Return a function that builds libreloaded.so with a factor, and returns its path."""

    def write(factor, name="reloaded", parameter="x"):
        (tmp_path / "reloaded.c").write_text(SOURCE % (factor, name, parameter, f"{factor}.0"))
        return cuplug.build(tmp_path / "reloaded.c")

    yield write
    gc.collect()  # free-threaded Python keeps operators until then, and all that live are reloaded


def test_all_names_run_the_new_code(write):
    plugin = cuplug.load(write(2))
    first, second = plugin.reloaded, cuplug.find("reloaded")
    old = first(X)
    for factor in range(3, 8):
        path = write(factor)
        assert np.array_equal(first(X), (factor - 1) * X)
        assert cuplug.reload(first) == (path,)
        assert first == second == cuplug.find("reloaded")
        assert hash(first) == hash(second)
        for operator in (first, second, plugin.reloaded, cuplug.load(path).reloaded):
            assert np.array_equal(operator(X), factor * X)
        assert first.version == f"{factor}.0"
    assert np.array_equal(old, 2 * X)


def test_looking_up_again_gives_the_same_object(write):
    operator = cuplug.load(write(2)).reloaded
    assert cuplug.find("reloaded") is cuplug.ops.reloaded is operator
    write(3)
    cuplug.reload(operator)
    assert cuplug.find("reloaded") is cuplug.ops.reloaded
    assert np.array_equal(cuplug.ops.reloaded(X), 3 * X)


def test_what_nobody_holds_is_not_reloaded(write):
    cuplug.load(write(2)).reloaded(X)
    cuplug.find("reloaded")
    write(3, name="another")
    gc.collect()
    assert cuplug.reload() == ()


def test_an_unchanged_file_is_left_alone(write):
    operator = cuplug.load(write(2)).reloaded
    operator(X)
    assert cuplug.reload(operator) == ()
    assert cuplug.reload() == ()


def test_a_file_replaced_before_its_code_was_loaded(write):
    operator = cuplug.load(write(2)).reloaded
    path = write(3)
    assert cuplug.reload(operator) == (path,)
    assert np.array_equal(operator(X), 3 * X)


def test_a_new_signature_has_new_keywords(write):
    plugin = cuplug.load(write(2))
    plugin.reloaded(x=X)
    write(3, parameter="y")
    assert cuplug.reload(plugin)
    assert np.array_equal(plugin.reloaded(y=X), 3 * X)
    with pytest.raises(TypeError, match="got unknown argument x"):
        plugin.reloaded(x=X)
    assert plugin.version == "3.0"


def test_a_broken_file_leaves_the_old_code(write, tmp_path):
    path = write(2)
    operator = cuplug.load(path).reloaded
    operator(X)
    (tmp_path / "broken").write_bytes(b"no library")
    (tmp_path / "broken").replace(path)
    with pytest.raises(cuplug.PluginError, match="^reload: reloaded: .*libreloaded.so: "):
        cuplug.reload(operator)
    assert np.array_equal(operator(X), 2 * X)
    write(3)
    cuplug.reload()
    assert np.array_equal(operator(X), 3 * X)


def test_a_missing_operator_leaves_the_old_code(write):
    operator = cuplug.load(write(2)).reloaded
    operator(X)
    write(3, name="renamed")
    with pytest.raises(cuplug.NotFoundError, match="the operator no longer exists"):
        cuplug.reload(operator)
    assert np.array_equal(operator(X), 2 * X)


def test_a_missing_entry_leaves_the_old_code(write, tmp_path):
    path = write(2)
    operator = cuplug.load(path).reloaded
    operator(X)
    hidden = SOURCE.replace("CUPLUG_ENTRY int", "int") % (3, "3.0", "reloaded", "x")
    (tmp_path / "reloaded.c").write_text(hidden)
    with pytest.raises(cuplug.BuildError, match="which the file does not export"):
        cuplug.build(tmp_path / "reloaded.c")
    assert cuplug.reload(operator) == ()
    assert np.array_equal(operator(X), 2 * X)


def test_a_file_that_is_loaded_in_place_and_written_over_is_refused(write, monkeypatch):
    monkeypatch.setenv("CUPLUG_LOAD_IN_PLACE", "1")
    path = write(2)
    operator = cuplug.load(path).reloaded
    operator(X)
    with open(path, "ab") as file:
        file.write(b"\0")
    with pytest.raises(cuplug.PluginError, match="overwritten in place while its code is loaded"):
        cuplug.reload(operator)
    for factor in (3, 4):
        write(factor)
        cuplug.reload(operator)
        assert np.array_equal(operator(X), factor * X)


def test_calls_on_other_threads_go_on(write):
    operator = cuplug.load(write(2)).reloaded
    seen, stop = set(), threading.Event()

    def call():
        while not stop.is_set():
            seen.add(float(operator(X)[1]))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for factor in range(3, 6):
        write(factor)
        cuplug.reload()
    stop.set()
    for thread in threads:
        thread.join()
    assert {2.0} <= seen <= {2.0, 3.0, 4.0, 5.0}
    assert operator(X)[1] == 5


def test_what_cannot_be_reloaded():
    with pytest.raises(TypeError, match="reload: got int, expected an operator or a plugin"):
        cuplug.reload(3)

# SPDX-License-Identifier: Apache-2.0
"""Programs with operators that are stored, and loaded by another process."""

import cuplug
import numpy as np
import pytest
from jax_devices import jax, on

from cuplug.jax import Function, gather, relu  # isort: skip

export = pytest.importorskip("jax.export")
pytest.importorskip("flatbuffers")
jnp = jax.numpy
CHECKS = [export.DisabledSafetyCheck.custom_call(name) for name in ("cuplug", "cuplug_waiting")]

LOAD = """
import sys, jax, numpy as np
import cuplug.jax
from jax import export
with jax.default_device(jax.devices("cpu")[0]):
    program = export.deserialize(bytearray(open(sys.argv[1], "rb").read()))
    arguments = [np.asarray(eval(text, {"np": np})) for text in sys.argv[2:]]
    print(np.asarray(program.call(*arguments)).tolist())
"""


def store(function, *arguments):
    """Return the bytes of a program for the CPU."""
    with on("cpu"):
        exported = export.export(jax.jit(function), platforms=["cpu"], disabled_checks=CHECKS)
        return exported(*arguments).serialize()


@pytest.fixture
def load(run_python, tmp_path):
    """Return a function that runs a stored program in another process."""

    def load(stored, *arguments):
        file = tmp_path / "program"
        file.write_bytes(stored)
        return run_python(f"import sys; sys.argv[1:] = {[str(file), *arguments]!r}\n{LOAD}")

    return load


def shape(*sizes, dtype="float32"):
    return jax.ShapeDtypeStruct(sizes, dtype)


def test_in_another_process(load):
    done = load(store(lambda x: relu(x) * 2, shape(3)), "np.array([-1, 2, 3], 'float32')")
    assert done.stdout == "[0.0, 4.0, 6.0]\n", done.stderr


def test_sizes_that_are_symbols(load):
    n, m = export.symbolic_shape("n, m")
    stored = store(lambda x, i: relu(gather(x, i)), shape(n, 2), shape(m, dtype="int32"))
    arguments = "np.array([[-1, 2], [3, 4]], 'float32')", "np.array([1, 0, 1], 'int32')"
    done = load(stored, *arguments)
    assert done.stdout == "[[3.0, 4.0], [0.0, 2.0], [3.0, 4.0]]\n", done.stderr


def test_broadcast_sizes_that_are_symbols():
    add = Function(cuplug.elementwise("add(a: T, b: T) -> T", "a + b"))
    n, m = export.symbolic_shape("n, m")
    with on("cpu"):
        exporter = export.export(jax.jit(add), platforms=["cpu"], disabled_checks=CHECKS)
        program = exporter(shape(n, m), shape(m))
        assert [x.shape for x in program.out_avals] == [(n, m)]
        seen = program.call(jnp.ones((2, 3)), jnp.arange(3.0))
        np.testing.assert_array_equal(seen, 1 + np.arange(3) * np.ones((2, 1)))


def test_an_operator_of_another_process(load):
    """An operator from source has no name by which other processes find it."""
    double = Function(cuplug.elementwise("double(x: float32) -> float32", "2 * x"))
    done = load(store(double, shape(3)), "np.ones(3, 'float32')")
    assert "another process created from source" in done.stderr
    assert done.returncode == 1


def test_a_plugin_that_is_not_there(load):
    stored = store(relu, shape(3)).replace(b"relu.relu", b"relu.gelu")
    done = load(stored, "np.ones(3, 'float32')")
    assert "gelu" in done.stderr
    assert "NOT_FOUND" in done.stderr

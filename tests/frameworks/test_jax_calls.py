# SPDX-License-Identifier: Apache-2.0
"""Calls in programs of JAX: all of the signature language, compiled and not."""

import pickle

import cuplug
import ml_dtypes
import numpy as np
import pytest
from jax_devices import jax, on, on_each_device
from places import FIXTURES

from cuplug.jax import Function, gather, leaky_relu, relu, scale  # isort: skip

jnp = jax.numpy

RAISED = (jax.errors.JaxRuntimeError, ValueError)  # JAX converts errors to one of these


@pytest.fixture(scope="module")
def functions(build_plugin):
    """Return the operators of the plugins that have one for each kind of argument."""
    files = [build_plugin(FIXTURES / f"{name}.c", name) for name in ("arguments", "language")]
    operators = [operator for file in files for operator in cuplug.load(file).operators]
    return {operator.name: Function(operator) for operator in operators}


@pytest.fixture
def host():
    """Run programs on the CPU, with dtypes of 64 bits."""
    with on("cpu"), jax.enable_x64(True):
        yield


def same(seen, wanted):
    """Compare arrays, or tuples of them, in dtype and value."""
    seen, wanted = (x if isinstance(x, tuple) else (x,) for x in (seen, wanted))
    assert [x.dtype for x in seen] == [x.dtype for x in wanted]
    for x, y in zip(seen, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


# ---- Stock operators on each device --------------------------------------------------------------


@on_each_device
def test_compiled_and_not(device):
    with on(device):
        x = jnp.linspace(-2, 2, 12).reshape(3, 4)
        for function in (relu, jax.jit(relu), jax.jit(lambda x: relu(relu(x)))):
            same(function(x), jnp.maximum(x, 0))


@on_each_device
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3fn", "float8_e5m2", "bool"])
def test_narrow_dtypes(device, dtype):
    with on(device):
        x = jnp.arange(6).astype(dtype)
        same(jax.jit(gather)(x, jnp.array([4, 0])), x[jnp.array([4, 0])])


@on_each_device
def test_bfloat16_is_computed(device):
    with on(device):
        x = jnp.linspace(-2, 2, 9).astype(ml_dtypes.bfloat16)
        same(jax.jit(relu)(x), jnp.maximum(x, 0))


@on_each_device
@pytest.mark.parametrize("shape", [(0,), (), (3, 0, 2)])
def test_small_shapes(device, shape):
    with on(device):
        x = jnp.full(shape, -1.0)
        same(jax.jit(relu)(x), jnp.maximum(x, 0))


@on_each_device
def test_in_place(device):
    with on(device):
        x = jnp.arange(6.0)
        twice = jax.jit(lambda x: scale(x, 2.0))
        same(twice(x), 2 * x)
        same(x, jnp.arange(6.0))  # other references to the array have the old values


@on_each_device
def test_donated_arrays_are_changed_in_place(device):
    with on(device):
        twice = jax.jit(lambda x: scale(x, 2.0), donate_argnums=0)
        x = jnp.arange(1024.0) + 0
        address = x.unsafe_buffer_pointer()
        y = twice(x)
        assert y.unsafe_buffer_pointer() == address
        assert x.is_deleted()
        same(y, 2 * jnp.arange(1024.0))


@on_each_device
def test_traced_scalars(device):
    with on(device):
        x = jnp.arange(6.0)
        times = jax.jit(scale)
        for factor in (3.0, -0.5):
            same(times(x, factor), x * factor)
        assert times._cache_size() == 1


@on_each_device
def test_programs_with_loops(device):
    def step(carry, _):
        return relu(carry) * 0.5 - 0.1, carry.sum()

    def wanted(carry, _):
        return jnp.maximum(carry, 0) * 0.5 - 0.1, carry.sum()

    with on(device):
        x = jnp.linspace(-1, 3, 8)
        seen, sums = jax.jit(lambda x: jax.lax.scan(step, x, None, length=5))(x)
        other, others = jax.jit(lambda x: jax.lax.scan(wanted, x, None, length=5))(x)
        np.testing.assert_allclose(seen, other, rtol=1e-6)
        np.testing.assert_allclose(sums, others, rtol=1e-6)


@on_each_device
def test_an_expression(device):
    affine = Function(cuplug.elementwise("affine(x: T, a: T, b: T) -> T", "a * x + b"))
    with on(device):
        x, a, b = jnp.ones((4, 3)), jnp.arange(3.0), jnp.arange(4.0)[:, None]
        for function in (affine, jax.jit(affine)):
            same(function(x, a, b), a * x + b)


# ---- Faults --------------------------------------------------------------------------------------


def test_a_bad_index_on_the_host():
    with on("cpu"), pytest.raises(jax.errors.JaxRuntimeError, match="gather: index: index 9 at"):
        jax.jit(gather)(jnp.arange(4.0), jnp.array([0, 9])).block_until_ready()


@pytest.mark.gpu
def test_a_bad_index_on_a_gpu_is_told_by_what_follows():
    with on("cuda"):
        jax.jit(gather)(jnp.arange(4.0), jnp.array([0, 9])).block_until_ready()
        with pytest.raises(IndexError, match="gather: index: index 9 at"):
            cuplug.synchronize()
        jax.jit(gather)(jnp.arange(4.0), jnp.array([0, 9])).block_until_ready()
        with pytest.raises(jax.errors.JaxRuntimeError, match="gather: index: index 9 at"):
            jax.jit(relu)(jnp.arange(4.0)).block_until_ready()


# ---- Arguments -----------------------------------------------------------------------------------


def test_broadcasting(host, functions):
    x, y = jnp.arange(3.0)[:, None], jnp.arange(4.0)
    same(jax.jit(functions["add"])(x, y), x + y)


def test_named_outputs_are_a_pytree(host, functions):
    seen = jax.jit(functions["split"])(jnp.arange(3.0))
    assert seen._fields == ("low", "high")
    same(tuple(jax.tree.map(lambda x: x + 1, seen)), tuple(x + 1 for x in seen))


def test_several_rows(host, functions):
    x = jnp.arange(3.0)
    same(jax.jit(functions["which"])(jnp.arange(3, dtype="int32")), np.array([1]))
    same(jax.jit(functions["which"])(x, x), np.array([2]))


def test_optional_arrays(host, functions):
    x = jnp.arange(3.0)
    weigh = functions["weigh"]
    for seen, wanted in [
        (weigh(x), x),
        (jax.jit(weigh)(x, None), x),
        (jax.jit(weigh)(x, weights=x), x * x),
    ]:
        same(seen, wanted)


def test_lists(host, functions):
    x = jnp.arange(3.0)
    stack = functions["stack"]
    same(jax.jit(stack)([x, x + 1]), jnp.stack([x, x + 1]))
    same(stack([x, x], weights=[1.0, 2]), jnp.stack([x, 2 * x]))
    same(functions["full"]([2, 3], 2.5), jnp.full((2, 3), 2.5))


@pytest.mark.parametrize(
    "arguments",
    [
        {"f": 1.5, "i": 2},
        {"f": -0.0, "i": True, "b": False, "c": 3 + 4j, "u": 9, "s": "so", "mode": "x"},
        {"f": float("inf"), "i": -(2**63), "c": 2.5, "s": ""},
        {"f": 2**70, "i": np.int16(3), "u": np.array(255)},
    ],
)
def test_constants(host, functions, arguments):
    wanted = functions["scalars"].operator(**arguments)
    same(jax.jit(lambda: functions["scalars"](**arguments))(), wanted)


def test_scalars_that_are_traced(host, functions):
    scalars = functions["scalars"]
    values = (1.5, 2, False, 3 + 4j, np.uint8(9))
    same(jax.jit(scalars)(*values), scalars.operator(*values))
    same(jax.jit(scalars)(jnp.bfloat16(0.5), jnp.int8(-3)), scalars.operator(0.5, -3))


def test_none(host, functions):
    absent = functions["absent"]
    for arguments in [(), (3, "x", "b"), (None, None, None), (None, "abc")]:
        same(jax.jit(lambda a=arguments: absent(*a))(), absent.operator(*arguments))
    same(absent(mode="a"), absent.operator(mode="a"))


def test_outputs_of_64_bits_are_narrowed_as_jax_does(functions):
    with on("cpu"), jax.enable_x64(False):
        seen = jax.jit(lambda x: functions["head"](x, 2))(jnp.arange(4.0))
        same(tuple(seen), (np.arange(2, dtype="float32"), np.arange(2, dtype="int32")))


def test_constants_that_are_equal_are_told_apart(host):
    either = Function(cuplug.elementwise("share(x: float64, a: float64) -> float64", "a / x"))
    x = jnp.ones(2)
    assert np.signbit(either(x, -0.0 * x)).all()
    rows = [leaky_relu(-x, slope) for slope in (0.0, -0.0)]
    assert [bool(np.signbit(row).all()) for row in rows] == [True, False]


# ---- Refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda f, x: f["add"](x), TypeError, "add: b: got nothing"),
        (lambda f, x: f["add"](x, x, x), TypeError, "add: got 3 arguments, expected at most 2"),
        (lambda f, x: f["add"](x, c=x), TypeError, "add: there is no parameter 'c'"),
        (lambda f, x: f["add"](x, a=x), TypeError, "add: a is given twice"),
        (
            lambda f, x: f["add"](x, 1.0),
            TypeError,
            r"add: b: got the float 1, expected float64\[...\]",
        ),
        (lambda f, x: f["add"](x, object()), TypeError, "add: b: got object, expected a JAX or"),
        (lambda f, x: f["add"](x, x, out=x), TypeError, "add: out: JAX places arrays itself"),
        (lambda f, x: f["add"](x, jnp.ones(5)), ValueError, "add: "),
        (lambda f, x: f["add"](x, x.astype("float32")), TypeError, "add: b: got float32"),
        (lambda f, x: f["add"](x, x.astype("int4")), TypeError, "add: "),
        (lambda f, x: f["head"](x.astype("float32"), 9), ValueError, "expected 0 <= k <= n"),
        (lambda f, x: f["full"]([x, 1]), TypeError, "full: shape: got a list of"),
        (lambda f, x: f["within"](2.5), ValueError, "within: got p = 2.5, expected 0 < p < 1.5"),
    ],
)
@pytest.mark.parametrize("compile_it", [False, True])
def test_refusals(host, functions, call, error, sentence, compile_it):
    def run(x):
        return call(functions, x)

    with pytest.raises(error, match=sentence):
        (jax.jit(run) if compile_it else run)(jnp.arange(4.0))


def test_ranges_of_traced_scalars_are_checked_by_the_run(host, functions):
    within = jax.jit(functions["within"])
    same(within(0.5), functions["within"].operator(0.5))
    with pytest.raises(RAISED, match="got p = 2.5, expected 0 < p < 1.5"):
        within(2.5).block_until_ready()


def test_values_that_decide_shapes_are_constants(host, functions):
    x = jnp.arange(4, dtype="float32")
    wanted = functions["head"].operator(np.asarray(x), 2)
    with pytest.raises(TypeError, match="head: k: got a traced value.*static_argnames"):
        jax.jit(functions["head"])(x, 2)
    same(tuple(jax.jit(functions["head"], static_argnames="k")(x, k=2)), tuple(wanted))
    same(tuple(functions["head"](x, jnp.int32(2))), tuple(wanted))


def test_sizes_that_the_run_finds(host, functions):
    x = jnp.array([1.0, -1.0, 2.0])
    same(functions["positive"](x), jnp.array([1.0, 2.0]))
    for function, argument in [(jax.jit, x), (jax.vmap, x[None])]:
        with pytest.raises(TypeError, match="positive: .*known only after the run.*outside of"):
            function(functions["positive"])(argument)


def test_an_operator_without_results_runs(host, functions):
    with pytest.raises(jax.errors.JaxRuntimeError, match="fail: status: got 300"):
        jax.jit(lambda x: (functions["fail"](300), x)[1])(jnp.ones(2)).block_until_ready()


# ---- The module ----------------------------------------------------------------------------------


def test_reductions_are_handed_on(host):
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b")
    x = jnp.arange(12.0).reshape(3, 4)
    same(jax.jit(lambda x: total(x, axis=0))(x), x.sum(0))
    same(jax.vmap(total)(x), x.sum(1))
    same(Function(total)(x, axis=(0, 1)), x.sum())


def test_names():
    from cuplug import jax as module

    assert {"relu", "gather", "Function"} <= set(dir(module))
    assert module.relu is relu
    assert pickle.loads(pickle.dumps(relu)).operator == relu.operator
    with pytest.raises(ImportError, match="no plugin"):
        from cuplug.jax import nowhere_to_be_found  # noqa: F401


NUMBER = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int number_host(const cuplug_call *call) {
  *(float *)call->outputs[0].data = NUMBER;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(number_host, "number(x: float32[]) -> float32[]", "A number.");
CUPLUG_PLUGIN(number, "1.0");
"""


def test_reloaded_operators(build_plugin, place):
    """Programs that are made then have the new code."""

    def put(number):
        built = build_plugin(NUMBER, "number", [f"NUMBER={number}"])
        (place / "new").write_bytes(built.read_bytes())
        (place / "new").rename(place / "libnumber.so")

    with on("cpu"):
        put(1)
        function = Function(cuplug.find("number.number"))
        seen = [function(jnp.ones(())), jax.jit(lambda x: function(x))(jnp.ones(()))]
        put(2)
        cuplug.reload()
        seen += [function(jnp.ones(())), jax.jit(lambda x: function(x))(jnp.ones(()))]
    assert seen == [1, 1, 2, 2]


def test_programs_are_read_easily():
    text = str(jax.make_jaxpr(lambda x: leaky_relu(x, 0.5))(jnp.ones(3)))
    assert "cuplug[call=relu.leaky_relu(av)]" in text


def test_cuplug_alone_imports_no_jax(run_python):
    code = "import sys; from cuplug.ops import relu; assert 'jax' not in sys.modules"
    done = run_python(code)
    assert done.returncode == 0, done.stderr


@on_each_device
def test_calls_of_cuplug_ops_are_handed_on(device):
    with on(device):
        x = jnp.linspace(-1, 1, 5)
        same(jax.jit(cuplug.ops.relu)(x), jnp.maximum(x, 0))
        same(jax.vmap(cuplug.ops.relu)(x[:, None]), jnp.maximum(x, 0)[:, None])
        same(jax.grad(lambda x: cuplug.ops.relu(x).sum())(x), (x > 0).astype(x.dtype))


def test_keywords_of_overloads_that_name_arguments_differently(build_plugin, host):
    plugin = cuplug.load(build_plugin(FIXTURES / "renamed.c", "renamed"))
    swapped, longer = Function(plugin.swapped), Function(plugin.longer)
    for dtype, wanted in (("float32", [1, 2.5, 1.5]), ("float64", [2, 2.5, 1.5])):
        x = jnp.ones(3, dtype)
        assert swapped(x, low=1.5, high=2.5).tolist() == wanted
        assert swapped(high=2.5, x=x, low=1.5).tolist() == wanted
        assert jax.jit(lambda x, a: swapped(x, low=a, high=2.5))(x, 1.5).tolist() == wanted
    x = jnp.ones(3, "float32")
    assert Function(plugin.renamed)(x, shift=2.0).tolist() == [2, 2, 0]
    assert longer(x, lr=0.5).tolist() == [1, 0.5, 0]
    assert longer(x, x, lr=0.5).tolist() == longer(x, lr=0.5, master=x).tolist() == [2, 0.5, 0]
    assert (
        jax.vmap(lambda x: longer(x, x, lr=0.5))(jnp.ones((2, 3), "float32")).tolist()
        == [[2, 0.5, 0]] * 2
    )
    with pytest.raises(TypeError, match="lr"):
        longer(x, 0.5, lr=0.5)

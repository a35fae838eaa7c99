# SPDX-License-Identifier: Apache-2.0
"""Objects that represent arrays: the message names the object to pass."""

import re

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu, scale


def class_of(module, name, **members):
    return type(name, (), {"__module__": module, **members})


def refuse(self, *arguments):
    raise TypeError("no such conversion")


def proxy(self, name):
    return self


JAX = class_of("jax._src.core", "Tracer", __index__=refuse, __float__=refuse, ndim=0)
OBJECTS = {
    "JAX": (type("DynamicJaxprTracer", (JAX,), {})(), "a traced array of JAX", "pure_callback"),
    "fx": (
        class_of("torch.fx.proxy", "Proxy", __getattr__=proxy)(),
        "a proxy of torch.fx",
        "cuplug.torch",
    ),
    "fake": (
        class_of("torch._subclasses.fake_tensor", "FakeTensor")(),
        "a fake tensor",
        "cuplug.torch",
    ),
    "dask": (class_of("dask.array.core", "Array", ndim=1)(), "a dask array", "x.compute()"),
    "xarray": (class_of("xarray.core.dataarray", "DataArray", ndim=2)(), "an array of", "x.values"),
    "pandas": (
        type("Series", (class_of("pandas.core.generic", "NDFrame", ndim=1),), {})(),
        "a table or column of pandas",
        "x.to_numpy()",
    ),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_what_is_no_array(name):
    x, seen, instead = OBJECTS[name]
    with pytest.raises(TypeError, match=rf"^relu: x: got {seen}.*{re.escape(instead)}.*, expected"):
        relu(x)


def test_asarray_of_what_has_no_elements():
    cls = class_of("torch._subclasses.fake_tensor", "FakeTensor", __array__=refuse)
    wanted = r"^asarray: x: got a fake tensor .*cuplug\.torch.*, expected an array"
    with pytest.raises(TypeError, match=wanted):
        cuplug.asarray(cls())


def test_protocols_of_traced_arrays_are_not_called():
    """PyTorch warns if the memory of a fake tensor is read."""
    called = []
    members = dict.fromkeys(("__dlpack__", "__dlpack_device__"), lambda *args: called.append(args))
    cls = class_of("torch._subclasses.fake_tensor", "FakeTensor", **members)
    with pytest.raises(TypeError, match=r"^relu: x: got a fake tensor"):
        relu(cls())
    assert not called


def test_as_the_second_argument_too():
    """Where a number is expected."""
    with pytest.raises(TypeError, match=r"^scale: factor: got a traced array of JAX"):
        scale(np.ones(2), OBJECTS["JAX"][0])


def test_a_failing_export_gets_advice():
    cls = class_of("jax._src.core", "Tracer", __dlpack__=refuse, __dlpack_device__=refuse)
    with pytest.raises(TypeError, match="^relu: x: got a traced array of JAX"):
        relu(cls())


def test_without_dimensions_it_is_a_number():
    x = np.ones(2)
    scale(x, class_of("xarray.core", "DataArray", ndim=0, __float__=lambda self: 3.0)())
    assert x.tolist() == [3, 3]

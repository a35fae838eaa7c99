# SPDX-License-Identifier: Apache-2.0
"""`cuplug.Device`: one type for the devices of arrays and of calls."""

import copy
import pickle
from types import SimpleNamespace

import cuplug
import numpy as np
import pytest
from cuplug.ops import relu

X = np.arange(-2.0, 2.0)


@pytest.mark.parametrize(
    ("given", "name", "kind", "index"),
    [
        ("cpu", "cpu", "cpu", None),
        ("cpu:0", "cpu", "cpu", None),
        ("cuda", "cuda:0", "cuda", 0),
        ("cuda:3", "cuda:3", "cuda", 3),
        (2, "cuda:2", "cuda", 2),
        ("cuda:*", "cuda:*", "cuda", None),
        (SimpleNamespace(type="cuda", index=1), "cuda:1", "cuda", 1),
        (SimpleNamespace(type="cpu", index=None), "cpu", "cpu", None),
        (SimpleNamespace(id=4), "cuda:4", "cuda", 4),
    ],
)
def test_one_device_of_any_description(given, name, kind, index):
    device = cuplug.Device(given)
    assert (str(device), device.type, device.index) == (name, kind, index)
    assert repr(device) == f"cuplug.Device({name!r})"
    assert device == name == device
    assert device == cuplug.Device(device) == pickle.loads(pickle.dumps(device))
    assert copy.deepcopy(device) == device
    assert hash(device) == hash(name)
    assert device != "cuda:7"
    assert device != cuplug.Device("cuda:7")


@pytest.mark.parametrize("given", ["gpu", "cuda:x", "", None, 1.5, -1, 64, "cpu:1"])
def test_what_is_no_device(given):
    with pytest.raises((TypeError, ValueError), match="device: got"):
        cuplug.Device(given)


def test_the_device_of_an_array_is_taken_wherever_one_is():
    x = cuplug.asarray(X, device="cpu")
    assert type(x.device) is cuplug.Device
    assert x.device == cuplug.Device("cpu") == "cpu"
    assert cuplug.empty(3, device=x.device).device == x.device
    assert cuplug.array_api.asarray(X, device=x.device).device == "cpu"
    assert x.to_device(x.device).device == "cpu"
    np.testing.assert_array_equal(relu(X, device=x.device), relu(X))
    with x.device as entered:
        assert entered == "cpu"
        relu(X)
        assert cuplug.last_call().device == "cpu"
    assert x.device in x.__array_namespace__().__array_namespace_info__().devices()


def test_the_innermost_block_counts():
    with cuplug.Device("cuda:5"), cuplug.Device("cpu"):
        np.testing.assert_array_equal(relu(X), relu(X, device="cpu"))


def test_of_the_host_there_are_no_properties():
    host = cuplug.Device("cpu")
    for name in ("name", "compute_capability", "memory_bytes", "driver_version", "attributes"):
        assert not hasattr(host, name)
        assert not hasattr(cuplug.Device("cuda:*"), name)


def test_properties_of_gpus(run_fake):
    code = """
    gpus = cuplug.devices()
    assert [*map(str, gpus)] == ["cuda:0", "cuda:1"] and cuplug.is_available()
    assert gpus[1].compute_capability == 90 and gpus[1].memory_bytes > 0
    assert gpus[0].name == cuplug.Device("cuda").name != ""
    assert gpus[0].driver_version >= 12000
    assert "MULTIPROCESSOR_COUNT" in gpus[1].attributes
    x = cuplug.empty(3, device=gpus[1])
    assert type(x.device) is cuplug.Device and x.device == gpus[1] == "cuda:1"
    with x.device:
        assert cuplug.empty(2).device == "cuda:1"
    try:
        cuplug.Device(2).name
    except (cuplug.CudaError, ValueError) as error:
        assert "2" in str(error)
    else:
        raise AssertionError
    """
    run_fake(code, FAKE_CUDA_DEVICES="2", FAKE_CUDA_CAPABILITY="90")


def test_a_broken_driver(run_fake):
    """No GPU can be used; `cuplug doctor` explains why."""
    code = """
    assert cuplug.devices() == [] and cuplug.is_available() is False
    assert cuplug.empty(2).device == "cpu"
    """
    run_fake(code, FAKE_CUDA_INIT_ERROR="999")

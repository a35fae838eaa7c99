# SPDX-License-Identifier: Apache-2.0
"""Makes calls for callgrind to count: each case N_CALLS times, between begin and end.

instructions_calls.py N_CALLS
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import sys
from collections.abc import Callable, Iterator

import cuplug
import native
import numpy as np
from calls import arrays, cffi_function, cuplug_operator, names, plain_function

N_WARM = 104


def python_loop(text: str, **names_of: object) -> Callable[[int], object]:
    """Return a function that runs a statement n times, in the cheapest loop of Python."""
    source = f"def loop(number):\n    for _ in repeat(None, number):\n        {text}\n"
    namespace: dict = {"repeat": itertools.repeat} | names_of
    exec(source, namespace)
    return namespace["loop"]


def in_turn(text: str, texts: list[str], **names_of: object) -> Callable[[int], object]:
    """Return a function that runs n calls, each different from the one before: each `text` in turn.

    n is a multiple of their number.
    """
    loop = python_loop("\n        ".join(text.format(each) for each in texts), **names_of)
    return lambda number: loop(number // len(texts))


def cases() -> Iterator[tuple[str, Callable[[int], object]]]:
    """Yield each case that can run on this machine."""
    x = arrays(3)
    yield "empty loop", python_loop("pass")
    three = f"call({names(3)})"
    noop3, noop_out = cuplug_operator("noop3", 3), cuplug_operator("noop_out", 2)
    yield "cuplug, 3 NumPy arrays", python_loop(three, call=noop3, **x)
    brief3 = cuplug_operator("brief3", 3)
    yield "cuplug, 3 NumPy arrays, CUPLUG_NONBLOCKING", python_loop(three, call=brief3, **x)
    out = "call(a, b, out=c)"
    yield "cuplug, 2 NumPy arrays and out=", python_loop(out, call=noop_out, **x)
    yield "cuplug, 2 NumPy arrays, new output", python_loop("call(a, b)", call=noop_out, **x)
    scaled = cuplug_operator("noop_scaled", 3)
    keywords = "call(a, b, c, factor=0.5, mode='wrap')"
    yield "cuplug, 3 NumPy arrays and 2 keywords", python_loop(keywords, call=scaled, **x)
    relu = cuplug.find("relu")
    yield "cuplug, relu(x, out=z), NumPy", python_loop("call(a, out=b)", call=relu, **x)
    add = cuplug.elementwise("add(x: T, y: T) -> T", "x + y")
    yield "cuplug, expression x + y, out=", python_loop(out, call=add, **x)
    yield "cuplug, expression x + y, new output", python_loop("call(a, b)", call=add, **x)
    yield from cases_in_turn(add)
    many = cuplug_operator("noop14", 14)
    yield "cuplug, 14 NumPy arrays", python_loop(f"call({names(14)})", call=many, **arrays(14))
    try:
        import torch
    except ImportError:
        print("PyTorch is not installed: left out", file=sys.stderr)
    else:
        tensors = {name: torch.from_numpy(array) for name, array in x.items()}
        yield "cuplug, 3 torch CPU tensors", python_loop(three, call=noop3, **tensors)
    own = {name: cuplug.asarray(array.copy(), device="cpu") for name, array in x.items()}
    yield "cuplug.Array, a + b", python_loop("a + b", **own)
    yield "cuplug.Array, a[2:5]", python_loop("a[2:5]", **own)
    yield "NumPy, a + b", python_loop("a + b", **x)
    yield "NumPy, a[2:5]", python_loop("a[2:5]", **x)
    yield "np.add(out=)", python_loop(out, call=np.add, **x)
    square = np.ones((16, 16), np.float32)
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")
    yield "cuplug, sum of 16 x 16", python_loop("call(x)", call=total, x=square)
    yield "np.sum of 16 x 16", python_loop("call(x)", call=np.sum, x=square)
    compiled, values = native.typed_calls(), list(x.values())
    yield "typed function from Cython", lambda n: compiled.typed(*values, n)
    yield "cuplug_invoke from C", lambda n: compiled.c_api(*values, n)
    yield "C function from Cython", lambda n: compiled.plain(*values, n)
    yield from cases_of_bindings(x)


def cases_of_bindings(x: dict[str, np.ndarray]) -> Iterator[tuple[str, Callable[[int], object]]]:
    """Yield the calls of a C function that does nothing, by the libraries that can be imported."""
    pointers = "call(a.ctypes.data, b.ctypes.data, c.ctypes.data, 16)"
    yield "ctypes, arr.ctypes.data", python_loop(pointers, call=plain_function(), **x)
    try:
        function, view = cffi_function()
        buffers = ", ".join(f'view("float[]", {name})' for name in x)
        yield (
            "cffi, ffi.from_buffer(arr)",
            python_loop(f"call({buffers}, 16)", call=function, view=view, **x),
        )
        nanobind = native.nanobind_module().noop3
        yield "nanobind, nb::ndarray", python_loop(f"call({names(3)})", call=nanobind, **x)
    except ImportError as error:
        print(f"{error}: left out", file=sys.stderr)


def cases_in_turn(add: cuplug.Operator) -> Iterator[tuple[str, Callable[[int], object]]]:
    """Yield calls of one operator with several shapes, and of several operators."""
    turns = [str(k) for k in range(8)]
    shapes = [np.ones((k + 1, 16 // (k + 1)), np.float32) for k in range(8)]
    x = {f"x{k}": value for k, value in enumerate(shapes)}
    y = {f"y{k}": np.empty_like(value) for k, value in enumerate(shapes)}
    shaped = in_turn("call(x{0}, x{0}, out=y{0})", turns, call=add, **x, **y)
    yield "cuplug, expression x + y, out=, 8 shapes in turn", shaped
    made = [cuplug.elementwise(f"add{k}(x: T, y: T) -> T", "x + y") for k in range(16 * 8)]
    calls = {f"call{k}": made[16 * k] for k in range(8)}  # their numbers differ by 16
    several = in_turn("call{0}(x0, x0, out=y0)", turns, **calls, **x, **y)
    yield "cuplug, 8 expressions x + y in turn, out=", several


def main(n_calls: int) -> None:
    """Run all cases, each warm."""
    if platform.machine() == "x86_64":  # valgrind does not support AVX-512
        os.environ["CC"] = "cc -mno-avx512f"
    requests = ctypes.CDLL(str(native.shared_library("callgrind_requests.c")))
    for name, run in cases():
        run(N_WARM)
        requests.begin()
        run(n_calls)
        requests.end(name.encode())


if __name__ == "__main__":
    main(int(sys.argv[1]))

# SPDX-License-Identifier: Apache-2.0
"""State that other code of the process has set, and that calls must not change: floating point,
signals, exceptions, the states of NumPy and PyTorch."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import platform
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import cuplug
import numpy as np
import pytest
from attacks import attack
from cuplug.ops import gather, relu

X = np.arange(-100_000, 100_000, dtype=np.float32)
FENV = ctypes.CDLL("libm.so.6")  # the environment, in its 32 bytes on x86-64 and 8 on arm64
ROUNDINGS = {"x86_64": (0, 0x400, 0x800, 0xC00), "aarch64": (0, 0x400000, 0x800000, 0xC00000)}
ENTRIES = {
    "rounds": "fesetround(FE_UPWARD);",
    "flushes": """
#if defined __x86_64__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined __aarch64__
    __builtin_aarch64_set_fpcr(__builtin_aarch64_get_fpcr() | 1u << 24);
#endif""",
    "traps": "extern int feenableexcept(int); feenableexcept(FE_DIVBYZERO | FE_INVALID);",
}


def environment() -> tuple[int, bytes, bool]:
    """Return the rounding mode, the traps, and whether subnormal numbers are kept."""
    tiny = np.float32([1e-40])
    return FENV.fegetround(), FENV.fegetexcept(), bool((tiny * np.float32(1) != 0).all())


def check_all() -> None:
    """Call operators whose results do not depend on the rounding mode."""
    index = np.arange(0, X.size, 7)
    assert np.array_equal(relu(X), np.maximum(X, 0))
    assert np.array_equal(gather(X, index), X[index])
    assert np.array_equal(cuplug.elementwise("twice(x: T) -> T", "x + x")(X), X + X)


@attack
def entries_that_change_floats(random: Random, folder: Path) -> int:
    """After calls of such entries, the caller and all other threads have their own environment."""
    before = environment()
    for name in random.sample(list(ENTRIES), len(ENTRIES)):
        host = f"#include <fenv.h>\nvoid {name}(float *x) {{ {ENTRIES[name]}\n x[0] = 1; }}"
        operator = cuplug.operator(f"{name}() -> x: float32[1]", arguments="x", host=host)
        for _ in range(3):
            assert operator().tolist() == [1]
            assert environment() == before, name
        check_all()
        seen: list[object] = []
        thread = threading.Thread(target=lambda seen=seen: seen.append(environment()))
        thread.start()
        thread.join()
        assert seen == [before], name
    return 3 * len(ENTRIES)


@attack
def libraries_that_change_floats(random: Random, folder: Path) -> int:
    """A plugin linked with -ffast-math, whose constructor flushes subnormal numbers."""
    before = environment()
    source = folder / "fast.c"
    source.write_text("""#include <cuplug/plugin.h>
#include <xmmintrin.h>
__attribute__((constructor)) static void flush(void) { _mm_setcsr(_mm_getcsr() | 0x8040); }
CUPLUG_ENTRY int fast_host(const cuplug_call *call) {
  ((float *)call->tensors[0].data)[0] = 1;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(fast_host, "fast() -> x: float32[1]", "Returns one.");
CUPLUG_PLUGIN(fast, "1.0.0");
""")
    if platform.machine() == "x86_64":
        library = folder / "libfast.so"
        command = ["cc", "-shared", "-fPIC", "-O1", f"-I{cuplug.get_include()}", source]
        subprocess.run([*command, "-o", library], check=True)
        assert cuplug.load(library).fast().tolist() == [1]
    assert environment() == before
    check_all()
    return 1


@attack
def floating_point_of_callers(random: Random, folder: Path) -> int:
    """The caller's settings remain, whatever cuplug calls, and operators work with them."""
    check_all()
    for rounding in ROUNDINGS.get(platform.machine(), (0,)):
        FENV.fesetround(rounding)
        try:
            check_all()
            plus = cuplug.elementwise("plus(x: T) -> T", f"x + {rounding & 15}")
            assert np.array_equal(plus(X), X + np.float32(rounding & 15))
            assert FENV.fegetround() == rounding
        finally:
            FENV.fesetround(0)
    return 4


@contextlib.contextmanager
def blocked(numbers: set[signal.Signals]) -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@attack
def signals_of_callers(random: Random, folder: Path) -> int:
    """Calls change no masks, no handlers and no pending signal."""
    seen: list[int] = []
    numbers = {signal.SIGUSR1, signal.SIGCHLD, signal.SIGPIPE}
    for number in (signal.SIGUSR1, signal.SIGCHLD):
        signal.signal(number, lambda number, frame: seen.append(number))
    handlers = [signal.getsignal(number) for number in numbers]
    with blocked(numbers):
        signal.raise_signal(signal.SIGUSR1)
        plus = cuplug.elementwise("plus(x: T) -> T", f"x + {random.randrange(9)} + 0 * x")
        plus(X)  # which starts a compiler
        check_all()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) >= numbers
        assert signal.SIGUSR1 in signal.sigpending()
        assert signal.SIGUSR1 not in seen
    assert signal.SIGUSR1 in seen
    assert [signal.getsignal(number) for number in numbers] == handlers
    return 4


class Calls:
    """Calls operators while another exception is in progress, where its own cannot be raised."""

    def __init__(self, seen: list[str]) -> None:
        self.seen = seen

    def __del__(self) -> None:
        check_all()
        try:
            gather(X, np.array([X.size]))
        except IndexError:
            self.seen.append("index")


@attack
def calls_during_exceptions(random: Random, folder: Path) -> int:
    """Calls in `except`, `finally` and `__del__` change no exception that is in progress."""
    seen: list[str] = []

    def fails(kept: object) -> None:
        try:
            raise KeyError("mine")
        finally:
            check_all()
            del kept

    for _ in range(20):
        with pytest.raises(KeyError, match="mine") as raised:
            fails(Calls(seen))
        assert raised.value.__context__ is None
        try:
            raise KeyError("mine")
        except KeyError:
            before = sys.exc_info()
            check_all()
            assert sys.exc_info() == before
        assert sys.exc_info() == (None, None, None)
    assert seen == ["index"] * 20
    return 60


@attack
def settings_of_numpy(random: Random, folder: Path) -> int:
    """Strict error states and warnings as errors affect only NumPy; results are the same."""
    special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-320, 1e308])
    divide = cuplug.elementwise("divide(x: T, y: T) -> T", "x / y")
    with np.errstate(all="ignore"):
        wanted = special / special[::-1], special * special
    square = cuplug.fuse(lambda x: x * x)
    for state in ("raise", "warn", "call", "print"):
        with np.errstate(all=state, call=lambda *told: None), warnings.catch_warnings():
            warnings.simplefilter("error")
            before = np.geterr()
            np.testing.assert_array_equal(divide(special, special[::-1]), wanted[0])
            np.testing.assert_array_equal(square(special), wanted[1])
            check_all()
            assert np.geterr() == before
    return 12


@attack
def gradients_of_torch(random: Random, folder: Path) -> int:
    """PyTorch rejects a write to an array that was saved for backward. Skipped without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return 1
    import torch

    scale = cuplug.elementwise("scale(inout x: T, a: float64)", "x = x * (T)a")
    writes: list[Any] = [
        lambda x: relu(-x.detach(), out=x.detach()),
        lambda x: scale(x.detach(), 5),
    ]
    for write in writes:
        weights = torch.ones(4, requires_grad=True)
        x = weights * 3
        result = (x * x).sum()
        write(x)
        with pytest.raises(RuntimeError, match="modified"):
            result.backward()
    with torch.no_grad():
        assert not relu(torch.ones(3)).requires_grad
    with torch.inference_mode():
        assert relu(torch.ones(3)).tolist() == [1, 1, 1]
    assert torch.is_grad_enabled()
    return 4

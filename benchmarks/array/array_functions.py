# SPDX-License-Identifier: Apache-2.0
"""Functions of cuplug.Array on 1 Ki to 1 Gi elements, on the host and on the device."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from driver import DeviceTimer, Driver
from libraries import MODULES, grown
from measurement import SETTLED_S, Comparison, Contender, Skip, Target, alike, statement
from module import GIB, Run, at_once, in_groups, run_module

KI, MI, GI = 1 << 10, 1 << 20, 1 << 30
PART = 16 * MI  # the largest arrays that are created on the host
BYTES_EACH = 40  # bytes of host memory per element
NEAR = 1e-5  # for functions that libraries round in different ways
Call = Callable[..., Any]


@dataclass(frozen=True)
class Function:
    """A function: `usual` if libraries spell it alike, given a module; else by library.

    Its inputs are `n_arrays` of n elements, `columns` wide if that is not 0, or the results of
    `make`. Random functions return other numbers in each library.
    """

    name: str
    usual: Call
    special: dict[str, Call]
    n_arrays: int = 1
    columns: int = 0
    make: Callable[[list[np.ndarray]], list[np.ndarray]] = list
    is_random: bool = False

    def of(self, library: str) -> Call:
        """Return a library's spelling of the function."""
        return self.special.get(library, self.usual)

    def arrays(self, n: int) -> list[np.ndarray]:
        """Return its arrays: multiples of 1/256 in [1, 2)."""
        block = np.random.default_rng(7).integers(256, 512, min(n, MI)).astype("f4") / 256
        made = [np.roll(np.tile(block, n // block.size), k) for k in range(self.n_arrays)]
        return self.make([x.reshape(-1, self.columns) if self.columns else x for x in made])


def named(name: str, *more: Any, n_arrays: int = 1, columns: int = 0, **special: Call) -> Function:
    """Return a function with the same name in all libraries except those in `special`."""
    return Function(name, lambda xp, *x: getattr(xp, name)(*x, *more), special, n_arrays, columns)


def with_mask(x: list[np.ndarray]) -> list[np.ndarray]:
    return [*x, x[0] < 1.3]


def with_columns(x: list[np.ndarray]) -> list[np.ndarray]:
    return [*x, np.random.default_rng(8).permutation(x[0].shape[1])]


def with_places(x: list[np.ndarray]) -> list[np.ndarray]:
    places = np.random.default_rng(8).integers(0, min(len(x[0]), KI), (min(len(x[0]), KI), 256))
    return [x[0], np.tile(places, (max(len(x[0]) // KI, 1), 1))]


def with_pairs(x: list[np.ndarray]) -> list[np.ndarray]:
    """Positions along both axes, one pair for each element, in random order."""
    random, n = np.random.default_rng(8), x[0].size
    return [*x, *(random.integers(0, size, n) for size in x[0].shape)]


def with_positions(x: list[np.ndarray]) -> list[np.ndarray]:
    return [*x, np.random.default_rng(8).permutation(len(x[0]))]


def cleared(_: Any, x: Any, mask: Any) -> Any:
    x[mask] = 0
    return x


@cache
def generator(library: str) -> Any:
    """Return a library's generator of random numbers; PyTorch's is the library itself."""
    module = importlib.import_module(library)
    return module if library == "torch" else module.random.default_rng(7)


def drawn(name: str, torch: Call, **options: Any) -> Function:
    """Return a function that draws a number for each element, by a method with NumPy's names."""

    def on_host(np: Any, x: Any) -> Any:
        return getattr(generator("numpy"), name)(size=len(x), **options)

    special = {
        "cuplug": lambda xp, x: getattr(generator("cuplug"), name)(
            size=len(x), device=x.device, **options
        ),
        "cupy": lambda cp, x: getattr(generator("cupy"), name)(size=len(x), **options),
        "torch": lambda _, x: torch(generator("torch"), len(x), x.device),
    }
    return Function(f"random.{name}", on_host, special, is_random=True)


PERMUTATION = Function(
    "random.permutation",
    lambda np, x: generator("numpy").permutation(len(x)),
    {
        "cuplug": lambda xp, x: generator("cuplug").permutation(len(x), device=x.device),
        "cupy": lambda cp, x: cp.random.permutation(len(x)),
        "torch": lambda torch, x: torch.randperm(len(x), device=x.device),
    },
    is_random=True,
)
FUNCTIONS = [
    *map(named, ("abs", "sqrt", "exp", "log", "sin", "tanh", "floor", "sign", "isnan")),
    *(named(name, n_arrays=2) for name in ("add", "divide", "maximum", "less", "pow")),
    *(named(name, n_arrays=2) for name in ("remainder", "floor_divide", "nextafter")),
    Function("astype", lambda xp, x: x.astype("float64"), {"torch": lambda _, x: x.double()}),
    Function("where", lambda xp, x, mask: xp.where(mask, x, 2 * x), {}, make=with_mask),
    named("clip", 1.25, 1.75),
    *(named(name) for name in ("sum", "max", "mean", "any", "argmax")),
    named("std", torch=lambda torch, x: torch.std(x, correction=0)),
    named("roll", 1001),
    named("diff"),
    named("tile", (2,)),
    named("repeat", 2, torch=lambda torch, x: torch.repeat_interleave(x, 2)),
    Function(
        "concat",
        lambda xp, x, y: xp.concatenate([x, y]),
        {"cuplug": lambda xp, x, y: xp.concat([x, y]), "torch": lambda xp, x, y: xp.cat([x, y])},
        2,
    ),
    Function(
        "stack, axis 1",
        lambda xp, x, y: xp.stack([x, y], axis=1),
        {"torch": lambda torch, x, y: torch.stack([x, y], dim=1)},
        2,
    ),
    named("tril", columns=256),
    Function(
        "transposed copy",
        lambda xp, x: xp.ascontiguousarray(x.T),
        {
            "cuplug": lambda xp, x: xp.asarray(x.T, copy=True),
            "torch": lambda torch, x: x.T.contiguous(),
        },
        columns=256,
    ),
    Function(
        "take of columns",
        lambda xp, x, index: xp.take(x, index, axis=1),
        {"torch": lambda torch, x, index: torch.index_select(x, 1, index)},
        columns=256,
        make=with_columns,
    ),
    Function(
        "take along axis 0",
        lambda xp, x, index: xp.take_along_axis(x, index, axis=0),
        {"torch": lambda torch, x, index: torch.gather(x, 0, index)},
        columns=256,
        make=with_places,
    ),
    Function("x[mask] = 0", cleared, {}, make=with_mask),
    Function("x[index]", lambda xp, x, index: x[index], {}, make=with_positions),
    Function(
        "x[rows, columns]",
        lambda xp, x, rows, columns: x[rows, columns],
        {},
        columns=256,
        make=with_pairs,
    ),
    Function("x[index] = 0", cleared, {}, make=with_positions),
    drawn("random", lambda torch, n, device: torch.rand(n, device=device), dtype=np.float32),
    drawn(
        "standard_normal", lambda torch, n, device: torch.randn(n, device=device), dtype=np.float32
    ),
    drawn(
        "integers",
        lambda torch, n, device: torch.randint(0, 1000, (n,), device=device),
        low=0,
        high=1000,
    ),
    PERMUTATION,
]


def put(library: str, x: np.ndarray, device: str) -> Any:
    """Return an array of a library on "cpu" or "cuda"."""
    module = importlib.import_module(library)
    if library == "torch":
        return module.from_numpy(x.copy()).to(device)
    return module.asarray(x, device=device) if library == "cuplug" else module.array(x)


def get(library: str, x: Any) -> np.ndarray:
    """Return an array of a library as a NumPy array."""
    if library == "cupy":
        return x.get()
    return np.asarray({"torch": lambda: x.cpu().numpy(), "cuplug": x.numpy}[library]())


@dataclass(frozen=True)
class Case:
    """A function on arrays, and its expected result; None if it is not checked.

    Of the largest arrays, a part is created and then extended on the device.
    """

    function: Function
    n: int
    arrays: list[np.ndarray]
    expected: np.ndarray | None

    @property
    def title(self) -> str:
        size = f"{self.n // KI} Ki" if self.n < MI else f"{self.n // MI} Mi"
        return f"{self.function.name}, {size}"

    def checked(self, result: np.ndarray) -> np.ndarray:
        """Return the expected result if the computed one is close enough."""
        assert self.expected is not None
        if alike(result, self.expected):
            return result  # most functions are decided quickly
        is_near = alike(result, self.expected, partial(np.allclose, rtol=NEAR))
        return self.expected if is_near else result

    def call(self, library: str, device: str) -> tuple[Call, Call | None]:
        """Return the computation, and a function that returns the result."""
        module = importlib.import_module(MODULES[library])
        arrays = [put(library, x, device) for x in self.arrays]
        if self.n > PART:
            arrays = grown(library, arrays, self.n // PART)
        call = partial(self.function.of(library), module, *arrays)
        if self.expected is None or library == "numpy":  # the result is the expected one
            return call, None
        return call, lambda: self.checked(get(library, call()))


def case_of(function: Function, n: int) -> Case:
    """Return a function on n elements. The results of the largest sizes are not checked."""
    arrays = function.arrays(min(n, PART))
    is_known = n <= PART and not function.is_random
    copies = [x.copy() for x in arrays] if is_known else []
    expected = np.asarray(function.of("numpy")(np, *copies)) if is_known else None
    return Case(function, n, arrays, expected)


def cases(sizes: list[int], memory: int) -> Iterator[Case]:
    """Yield each function on each size, the smallest first."""
    for n in sizes:
        makes = (partial(case_of, function, n) for function in FUNCTIONS)
        yield from in_groups(makes, min(n, PART) * BYTES_EACH, memory)


def compilations(has_gpu: bool) -> Iterator[Call]:
    """Yield calls of the functions on few elements, in the libraries that compile at run time."""
    devices = {"cpu": ["cuplug"], **({"cuda": ["cuplug", "cupy"]} if has_gpu else {})}
    for function, device in itertools.product(FUNCTIONS, devices):
        case = case_of(function, KI)
        yield from (partial(once, case, library, device) for library in devices[device])


def once(case: Case, library: str, device: str) -> None:
    """Call a function once."""
    case.call(library, device)[0]()


def on_host(case: Case) -> Comparison:
    """Return the comparison with NumPy and PyTorch on the CPU."""
    wanted = [Target("cuplug", "<= the best peer", ("numpy", "torch"))]
    comparison = Comparison(f"{case.title}, CPU", "us", "numpy", wanted, case.expected)
    comparison.pause_s = SETTLED_S if case.n > KI else 0  # none of them uses threads

    def prepare(library: str) -> Contender:
        call, result = case.call(library, "cpu")
        return statement("call()", result, call=call)

    for library in ("cuplug", "numpy", "torch"):
        comparison.add(library, partial(prepare, library))
    return comparison


def on_device(timer: DeviceTimer, case: Case) -> Comparison:
    """Return the comparison with PyTorch and CuPy."""
    wanted = [Target("cuplug", "<= the best peer", ("torch", "cupy"))]
    comparison = Comparison(f"{case.title}, GPU", "us", "torch", wanted, case.expected)

    def prepare(library: str) -> Contender:
        call, result = case.call(library, "cuda")
        return timer.contender(itertools.repeat(call), result=result)

    for library in ("cuplug", "torch", "cupy"):
        comparison.add(library, partial(prepare, library))
    return comparison


def measure(run: Run) -> None:
    """Functions of cuplug.Array on 1 Ki to 1 Gi elements, on the host and on the device."""
    try:
        driver = Driver()
    except Skip:
        driver = None
    sizes = [KI, MI] if run.quick else [KI, MI, PART, *([GI] if driver else [])]
    sizes = [n for n in sizes if min(n, PART) * BYTES_EACH + GIB < run.memory]
    timer = DeviceTimer(driver) if driver else None
    at_once(compilations(bool(driver)))
    left = len(FUNCTIONS) * sum((n <= PART) + bool(driver) for n in sizes)
    for case in cases(sizes, run.memory):
        run.min_rounds = 3 if case.n > MI else run.min_rounds
        if case.n <= PART:
            left -= 1
            run.measure(on_host(case), left)
        if timer:
            left -= 1
        if timer and case.n * 60 < timer.driver.free_bytes():
            run.measure(on_device(timer, case), left)


if __name__ == "__main__":
    run_module(measure)

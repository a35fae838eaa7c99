# SPDX-License-Identifier: Apache-2.0
"""The stock operators next to CUB's and Thrust's functions for the same work.

The toolkit's CCCL is used. Set NVCC_PREPEND_FLAGS=-I<folder> to use another version.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import native
import numpy as np
from driver import DeviceTimer, Driver
from measurement import Comparison, Contender, Skip, Target
from module import GIB, Run, run_module

MI = 1 << 20
RUNS = 10  # runs whose bits are compared with the first run
NEAR = 1e-4  # of sums
CODE = {  # for an operator: the library, its files, and CUB's kernels
    "sort": ("libsorting.so", "sorting|keys|merge|short|tiles|radix|restore|counting", "_sort"),
    "cumulative_sum": ("libscan.so", "scan|single_pass|block_per_line|columns", "_scan|4scan"),
    "select": ("libindexing.so", "selection", "6select"),
    "unique_values": ("libsorting.so", "unique|unique_small", "reduce_by_key"),
    "histogram": ("libindexing.so", "histogram", "9histogram"),
    "topk": ("libsorting.so", "topk|radix_select", "topk"),
}


def values_of(result: Any) -> Any:
    """Return the first output."""
    return result[0] if isinstance(result, tuple) else result


def first_of(result: Any) -> Any:
    """Return as many elements of the first output as the second output states."""
    return result[0][: int(result[1])]


@dataclass(frozen=True)
class Case:
    """A piece of work, the call of each contender, and a function that reads CUB's values."""

    name: str
    size: str
    ours: Callable[[], Any]
    cub: Callable[[], Any]
    of_cub: Callable[[Any], Any] = values_of
    is_sorted: bool = True
    n_bytes: int | None = None


def cases(cub: Any) -> Iterator[Case]:
    """Yield the work; `cub` is the plugin with the CUB functions."""
    import torch
    from cuplug import ops

    torch.manual_seed(0)
    x = torch.rand(64 * MI, device="cuda")
    mask = torch.rand(64 * MI, device="cuda") < 0.3
    few = torch.randint(0, 1000, (16 * MI,), device="cuda").float()
    sorted_x, values = x[: 1 << 16].sort().values, x[:MI].clone()

    for m, n in ((1, 64 * MI), (1, MI), (8192, 8192), (1 << 16, 1024), (1 << 19, 128)):
        rows, size = x[: m * n].view(m, n), f"{m:,} x {n:,}"
        yield Case("sort", size, partial(ops.sort, rows), partial(cub.cub_sort, rows))
        yield Case(
            "cumulative_sum",
            size,
            partial(ops.cumulative_sum, rows),
            partial(cub.cub_cumulative_sum, rows),
            n_bytes=8 * m * n,
        )
    line = x[: 16 * MI]
    yield Case("argsort", "16 Mi", partial(ops.argsort, line), partial(cub.cub_argsort, line))
    for n in (MI, 64 * MI):
        size, part = f"{n // MI} Mi", (x[:n], mask[:n])
        yield Case(
            "select", size, partial(ops.select, *part), partial(cub.cub_select, *part), first_of
        )
        ours = partial(ops.histogram, part[0], bins=256, low=0.0, high=1.0)
        yield Case("histogram", size, ours, partial(cub.cub_histogram, part[0], 256))
    for title, given in (("16 Mi, all different", line), ("16 Mi, 1,000 different", few)):
        yield Case(
            "unique_values",
            title,
            partial(ops.unique_values, given),
            partial(cub.cub_unique_values, given),
            first_of,
        )
    found = partial(cub.cub_searchsorted, sorted_x, values)
    yield Case("searchsorted", "1 Mi in 64 Ki", partial(ops.searchsorted, sorted_x, values), found)
    for m, n, k in ((1, 64 * MI, 64), (1, MI, 64), (16384, 4096, 8), (16384, 4096, 64)):
        rows = x[: m * n].view(m, n)
        ours = partial(ops.topk, rows, k)
        size = f"{k} of {n:,}, {m:,} rows"
        try:
            theirs = partial(cub.cub_topk, rows, k)
        except AttributeError:
            continue  # before CCCL 3.3
        yield Case("topk", size, ours, theirs, is_sorted=False)


def same_bits(bits: Callable[[], Any]) -> str:
    """Return whether values, on the device, have the same bits each time."""
    expected = bits().cpu().numpy().tobytes()
    return "yes" if all(bits().cpu().numpy().tobytes() == expected for _ in range(RUNS)) else "no"


def code_bytes(library: Path, files: str, kernels: str) -> int:
    """Return the bytes of machine code in a library's kernels whose file and name match."""
    from elftools.elf.elffile import ELFFile

    total = 0
    with tempfile.TemporaryDirectory() as folder:
        command = ["cuobjdump", "-xelf", "all", str(library)]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for cubin in Path(folder).iterdir():
            if not re.fullmatch(files, cubin.name.split(".")[0]):
                continue
            with cubin.open("rb") as stream:
                for section in ELFFile(stream).iter_sections():
                    if section.name.startswith(".text.") and re.search(kernels, section.name):
                        total += section["sh_size"]
    return total


def settings(name: str, stock: Path, cub: Path) -> dict[str, str]:
    """Return the sizes of both contenders' machine code."""
    if name not in CODE or not shutil.which("cuobjdump"):
        return {}
    library, files, kernels = CODE[name]
    ours, theirs = code_bytes(stock / library, files, ""), code_bytes(cub, ".*", kernels)
    text = f"cuplug {ours >> 10:,} KiB for all dtypes, CUB {theirs >> 10:,} KiB for float32"
    return {"machine code": text}


def compare(timer: DeviceTimer, case: Case, settings: dict[str, str]) -> Comparison:
    """Return the comparison of a case."""
    target = Target("cuplug", "<= CUB", ("CUB",))
    title = f"{case.name}, {case.size}, next to CUB"
    comparison = Comparison(title, "us", "CUB", (target,), n_bytes=case.n_bytes)
    comparison.settings.update(settings)
    comparison.expected = np.array([True])
    read = {"cuplug": lambda: values_of(case.ours()), "CUB": lambda: case.of_cub(case.cub())}

    def values(name: str) -> Any:
        found = read[name]().double()
        return found if case.is_sorted else found.sort(-1).values

    expected = values("CUB")

    def contender(name: str, call: Callable[[], Any]) -> Contender:
        def result() -> np.ndarray:
            difference = float((values(name) - expected).abs().max())
            return np.array([difference <= NEAR * (1 + float(expected.abs().max()))])

        return timer.contender(itertools.repeat(call), result=result)

    for name, call in (("cuplug", case.ours), ("CUB", case.cub)):
        comparison.settings[f"same bits in {RUNS} more runs of {name}"] = same_bits(read[name])
        comparison.add(name, partial(contender, name, call))
    return comparison


def measure(run: Run) -> None:
    """Sorting, scans, selection and histograms on the GPU, next to CUB's functions."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        raise Skip(f"PyTorch makes the arrays: {error}") from None
    run.require_memory(GIB)
    import cuplug

    timer, library = DeviceTimer(Driver()), native.plugin("cub")
    stock = Path(cuplug.__file__).parent / "lib" / "cuplug"
    code = {name: settings(name, stock, library) for name in CODE}
    every = cases(cuplug.load(str(library)))
    run.measure_all(partial(compare, timer, case, code.get(case.name, {})) for case in every)


if __name__ == "__main__":
    run_module(measure)

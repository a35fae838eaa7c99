# SPDX-License-Identifier: Apache-2.0
"""Gather and scale the rows of a Zarr store that is larger than memory, block by block.

    python larger_than_memory.py --gigabytes 64 --folder /data/store --workers 4

Each worker reads a block, copies it to its GPU, computes there, and writes the result. Without a
GPU, it computes on its CPUs. The rate is printed next to the rate of only reading and writing,
which is the maximum of the machine's storage and memory. If the program was killed, the same
command with --resume computes the missing blocks: Zarr writes a block to a temporary file and
renames it.
"""

import shutil
import time
from collections.abc import Callable
from pathlib import Path

import click
import cuplug
import dask.array as da
import numpy as np
import zarr
from cuplug.dask import gather, piecewise_scale

N_ROWS = 1 << 16
N_KEPT = N_ROWS // 4


def make_store(folder: Path, n_bytes: int, block_bytes: int, resume: bool = False) -> da.Array:
    """Write rows of random numbers. Each block has all rows of some columns."""
    n_columns = max(1, n_bytes // (4 * N_ROWS))
    x = da.random.default_rng(1).random(
        (N_ROWS, n_columns), dtype="float32", chunks=(N_ROWS, max(1, block_bytes // (4 * N_ROWS)))
    )
    write(folder / "source", x - 0.5, resume)
    return da.from_zarr(str(folder / "source"))


def write(path: Path, x: da.Array, resume: bool) -> int:
    """Write all blocks to a new array on disk, or its missing ones; return their number."""
    if not (resume and (path / "zarr.json").exists()):
        options = {"dtype": "float32", "compressors": None, "overwrite": True}
        zarr.create_array(str(path), shape=x.shape, chunks=x.chunksize, **options)
    left = [k for k in range(x.numblocks[1]) if not (path / f"c/0/{k}").exists()]
    if left:
        target, n = zarr.open_array(str(path)), x.chunksize[1]
        regions = [(slice(None), slice(k * n, min((k + 1) * n, x.shape[1]))) for k in left]
        da.store([x.blocks[:, k] for k in left], [target] * len(left), regions=regions, lock=False)
    return len(left)


def n_gpus() -> int:
    """Return the number of GPUs that this process sees."""
    return len(cuplug.devices())


def to_gpu(block: np.ndarray) -> object:
    """Copy a block to the GPU that this worker sees, if any."""
    return cuplug.asarray(block, device="cuda") if n_gpus() else block


def to_host(block: object) -> np.ndarray:
    """Copy a block back."""
    return block if isinstance(block, np.ndarray) else block.numpy()


def gathered(x: da.Array, index: np.ndarray) -> da.Array:
    """Return the computation: four steps, which become two tasks for each block."""
    on_gpu = x.map_blocks(to_gpu, dtype=x.dtype, meta=x._meta)
    y = piecewise_scale(gather(on_gpu, index))
    return y.map_blocks(to_host, dtype=y.dtype, meta=y._meta)


def copied(x: da.Array) -> da.Array:
    """Read and write the same amount without a computation."""
    return x.map_blocks(lambda block: block[:N_KEPT], chunks=((N_KEPT,), x.chunks[1]))


def rate(
    path: Path, x: da.Array, make: Callable[[da.Array], da.Array], resume: bool = False
) -> tuple[float, int]:
    """Return the rate of reading, computing and writing blocks in GB/s, and their number."""
    y = make(x)
    start = time.perf_counter()
    n_blocks = write(path, y, resume)
    share = n_blocks / y.npartitions
    return share * (x.nbytes + y.nbytes) / 1e9 / (time.perf_counter() - start), n_blocks


def check(folder: Path, x: da.Array, index: np.ndarray) -> None:
    """Compare the first and the last column that were written with NumPy."""
    result = zarr.open_array(str(folder / "result"), mode="r")
    for column in (0, x.shape[1] - 1):
        v = x[:, column].compute()[index]
        wanted = np.where(v < 0, v * np.float32(0.5), v * np.float32(2))  # as all are below 1
        np.testing.assert_array_equal(result[:, column], wanted)


def work(folder: Path, n_bytes: int, block_bytes: int, resume: bool = False) -> None:
    """Create the store, process it, and print the rates."""
    x = make_store(folder, n_bytes, block_bytes, resume)
    index = np.random.default_rng(2).integers(0, N_ROWS, N_KEPT, dtype="int32")
    print(f"{x.nbytes / 1e9:.3g} GB in {x.npartitions} blocks, {n_gpus()} GPUs")
    limit, _ = rate(folder / "copy", x, copied)
    shutil.rmtree(folder / "copy")
    seen, n_blocks = rate(folder / "result", x, lambda x: gathered(x, index), resume)
    print(f"gathered and scaled: {seen:.2f} GB/s; read and written alone: {limit:.2f} GB/s")
    if resume:
        print(f"{x.npartitions - n_blocks} blocks were there")
    check(folder, x, index)


@click.command()
@click.option("--gigabytes", default=1.0, help="The size of the store.")
@click.option("--folder", default="store", type=click.Path(path_type=Path))
@click.option("--workers", default=0, help="How many; 0: one for each GPU, or one.")
@click.option("--threads", default=2, help="Of each worker.")
@click.option("--block", default=128, help="The size of a block, in megabytes.")
@click.option("--memory", default="auto", help='The limit of each worker: "4 GB".')
@click.option("--keep", is_flag=True, help="Leave the store there.")
@click.option("--resume", is_flag=True, help="Keep the blocks that are there.")
def main(
    gigabytes: float,
    folder: Path,
    workers: int,
    threads: int,
    block: int,
    memory: str,
    keep: bool,
    resume: bool,
) -> None:
    """Gather and scale a store block by block, through all GPUs."""
    from dask_gpus import start

    with start(workers or n_gpus() or 1, threads, memory) as client, client.cluster:
        work(folder.absolute(), int(gigabytes * 1e9), block * 10**6, resume)
    if not keep:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()

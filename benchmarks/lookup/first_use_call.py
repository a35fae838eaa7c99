# SPDX-License-Identifier: Apache-2.0
"""Print the microseconds of the first call of an operator in this process: host, own or torch.

Imports, arrays and the CUDA context come before the clock starts. The look-up of the operator is
timed.
"""

import sys
import time

import cuplug
import numpy as np
from cuplug import find

EXPECTED = 1.5


def arrays(kind: str) -> list:
    """Return x, y and z, of 16 floats each, for NumPy, cuplug or PyTorch."""
    values = [np.full(16, value, np.float32) for value in (1.0, 0.5, np.nan)]
    if kind == "torch":
        import torch

        return [torch.from_numpy(value).cuda() for value in values]
    if kind == "own":
        return [cuplug.asarray(value, device="cuda") for value in values]
    return values


def main(kind: str) -> None:
    """Time the first call and check its results."""
    x, y, z = arrays(kind)
    if kind != "host":
        cuplug.synchronize()
    start_ns = time.perf_counter_ns()
    if kind == "host":
        find("noop.noop3")(x, y, z)
    else:
        find("add3")(x, y, out=z)
        cuplug.synchronize()
    elapsed_us = (time.perf_counter_ns() - start_ns) / 1e3
    seen = {"host": lambda: EXPECTED, "torch": lambda: z.cpu()[0], "own": lambda: z.numpy()[0]}
    if float(seen[kind]()) != EXPECTED:
        sys.exit("the operator computed something else")
    print(elapsed_us)


if __name__ == "__main__":
    main(sys.argv[1])

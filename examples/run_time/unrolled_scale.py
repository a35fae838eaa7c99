# SPDX-License-Identifier: Apache-2.0
"""Source that Python writes: a kernel with its loop unrolled 1, 2, 4 and 8 times, on 2,000,000
numbers. A template does the same: see `names=["scale<4>"]` in docs/run-time-compilation.md."""

import cuplug
import numpy as np

N_THREADS = 256


def source(unroll: int) -> str:
    """Return the kernel whose threads scale `unroll` numbers each."""
    lines = [f"  if (i + {k} * step < n) x[i + {k} * step] *= factor;" for k in range(unroll)]
    body = "\n".join(lines)
    return f"""
extern "C" __global__ void scale(float *x, float factor, long long n) {{
  const long long step = blockDim.x;
  const long long i = (long long)blockIdx.x * step * {unroll} + threadIdx.x;
{body}
}}
"""


def main(n: int = 2_000_000) -> dict[int, np.ndarray]:
    """Scale n numbers with each kernel; return the results by the unroll factor."""
    x = np.arange(n, dtype=np.float32)
    results = {}
    for unroll in (1, 2, 4, 8):
        scale = cuplug.compile(source(unroll), name=f"scale_{unroll}.cu")["scale"]
        on_gpu = cuplug.asarray(x)
        n_blocks = -(-n // (N_THREADS * unroll))
        scale[n_blocks, N_THREADS](on_gpu, 0.5, n)
        results[unroll] = on_gpu.numpy()
        assert np.array_equal(results[unroll], x / 2)
    return results


if __name__ == "__main__":
    for factor, result in main().items():
        print(f"unrolled {factor} times: {result[:5]} ...")

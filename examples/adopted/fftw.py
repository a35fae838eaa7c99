# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms by FFTW: a plan is a handle, created once and destroyed once.

Debian: apt install libfftw3-double3.
"""

import cuplug
import numpy as np

PROTOTYPES = """
enum { FFTW_FORWARD = -1, ESTIMATE_AND_UNALIGNED = 64 | 2 };
typedef struct fftw_plan_s *fftw_plan;
fftw_plan fftw_plan_dft_1d(int n, double _Complex *in, double _Complex *out, int sign,
                           unsigned flags);
void fftw_execute_dft(fftw_plan plan, double _Complex *in, double _Complex *out);
void fftw_destroy_plan(fftw_plan plan);
"""

fftw = cuplug.adopt(
    "libfftw3.so.3",
    {
        "prototypes": PROTOTYPES,
        # FFTW plans with its own memory. Only fftw_execute may run on several threads.
        "plan": {
            "function": "fftw_plan_dft_1d",
            "signature": "plan(n: int) -> handle[plan] where n >= 1",
            "arguments": "n, in, out, FFTW_FORWARD, ESTIMATE_AND_UNALIGNED",
            "scratch": "in: complex128[n]; out: complex128[n]",
            "returns": "plan",
            "destroy": "fftw_destroy_plan",
            "lock": "library",
        },
        # A plan does not contain its size: plan(8) is for rows of 8.
        "execute": {
            "function": "fftw_execute_dft",
            "signature": "execute(plan: handle[plan], x: complex128[..., n]) "
            "-> y: complex128[..., n]",
            "arguments": "plan, x, y",
        },
    },
)


def main() -> None:
    rows = np.arange(16.0).reshape(2, 8).astype(complex)
    with fftw.plan(8) as plan:
        print(plan)
        print("fft", fftw.execute(plan, rows)[0].round(6).tolist())
    try:
        fftw.execute(plan, rows)
    except ValueError as error:
        print(error)


if __name__ == "__main__":
    main()

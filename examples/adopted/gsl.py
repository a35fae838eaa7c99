# SPDX-License-Identifier: Apache-2.0
"""Statistics, Fourier transforms and special functions by the GNU Scientific Library.

Debian: apt install libgsl27.
"""

import cuplug
import numpy as np

# A complex number is two doubles there, and a result a value with its error.
PROTOTYPES = """
typedef struct { double dat[2]; } gsl_complex;
typedef struct { double val, err; } gsl_sf_result;
double gsl_stats_mean(const double *data, size_t stride, size_t n);
int gsl_fft_complex_radix2_forward(gsl_complex *data, size_t stride, size_t n);
int gsl_sf_bessel_J0_e(double x, gsl_sf_result *result);
"""

gsl = cuplug.adopt(
    "libgsl.so.27",
    {
        "prototypes": PROTOTYPES,
        "mean": {
            "function": "gsl_stats_mean",
            "signature": "mean(x: float64[..., n]) -> r: float64[...]",
            "arguments": "x, 1, n",
            "returns": "r",
        },
        "fft": {
            "function": "gsl_fft_complex_radix2_forward",
            "signature": "fft(inout z: complex128[..., n])",
            "arguments": "z, 1, n",
        },
        "bessel_j0": {
            "function": "gsl_sf_bessel_J0_e",
            "signature": "bessel_j0(x: float) -> value_and_error: float64[2]",
            "arguments": "x, value_and_error",
        },
    },
)


def main() -> None:
    rows = np.arange(8.0).reshape(2, 4)
    print("means", gsl.mean(rows).tolist())
    z = rows.astype(complex)
    gsl.fft(z)
    print("fft", z[0].round(6).tolist())
    print("J0(1) =", round(float(gsl.bessel_j0(1.0)[0]), 6))


if __name__ == "__main__":
    main()

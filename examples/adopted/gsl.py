# SPDX-License-Identifier: Apache-2.0
"""Statistics, Fourier transforms, special functions and integrals by the GNU Scientific Library.

Debian: apt install libgsl27.
"""

import math

import cuplug
import numpy as np

# In GSL, a complex number is two doubles, and a result is a value with its error.
PROTOTYPES = """
typedef struct { double dat[2]; } gsl_complex;
typedef struct { double val, err; } gsl_sf_result;
double gsl_stats_mean(const double *data, size_t stride, size_t n);
int gsl_fft_complex_radix2_forward(gsl_complex *data, size_t stride, size_t n);
int gsl_sf_bessel_J0_e(double x, gsl_sf_result *result);

typedef double (*integrand)(double x, void *params);
typedef struct { integrand function; void *params; } gsl_function;
typedef struct gsl_integration_workspace gsl_integration_workspace;
gsl_integration_workspace *gsl_integration_workspace_alloc(size_t n);
void gsl_integration_workspace_free(gsl_integration_workspace *workspace);
int gsl_integration_qags(const gsl_function *f, double a, double b, double epsabs, double epsrel,
                         size_t limit, gsl_integration_workspace *workspace, double *result,
                         double *error);
void *gsl_set_error_handler_off(void);
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
        # By default, GSL ends the process on an error. This makes it return errors.
        "return_errors": {
            "function": "gsl_set_error_handler_off",
            "signature": "return_errors()",
            "arguments": "",
            "returns": "ignored",
        },
        # A function of Python or of C, which GSL calls.
        "integrand": {
            "callback": "integrand",
            "signature": "integrand(x: float) -> y: float64[]",
            "arguments": "x, _",
            "returns": "y",
        },
        "workspace": {
            "function": "gsl_integration_workspace_alloc",
            "signature": "workspace(n: int) -> handle[workspace]",
            "arguments": "n",
            "returns": "workspace",
            "destroy": "gsl_integration_workspace_free",
        },
        # One call at a time may use a workspace.
        "integrate": {
            "function": "gsl_integration_qags",
            "signature": "integrate(f: handle[integrand], a: float, b: float, "
            "workspace: handle[workspace], limit: int) -> (value: float64[], error: float64[])",
            "arguments": "g, a, b, 0.0, 1e-9, limit, workspace, value, error",
            "scratch": "g: gsl_function = {f, NULL}",
            "lock": "library",
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
    gsl.return_errors()
    workspace = gsl.workspace(100)
    for f in (lambda x: math.log(x) / math.sqrt(x), "log(x) / sqrt(x)"):
        value, _ = gsl.integrate(gsl.integrand(f), 0, 1, workspace, 100)
        print("integral", round(float(value), 6))


if __name__ == "__main__":
    main()

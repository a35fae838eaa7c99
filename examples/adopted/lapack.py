# SPDX-License-Identifier: Apache-2.0
"""Linear systems and eigenvalues by LAPACK, which has Fortran functions.

Each takes numbers by address and matrices by columns, and stores its status in the last argument.
Debian: apt install liblapack3.
"""

import cuplug
import numpy as np

PROTOTYPES = """
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv, double *b,
            const int *ldb, int *info);
void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
            double *work, const int *lwork, int *info);
"""

lapack = cuplug.adopt(
    "liblapack.so.3",
    {
        "prototypes": PROTOTYPES,
        "solve": {
            "function": "dgesv_",
            "signature": "solve(inout a: float64[n, n], inout b: float64[n, k])",
            "arguments": "n, k, a, n, pivots, b, n, status",
            "scratch": "pivots: int32[n]",
            "order": "fortran",
            "doc": "Solve a @ x = b; a becomes its factors, b becomes x.",
        },
        # A stack of matrices, one call for each.
        "eigenvalues": {
            "function": "dsyev_",
            "signature": "eigenvalues(a: float64[..., n, n]) -> values: float64[..., n]",
            "arguments": '"N", "U", n, a, n, values, work, lwork, status',
            "scratch": "work: float64[lwork]",
            "order": "fortran",
            "doc": "Compute the eigenvalues of symmetric matrices, in ascending order.",
        },
    },
)


def main() -> None:
    a, b = np.array([[2.0, 1], [1, 3]]), np.array([[3.0], [5]])
    x = b.copy()
    lapack.solve(a.copy(), x)
    print("x =", x.ravel().round(6).tolist(), "residual", float(abs(a @ x - b).max().round(12)))
    print("eigenvalues", lapack.eigenvalues(np.stack([a, 2 * a])).round(6).tolist())
    try:
        lapack.solve(np.zeros((2, 2)), b.copy())
    except cuplug.PluginError as error:
        print(error)


if __name__ == "__main__":
    main()

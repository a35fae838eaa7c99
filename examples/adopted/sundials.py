# SPDX-License-Identifier: Apache-2.0
"""Differential equations by CVODE of SUNDIALS, with the right-hand side in Python or in C.

Debian: apt install libsundials-dev.
"""

import cuplug
import numpy as np

# CVODE passes its own vectors. A C function between reads the arrays in them.
SOURCE = """
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

typedef int rhs(double t, const double *y, double *dydt, long n);

static int call(double t, N_Vector y, N_Vector dydt, void *f) {
  return (*(rhs **)f)(t, N_VGetArrayPointer(y), N_VGetArrayPointer(dydt), N_VGetLength(y));
}

static int run(void *cvode, N_Vector y, rhs **f, double tolerance, SUNLinearSolver solver,
               SUNMatrix matrix, const double *times, int n_times, double *found, long n) {
  double t;
  int status = CVodeInit(cvode, call, 0, y);
  if (!status) status = CVodeSetUserData(cvode, f);
  if (!status) status = CVodeSStolerances(cvode, tolerance, tolerance);
  if (!status) status = CVodeSetLinearSolver(cvode, solver, matrix);
  for (int k = 0; k < n_times && status >= 0; k++) {
    status = CVode(cvode, times[k], y, &t, CV_NORMAL);
    for (long i = 0; i < n; i++) found[k * n + i] = N_VGetArrayPointer(y)[i];
  }
  return status < 0 ? status : 0;
}

int solve(rhs *f, const double *start, const double *times, double tolerance, double *found,
          long n, int n_times) {
  SUNContext context;
  if (SUNContext_Create(NULL, &context)) return -1;
  N_Vector y = N_VNew_Serial(n, context);
  for (long i = 0; i < n; i++) N_VGetArrayPointer(y)[i] = start[i];
  SUNMatrix matrix = SUNDenseMatrix(n, n, context);
  SUNLinearSolver solver = SUNLinSol_Dense(y, matrix, context);
  void *cvode = CVodeCreate(CV_BDF, context);
  CVodeSetErrFile(cvode, NULL);
  int status = run(cvode, y, &f, tolerance, solver, matrix, times, n_times, found, n);
  CVodeFree(&cvode);
  SUNLinSolFree(solver);
  SUNMatDestroy(matrix);
  N_VDestroy(y);
  SUNContext_Free(&context);
  return status;
}
"""

sundials = cuplug.adopt(
    "libsundials_cvode.so.6",
    {
        "source": SOURCE,
        "options": [
            "-lsundials_nvecserial",
            "-lsundials_sunmatrixdense",
            "-lsundials_sunlinsoldense",
        ],
        "prototypes": """
            typedef int (*rhs)(double t, const double *y, double *dydt, long n);
            int solve(rhs f, const double *start, const double *times, double tolerance,
                      double *found, long n, int n_times);
        """,
        "rhs": {
            "callback": "rhs",
            "signature": "rhs(t: float, y: float64[n]) -> dydt: float64[n]",
            "arguments": "t, y, dydt, n",
        },
        "solve": {
            "signature": "solve(f: handle[rhs], start: float64[n], times: float64[k], "
            "tolerance: float = 1e-8) -> y: float64[k, n]",
            "arguments": "f, start, times, tolerance, y, n, k",
        },
    },
)


def main() -> None:
    times = np.linspace(1, 3, 3)
    swing = sundials.rhs(lambda t, y: [y[1], -y[0]])
    print("cos", sundials.solve(swing, np.array([1.0, 0]), times)[:, 0].round(5).tolist())
    compiled = sundials.rhs("dydt[0] = y[1]; dydt[1] = -y[0];")
    print("cos", sundials.solve(compiled, np.array([1.0, 0]), times)[:, 0].round(5).tolist())
    try:
        sundials.solve(sundials.rhs(lambda t, y: 1 / 0), np.array([1.0]), times)
    except ZeroDivisionError as error:
        print(error)


if __name__ == "__main__":
    main()

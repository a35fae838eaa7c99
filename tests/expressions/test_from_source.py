# SPDX-License-Identifier: Apache-2.0
"""Complete operators from source: a kernel, a function, and their arguments."""

import pickle
import re

import cuplug
import numpy as np
import pytest
from backends import COMPLEX, FLOAT8, FLOATING, assert_same, dtype_of

SIGNATURE = "pick(x: T[n], index: I[m]) -> y: T[m] where T: any, I: int32 | int64"
CUDA = """
__global__ void pick_kernel(const T *x, const I *index, T *y, int64_t n, int m,
                            cuplug_fault *fault) {
  int64_t k = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (k >= m) return;
  if (index[k] < 0 || index[k] >= n) return cuplug_fault_index(fault, 1, k, index[k], 0, n);
  y[k] = x[index[k]];
}
"""
HOST = """
void pick(const T *x, const I *index, T *y, int64_t n, int64_t m, cuplug_fault *fault) {
  for (int64_t k = 0; k < m; k++) {
    if (index[k] < 0 || index[k] >= n) return cuplug_fault_index(fault, 1, k, index[k], 0, n);
    y[k] = x[index[k]];
  }
}
"""
ARGUMENTS = "x, index, y, n, m, fault"


def pick(**changes):
    settings = {"arguments": ARGUMENTS, "cuda": CUDA, "host": HOST, "kernel": "pick_kernel"}
    return cuplug.operator(
        SIGNATURE,
        **{**settings, "threads": "m", **changes},
    )


@pytest.mark.sanitizer
@pytest.mark.parametrize("dtype", [*FLOATING, *FLOAT8, *COMPLEX, "int8", "bool"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_pick(backend, dtype, index):
    x, at = np.arange(100).astype(dtype_of(dtype)), np.array([3, 1, 99], index)
    if not backend.supports(x.dtype):
        pytest.skip(f"{backend.name} has no {dtype}")
    assert_same(backend(pick(), x, at), x[at])
    assert_same(backend(pick(), x, at[:0]), x[:0])


@pytest.mark.parametrize("side", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_faults(side):
    message = "pick: index: index 7 at position 1 is out of bounds for size 5"
    with pytest.raises(IndexError, match=message):
        pick()(np.zeros(5), np.array([0, 7]), device=side)
    assert pick()(np.ones(5), np.array([0]), device=side).tolist() == [1]


def test_one_side_alone():
    with pytest.raises(ValueError, match="no CUDA entry|expected"):
        pick(cuda=None, threads=None)(np.zeros(5), np.array([0]), device="cuda")
    assert pick(cuda=None, threads=None).device_types == ("cpu",)
    assert pick(host=None).device_types == ("cuda",)


def test_complex_scalars():
    scale = cuplug.operator(
        "scale(x: T[n], a: T) -> y: T[n] where T: complex64 | complex128",
        arguments="x, a, y, n",
        host="void scale(const T *x, T a, T *y, int64_t n) {"
        " for (int64_t k = 0; k < n; k++) y[k] = a * x[k]; }",
    )
    for dtype in COMPLEX:
        x = np.array([1, 2j, 3 - 1j], dtype)
        assert_same(scale(x, 1 - 2j), x * np.array(1 - 2j, dtype))


def test_arguments_are_worked_out():
    f = cuplug.operator(
        "f(x: float64[n, m], *, k: int = 2) -> y: int64[3]".replace(" *,", ""),
        arguments="y, n * m - 1, size(x) // k % 5, min(n, k) + max(m, size(x, -1)), k",
        host="""int f(int64_t *y, int64_t a, int64_t b, int64_t c, int k) {
  y[0] = a; y[1] = b; y[2] = c + 100 * k;
  return 0;
}""",
    )
    x = np.zeros((3, 4))
    assert f(x).tolist() == [11, 1, 206]
    assert f(x, k=5).tolist() == [11, 2, 507]


def test_functions_may_return_a_status():
    f = cuplug.operator(
        "f(x: float64[n])",
        arguments="n",
        host="int f(int64_t n) { return n > 2 ? CUPLUG_ERROR_VALUE : CUPLUG_OK; }",
    )
    f(np.zeros(2))
    with pytest.raises(ValueError, match="f: the plugin failed"):
        f(np.zeros(3))


SHARED = """
#include <pthread.h>
typedef struct job { const cuplug_call *call; const float *x; float *y; int64_t *thread; } job;

static int double_range(void *context, int64_t begin, int64_t end) {
  const job *j = context;
  for (int64_t k = begin; k < end; k++) {
    if (j->x[k] < 0)
      return cuplug_fail(j->call, CUPLUG_ERROR_VALUE, "x: got less than 0, expected more");
    j->y[k] = 2 * j->x[k];
    j->thread[k] = (int64_t)pthread_self();
  }
  return CUPLUG_OK;
}

int doubled(const float *x, const cuplug_call *call, float *y, int64_t *thread, int64_t n) {
  job shared = {call, x, y, thread};
  return cuplug_parallel(call, n, 1024, double_range, &shared);
}
"""


def test_functions_share_loops_among_threads():
    """Each range has its own `call` and one thread, and may fail with a message."""
    doubled = cuplug.operator(
        "doubled(x: float32[n]) -> (y: float32[n], thread: int64[n])",
        arguments="x, call, y, thread, n",
        host=SHARED,
    )
    x = np.arange(100_000, dtype=np.float32)
    y, thread = doubled(x)
    assert np.array_equal(y, 2 * x)
    assert all(len(set(thread[k : k + 1024])) == 1 for k in range(0, x.size, 1024))
    x[50_000] = -1
    with pytest.raises(ValueError, match="^doubled: x: got less than 0, expected more$"):
        doubled(x)


def test_a_dimension_may_be_called_call():
    f = cuplug.operator(
        "f(x: float32[call]) -> y: int64[]",
        arguments="y, call",
        host="void f(int64_t *y, int64_t call) { *y = call; }",
    )
    assert f(np.zeros(7, np.float32)) == 7


WRONG = {
    ("arguments", "x, q"): "pick: arguments: got q, expected a parameter, or a dim",
    ("arguments", "x, index / 2"): "pick: arguments: byte 9: got \"/ 2\", expected ','",
    ("arguments", "x, size(n)"): 'pick: arguments: byte 8: got "n)", expected an array',
    ("arguments", "x,, y"): 'pick: arguments: byte 2: got ", y", expected a name or a number',
    ("arguments", "x) + (y"): "pick: arguments: byte 1: got \") + (y\", expected ','",
    ("arguments", "x)(y"): "pick: arguments: byte 1: got \")(y\", expected ','",
    ("arguments", "x, y, n, k=2"): "pick: arguments: got k, expected a parameter, or a dim",
    ("arguments", "y, *x"): 'pick: arguments: byte 3: got "*x", expected a name or a number',
    ("arguments", "y, (" * 500): "pick: arguments: byte 5: got",
    ("arguments", "x, index, n"): "pick: arguments: got no y, expected each output by its name",
    (
        "arguments",
        "y, 99999999999999999999",
    ): 'pick: arguments: byte 3: got "999999999999", expected an integer of at most',
    ("arguments", "y, size(x, 7)"): "pick: arguments: byte 11: got",
    ("arguments", "y" + ", n" * 80): "pick: arguments: got 81, expected at most 80",
    ("arguments", "y, True"): "pick: arguments: got True, expected a parameter, or a dim",
    ("threads", None): "pick: got no threads or grid, expected one",
    ("grid", "m"): "pick: got both threads and grid, expected one",
    ("threads", "m, n"): "pick: grid: got 'm, n', expected one number",
    ("block", (1, 2, 3, 4)): "pick: block: got 4 sizes, expected at most 3",
    ("block", "y"): "pick: block: got y, expected a number",
}


@pytest.mark.parametrize(("change", "message"), WRONG.items(), ids=str)
def test_ill_formed_definitions(change, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        pick(**dict([change]))
    with pytest.raises(ValueError, match="pick: got no source, expected cuda, host or both"):
        pick(cuda=None, host=None)


def test_compiler_errors_show_the_users_line():
    broken = pick(host=HOST.replace("index[k]]", "unknown]"))
    with pytest.raises(cuplug.CompileError, match=r"pick host: line 5: .*unknown"):
        broken(np.zeros(5), np.array([0]))


def test_the_same_source_gives_the_same_operator():
    assert pick() == pick()
    assert pickle.loads(pickle.dumps(pick())) == pick()
    assert pick() != pick(doc="Another.")


@pytest.mark.gpu
@pytest.mark.sanitizer
def test_grids_blocks_and_templates():
    f = cuplug.operator(
        "transpose(x: T[n, m]) -> y: T[m, n] where T: float32 | int16",
        arguments="x, y, n, m",
        kernel="transpose_kernel<T, 8>",
        cuda="""
template <typename U, int TILE> __global__ void transpose_kernel(const U *x, U *y, int n, int m) {
  extern __shared__ char room[];
  U (*tile)[TILE + 1] = reinterpret_cast<U (*)[TILE + 1]>(room);
  int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
  if (i < n && j < m) tile[threadIdx.y][threadIdx.x] = x[(int64_t)i * m + j];
  __syncthreads();
  i = blockIdx.y * TILE + threadIdx.x, j = blockIdx.x * TILE + threadIdx.y;
  if (i < n && j < m) y[(int64_t)j * n + i] = tile[threadIdx.x][threadIdx.y];
}""",
        grid=("(m + 7) // 8", "(n + 7) // 8"),
        block=(8, 8),
        shared="8 * 9 * 4",
    )
    for dtype in ("float32", "int16"):
        x = np.arange(70 * 33).reshape(70, 33).astype(dtype)
        assert_same(f(x, device="cuda"), x.T)
    assert f(np.zeros((0, 3), np.float32), device="cuda").shape == (3, 0)


def test_options_reach_the_compiler_of_the_host(build_plugin):
    """A library, a macro, and an option that only NVRTC has."""
    code = "double from_library(double x) { return x + 1; }"
    library = build_plugin(code, "added", extra=["-fvisibility=default"])
    given = ["-ladded", f"-L{library.parent}", f"-Wl,-rpath,{library.parent}", "-DTWO=2"]
    host = """
    double from_library(double x);
    void f(const double *x, double *y, int64_t n) {
      for (int64_t i = 0; i < n; i++) y[i] = TWO * from_library(x[i]);
    }
    """
    signature = "f(x: float64[n]) -> y: float64[n]"
    f = cuplug.operator(signature, arguments="x, y, n", host=host, options=given)
    assert f(np.array([1.0, 2.0])).tolist() == [4, 6]
    both = host.replace("from_library(x[i])", "x[i]")
    options = ["--fmad=true", "-DTWO=2"]
    f = cuplug.operator(signature, arguments="x, y, n", host=both, cuda="", threads="n",
                        options=options)  # fmt: skip
    assert f(np.array([1.0, 2.0])).tolist() == [2, 4]


@pytest.mark.parametrize(
    ("signature", "arguments", "message"),
    [
        ("f(x: float64[n]) -> r: float64[?]", "x, n, r", "signature: got an output of the size ?"),
        ("f(x: float64[..., n]) -> r: float64[...]", "x, n, r", r"expected size\(x\) among them"),
        ("f(inout x: float64[..., n])", "x, n", r"expected size\(x\) among them"),
        ("f(x: float64[..., n]) -> r: float64[...]", "x, size(x, -1), r", "how many elements x"),
    ],
)
def test_sizes_that_the_function_cannot_know(signature, arguments, message):
    for sources in ({"host": "void f(void) {}"}, {"cuda": "", "threads": "n"}):
        with pytest.raises(ValueError, match=f"^f: .*{message}"):
            cuplug.operator(signature, arguments=arguments, **sources)


def test_loop_dimensions_that_the_function_is_told():
    host = "void f(const double *x, double *r, int64_t n, int64_t all) {"
    host += "for (int64_t i = 0; i < all; i++) r[i / n] = x[i]; }"
    signature = "f(x: float64[..., n]) -> r: float64[...]"
    f = cuplug.operator(signature, arguments="x, r, n, size(x)", host=host)
    assert f(np.arange(6.0).reshape(2, 3)).tolist() == [2, 5]


def test_an_optional_array_is_a_null_pointer_where_it_is_left_out():
    f = cuplug.operator(
        "f(x: T[n], c: T[n] = None) -> y: T[n] where T: float32 | float64",
        arguments="x, c, y, n",
        host="""void f(const T *x, const T *c, T *y, int64_t n) {
          for (int64_t i = 0; i < n; i++) y[i] = x[i] + (c ? c[i] : 0);
        }""",
    )
    for dtype in ("float32", "float64"):
        x = np.arange(3, dtype=dtype)
        for _ in range(2):
            np.testing.assert_array_equal(f(x), x)
            np.testing.assert_array_equal(f(x, c=None), x)
            np.testing.assert_array_equal(f(x, x), 2 * x)
        assert f(x).dtype == dtype


def test_an_optional_array_of_a_dtype_of_its_own():
    f = cuplug.operator(
        "f(x: float32[n], at: int64[n] = None) -> y: float32[n]",
        arguments="x, at, y, n",
        host="""void f(const float *x, const int64_t *at, float *y, int64_t n) {
          for (int64_t i = 0; i < n; i++) y[i] = x[at ? at[i] : i];
        }""",
    )
    x = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(f(x), x)
    np.testing.assert_array_equal(f(x, np.array([2, 0, 1])), x[[2, 0, 1]])

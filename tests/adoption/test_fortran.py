# SPDX-License-Identifier: Apache-2.0
"""Adopted functions that take numbers by address, workspaces, texts, constants; locks."""

import ctypes.util
from concurrent.futures import ThreadPoolExecutor

import cuplug
import numpy as np
import pytest
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
void scale_(const int *n, const double *a, double *x, int *info);
void row_sums_(const int *n, const int *m, const double *a, const int *lda, double *r);
void scale_rows_(const int *n, const int *m, double *a, const int *lda);
void reverse_(const char *how, const int *n, const double *x, double *y, double *work, int *lwork,
              int *more, int *info);
enum mode { PLAIN = 3, DOUBLED = 7 };
int number_of(enum mode mode, const void *unused, double factor);
int length_of(const char *text);
int passed(int status);
struct point { double x, y; };
typedef double complex_pair[2];
struct opaque;
double sum_points(const struct point *points, int n);
void conjugate(complex_pair *z, int n);
int take_opaque(struct opaque *x);
int alone(int us);
"""


@pytest.fixture
def adopt(build_plugin):
    """Return a function that adopts one function."""
    library = build_plugin(
        FIXTURES / "fortran_like.c", "fortran_like", extra=["-fvisibility=default"]
    )

    def adopt(name, **description):
        found = cuplug.adopt(library, {"prototypes": PROTOTYPES, name: description})
        return getattr(found, name)

    return adopt


def test_numbers_by_address_and_a_status(adopt):
    scale = adopt(
        "scale",
        function="scale_",
        signature="scale(inout x: float64[n], a: float)",
        arguments="n, a, x, status",
    )
    x = np.arange(4.0)
    scale(x, 2.5)
    np.testing.assert_array_equal(x, np.arange(4.0) * 2.5)
    with pytest.raises(cuplug.PluginError, match="scale: result: got 2, expected 0"):
        scale(x, 0)


def test_matrices_by_columns(adopt):
    sums = adopt(
        "sums",
        function="row_sums_",
        signature="sums(a: float64[n, m]) -> r: float64[n]",
        arguments="n, m, a, n, r",
        order="fortran",
    )
    a = np.arange(12.0).reshape(3, 4)
    np.testing.assert_array_equal(sums(a), a.sum(axis=1))
    np.testing.assert_array_equal(sums(a.T), a.sum(axis=0))
    assert sums(np.zeros((3, 0))).tolist() == [0, 0, 0]


@pytest.mark.parametrize("signature", ["inout a: float64[n, m]", "inout a: float64[..., n, m]"])
def test_matrices_that_are_written_by_columns(adopt, signature):
    rows = adopt(
        "rows",
        function="scale_rows_",
        signature=f"rows({signature})",
        arguments="n, m, a, n",
        order="fortran",
    )
    a = np.arange(24.0).reshape(2, 3, 4)
    a = a if "..." in signature else a[0]
    expected = a * np.array([[1], [2], [3]])
    rows(a)
    np.testing.assert_array_equal(a, expected)


def test_a_workspace_that_the_function_is_asked_for(adopt):
    reverse = adopt(
        "reverse",
        function="reverse_",
        signature="reverse(x: float64[n]) -> y: float64[n]",
        arguments='"R", n, x, y, work, lwork, more, status',
        scratch="work: float64[lwork]; more: int32[n + 1]",
    )
    np.testing.assert_array_equal(reverse(np.arange(5.0)), np.arange(5.0)[::-1])


def test_a_workspace_of_a_known_size(adopt):
    reverse = adopt(
        "reverse",
        function="reverse_",
        signature='reverse(x: float64[n], how: str = "R") -> y: float64[n]',
        arguments="how, n, x, y, work, 2 * n, more, status",
        scratch="work: float64[2 * n]; more: int32[n]",
    )
    np.testing.assert_array_equal(reverse(np.arange(5.0)), np.arange(5.0)[::-1])
    with pytest.raises(cuplug.PluginError, match="reverse: result: got -6, expected 0"):
        reverse(np.arange(5.0), "other")


def test_constants(adopt):
    number = adopt(
        "number",
        function="number_of",
        signature="number() -> r: int32[]",
        arguments="DOUBLED, NULL, 1.5",
        returns="r",
    )
    assert number() == 10


def test_texts(adopt):
    length = adopt(
        "length",
        function="length_of",
        signature="length(text: str) -> r: int32[]",
        arguments="text",
        returns="r",
    )
    assert length("four") == 4
    assert length("wörter") == 7


@pytest.mark.parametrize(
    ("returns", "good", "bad", "text"),
    [
        ("nonnegative", 5, -1, "got -1, expected 0 or more"),
        ("nonzero", -2, 0, "got 0, expected another number"),
    ],
)
def test_conventions_of_results(adopt, returns, good, bad, text):
    passed = adopt("passed", signature="passed(x: int)", arguments="x", returns=returns)
    passed(good)
    with pytest.raises(cuplug.PluginError, match=text):
        passed(bad)


def test_a_lock_lets_one_thread_in(adopt):
    alone = adopt(
        "alone",
        signature="alone(us: int) -> r: int32[]",
        arguments="us",
        returns="r",
        lock="library",
    )
    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(alone, [2000] * 12))


def test_structures_of_one_type(adopt):
    total = adopt(
        "total",
        function="sum_points",
        signature="total(points: float64[n, 2]) -> r: float64[]",
        arguments="points, n",
        returns="r",
    )
    assert total(np.array([[1.0, 2], [3, 4]])) == 64
    z = np.array([1 + 2j, 3 - 4j])
    conjugate = adopt("conjugate", signature="conjugate(inout z: complex128[n])", arguments="z, n")
    conjugate(z)
    assert z.tolist() == [1 - 2j, 3 + 4j]


@pytest.mark.parametrize(
    ("function", "signature", "arguments"),
    [
        ("sum_points", "f(points: float64[n])", "points, n"),
        ("sum_points", "f(points: float64[n, 3])", "points, n"),
        ("sum_points", "f(points: float32[n, 2])", "points, n"),
        ("take_opaque", "f(points: uint8[n])", "points"),
    ],
)
def test_structures_of_other_sizes(adopt, function, signature, arguments):
    with pytest.raises(ValueError, match="f: arguments: got points, expected struct"):
        adopt("f", function=function, signature=signature, arguments=arguments, returns="ignored")


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (
            {"arguments": "MISSING, NULL, 1.5"},
            "got MISSING, expected a name of the signature, NULL",
        ),
        ({"arguments": "PLAIN, NULL, NULL"}, "got NULL, expected double"),
        ({"arguments": '"text", NULL, 1.5'}, "expected enum mode"),
        ({"arguments": "PLAIN, status, 1.5"}, "got status, expected void"),
        ({"scratch": "work float64[3]"}, "scratch: got 'work float64.3.', expected name: dtype"),
        ({"order": "rows"}, "order: got 'rows', expected 'c' or 'fortran'"),
    ],
)
def test_wrong_descriptions(adopt, items, text):
    description = {"arguments": "PLAIN, NULL, 1.5", "returns": "ignored", **items}
    with pytest.raises(ValueError, match=text):
        adopt("number", function="number_of", signature="number()", **description)


LAPACK = """
void dgesv_(const int *n, const int *nrhs, double *a, const int *lda, int *ipiv, double *b,
            const int *ldb, int *info);
void dsyev_(const char *jobz, const char *uplo, const int *n, double *a, const int *lda, double *w,
            double *work, const int *lwork, int *info);
"""


def test_lapack():
    if ctypes.util.find_library("lapack") is None:
        pytest.skip("no LAPACK")
    solve = {
        "function": "dgesv_",
        "signature": "solve(inout a: float64[n, n], inout b: float64[n, k])",
        "arguments": "n, k, a, n, pivots, b, n, status",
        "scratch": "pivots: int32[n]",
        "order": "fortran",
    }
    eigen = {
        "function": "dsyev_",
        "signature": "eigen(inout a: float64[..., n, n]) -> w: float64[..., n]",
        "arguments": '"V", "U", n, a, n, w, work, lwork, status',
        "scratch": "work: float64[lwork]",
        "order": "fortran",
    }
    library = cuplug.adopt("liblapack.so.3", {"prototypes": LAPACK, "solve": solve, "eigen": eigen})
    numbers = np.random.default_rng(3)
    a, b = numbers.random((5, 5)), numbers.random((5, 2))
    x = b.copy()
    library.solve(a.copy(), x)
    np.testing.assert_allclose(a @ x, b, atol=1e-12)
    with pytest.raises(cuplug.PluginError, match="solve: result: got 1, expected 0"):
        library.solve(np.zeros((2, 2)), np.zeros((2, 1)))
    symmetric = a + a.T
    vectors = np.stack([symmetric, 2 * symmetric])
    values = library.eigen(vectors)
    np.testing.assert_allclose(values[0], np.linalg.eigvalsh(symmetric), atol=1e-12)
    np.testing.assert_allclose(symmetric @ vectors[0], vectors[0] * values[0], atol=1e-12)
    np.testing.assert_allclose(values[1], 2 * values[0], atol=1e-12)

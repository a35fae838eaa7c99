# SPDX-License-Identifier: Apache-2.0
"""`cuplug adopt`: descriptions of libraries from their headers."""

import json
import re
import subprocess
import sys
import tomllib

import cuplug
import numpy as np
import pytest

pytest.importorskip("pycparser")

HEADER = """
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#define API __attribute__((visibility("default")))
typedef uint32_t word;
typedef enum { PLAIN, DOUBLED = 4 } mode;
struct counter;
typedef struct { double re, im; } pair;

API double total(const double *values, size_t count);
API int cumulate(const double *x, int n, double *y);
API word count_of(struct counter *c);
API struct counter *counter_new(word start);
API void counter_free(struct counter *c);
API int times(mode how, int x);
API int length_of(const char *text);
API double norm(const pair *z, int n);
API int no_size(const double *x);
API int matrix(double *a, int n, int lda);
API void each(void (*f)(double));
API int prints(const char *format, ...);
static inline int inside(int x) { return x; }
"""
SOURCE = """
#include "made.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
struct counter { word value; };
double total(const double *x, size_t n) { double t = 0; while (n--) t += x[n]; return t; }
int cumulate(const double *x, int n, double *y) {
  double t = 0;
  for (int i = 0; i < n; i++) y[i] = t += x[i];
  return 0;
}
word count_of(struct counter *c) { return c->value++; }
struct counter *counter_new(word start) {
  struct counter *c = malloc(sizeof *c);
  c->value = start;
  return c;
}
void counter_free(struct counter *c) { free(c); }
int times(mode how, int x) { return how == DOUBLED ? 2 * x : x; }
int length_of(const char *text) { return (int)strlen(text); }
double norm(const pair *z, int n) {
  double t = 0;
  while (n--) t += hypot(z[n].re, z[n].im);
  return t;
}
"""
GOOD = ["total", "cumulate", "count_of", "counter_new", "times", "length_of", "norm"]
REFUSED = {
    "no_size": "x: got no size among the parameters",
    "matrix": "got lda, expected arrays without gaps",
    "each": r"f: got void\(\*\)\(double\), expected a number or a pointer",
    "prints": r".*and no \.\.\.",
}


def adopt(*arguments):
    command = [sys.executable, "-m", "cuplug", "adopt", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "made.h").write_text(HEADER)
    return tmp_path


def test_the_description_adopts_the_library(folder):
    (folder / "made.c").write_text(SOURCE)
    library = folder / "libmade.so"
    command = ["cc", "-shared", "-fPIC", str(folder / "made.c"), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    done = adopt("made.h", *GOOD, "-I", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Guessed from the prototypes of made.h. Check")
    (folder / "libmade.cuplug.toml").write_text(done.stdout)
    made = cuplug.adopt(library)
    x = np.array([1.0, 2, 4])
    assert made.total(x) == 7
    assert made.cumulate(x).tolist() == [1, 3, 7]
    with made.counter_new(7) as counter:
        assert [made.count_of(counter), made.count_of(counter)] == [7, 8]
    assert made.times(4, 3) == 6
    assert made.length_of("three") == 5
    assert made.norm(np.array([[3.0, 4], [0, 1]])) == 6


def test_functions_of_a_header(folder):
    done = adopt("made.h", "-I", str(folder))
    assert "counter_new   counter_new(start: int) -> handle[counter]" in done.stdout
    lines = {line.split()[0]: line for line in done.stdout.splitlines()[1:]}
    assert set(lines) == {*GOOD, "counter_free", *REFUSED}
    assert {x for x in lines if "none: " in lines[x]} == set(REFUSED)


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_nothing_describes(folder, name):
    done = adopt("made.h", name, "total", "-I", str(folder))
    assert list(tomllib.loads(done.stdout)) == ["prototypes", "total"]
    assert re.match(f"# {name}: .*{REFUSED[name]}", done.stdout.splitlines()[-1])


def test_json_is_a_description(folder):
    told = json.loads(adopt("made.h", "total", "-I", str(folder), "--json").stdout)
    assert told["total"]["signature"] == "total(values: float64[count]) -> result: float64[]"
    assert told["prototypes"] == "double total(const double *values, size_t count);"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("absent.h",), "absent.h: the preprocessor reports"),
        (("stdlib.h", "absent"), "absent: the header declares no such function"),
    ],
)
def test_what_is_refused(arguments, message):
    done = adopt(*arguments)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("header", "function"), [("math.h", "hypot"), ("stdlib.h", "labs")])
def test_headers_of_the_system(header, function):
    told = tomllib.loads(adopt(header, function).stdout)
    library = "libm.so.6" if header == "math.h" else "libc.so.6"
    operator = getattr(cuplug.adopt(library, told), function)
    assert operator(*([3, 4] if function == "hypot" else [-5])) == 5

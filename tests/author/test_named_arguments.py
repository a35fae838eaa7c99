# SPDX-License-Identifier: Apache-2.0
"""Entries in C++ with named arguments: their values, and code that must not compile."""

import os
import re
import shutil
import subprocess

import cuplug
import numpy as np
import pytest
from builds import compile_library
from cuplug._source.compilers import toolkit
from places import FIXTURES, ROOT

INCLUDE = ROOT / "include"
OPTIONS = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}"]
COMPILERS = ["g++", pytest.param("clang++", marks=pytest.mark.slow)]
needs_nvcc = pytest.mark.skipif(not toolkit.find_nvcc(), reason="needs nvcc")

F = (
    "f(x: T[*rows, n], k: int, mode: 'a' | 'b', axis: int = None) -> T[n] "
    "where T: float32 | float64"
)
TWO = "two(x: float32[n], inout y: float32[n]) -> (a: float32[?, n], b: int64[n])"
LARGE = "large(x: T[n]) -> T[n] where T: floating"
BODY = "{ return CUPLUG_OK; }"
SCALAR = "g(x: T[n], a: T) where T: float32"
NUMBER = "s(x: float32[n]) -> float32"
MAKES = "plan(n: int) -> p: handle[plan]"
USES = "use(p: handle[plan], q: handle[plan] = None) -> float32[]"
WHERE = "where(x: T[n]) -> where: T[n] where n in {1, n} or n > 4, T: float32 | float64"
ASKED = "asked(x: float32[n]) -> (zero y: float32[n], detached m: float32[] = None) where n == 4"
ONE = "one(x: T[n]) -> zero detached y: T[n] = None where T: float32 | float64, n == 4"
MOVED = "moved(x: T[n]) -> T[n] where T: uint8 | float8_e8m0fnu | int4_x2"
MEANT = "check_dtype<cuplug::spelling::did_you_mean"
# Entries that differ from their signatures, and part of the compiler's message for each.
REFUSED = {
    "a name": (F, f"(f, (T), x, y, out) {BODY}", "y: no parameter, output or dimension of this"),
    "a dimension": (F, f"(f, (T), m, out) {BODY}", "m: no parameter, output or dimension of this"),
    "a type variable": (F, f"(f, (U), x, out) {BODY}", "U: no type variable of this name in the"),
    "no type variables": (TWO, f"(two, (T), a, b) {BODY}", "T: no type variable of this name in"),
    "an output": (F, f"(f, (T), x) {BODY}", "an entry lists all outputs, since it writes them"),
    "one of the outputs": (TWO, f"(two, x, b) {BODY}", "an entry lists all outputs, since it"),
    "a number": (NUMBER, f"(s, x, out) {BODY}", "out: an output is an array: write [] behind"),
    "a handle that it makes": (MAKES, f"(plan, n, p) {BODY}", "p: a handle is no argument of the"),
    "a choice": (
        F,
        '(f, (T), mode, out) { return mode == CUPLUG_CHOICE(mode, "c"); }',
        "this is none of the strings that the signature allows",
    ),
    "a rank": (
        TWO,
        "(two, n, a, b) { return b.size() ? CUPLUG_OK : a.allocate(n); }",
        "allocate: expected a size for each dimension of the output",
    ),
    "a header": (LARGE, f"(large, (T), x, out) {BODY}", "include <cuda_fp16.h>, <cuda_bf16.h> or"),
    "a misspelt dtype": (
        F.replace("float32", "flaot32"),
        f"(f, (T), x, out) {BODY}",
        f"{MEANT}_float32>",
    ),
    "a misspelt dtype of an array": (
        TWO.replace("x: float32", "x: flaot32"),
        f"(two, x, a, b) {BODY}",
        f"{MEANT}_float32>",
    ),
    "a misspelt dtype of an output": (
        TWO.replace("b: int64", "b: itn64"),
        f"(two, x, a, b) {BODY}",
        f"{MEANT}_int64>",
    ),
    "a misspelt dtype of a number": (
        F.replace("k: int", "k: itn"),
        f"(f, (T), k, out) {BODY}",
        f"{MEANT}_int>",
    ),
    "elements of a type variable": (
        SCALAR,
        "(g, x) { return x[0] > 0; }",
        "elements of a type variable, which the entry lists, too, in parentheses before",
    ),
    "a scalar of a type variable": (
        SCALAR,
        f"(g, x, a) {BODY}",
        "a scalar of a type variable, which the entry lists, too, in parentheses before the names",
    ),
}
# Bodies that misuse an argument, and the compiler's own message.
MISUSED = {
    "a size that is known": (TWO, "(two, n, a, b) { return b.allocate(n); }"),
    "an input that is written": (TWO, "(two, x, a, b) { x[0] = 1; return a.size() + b.size(); }"),
    "a scalar as an array": (F, "(f, (T), k, out) { out[0] = k[0]; return 0; }"),
    "an array as a scalar": (F, "(f, (T), x, out) { out[0] = T(x); return 0; }"),
    "another dtype": (TWO, "(two, x, a, b) { int *y = x; return y[0] + a[0] + b[0]; }"),
    "None": (F, "(f, (T), axis, out) { out[0] = axis; return 0; }"),
}
FINE = {
    F: "(f, (T), x, n, rows, k, mode, axis, out) { out[0] = x[k] + rows[n] + *axis; return mode; }",
    TWO: f"(two, x, y, a, b) {BODY}",
    SCALAR: f"(g, (T), x, a) {BODY}",
    MAKES: "(plan, n) { return call.set_handle(new int64_t(n)); }",
    USES: "(use, p, q, out) { int *x = p; out[0] = *x + (q ? *q->as<int>() : 0); return 0; }",
    WHERE: "(where, (T), x, where) { where[0] = x[0]; return CUPLUG_OK; }",
    ASKED: "(asked, x, y, m) { y[0] += x[0]; if (m) m[0] = 1; return CUPLUG_OK; }",
    ONE: "(one, (T), x, y) { if (y) y[0] += x[0]; return CUPLUG_OK; }",
    MOVED: "(moved, (T), x, out) { static_assert(sizeof(T) == 1); out[0] = x[0]; return 0; }",
}
KERNEL = "__global__ void kernel(const float *x, int64_t *b, int64_t n) { b[n] = (int64_t)x[n]; }"
LAUNCHES = {  # of a kernel, and whether they compile
    "x, b, n": "",
    "x, b": r"number_of_launch_arguments.*got=2\w*, expected=3",
    "x, b, n, n": r"number_of_launch_arguments.*got=4\w*, expected=3",
    "b, b, n": r"launch_argument.*number=1\w*, From=cuplug::array<int64_t>, To=const float \*",
    "x, x, n": r"launch_argument.*number=2\w*, From=cuplug::array<const float>, To=int64_t \*",
}


def write_source(folder, signature, entry, side="HOST", before=""):
    """Write a plugin with one entry; return its path."""
    name = signature.partition("(")[0]
    row = f'CUPLUG_TYPED_{side}_OPERATOR({name}, "{signature}", "One line.");'
    lines = ["#include <cuplug/plugin.hpp>", before, row, f"CUPLUG_{side}_ENTRY{entry}"]
    source = folder / "plugin.cu"
    source.write_text("\n".join([*lines, f'CUPLUG_PLUGIN({name}, "1.0.0");\n']))
    return source


def refused(command, source):
    """Return the compiler's message for a source, which it must reject."""
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode
    return done.stdout + done.stderr


@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_kind_of_argument(compiler, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    program = tmp_path / "program"
    source = FIXTURES / "named_arguments.cpp"
    sanitize = ["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    compile_library([compiler, *OPTIONS, "-pedantic", *sanitize, str(source), "-o", str(program)])
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def compiler_command(compiler):
    if not shutil.which(compiler):
        pytest.skip(f"needs {compiler}")
    return ["env", "LC_ALL=C", compiler, "-std=c++17", f"-I{INCLUDE}", "-x", "c++", "-fsyntax-only"]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("signature", FINE)
def test_what_the_signature_says_compiles(signature, compiler, tmp_path):
    source = write_source(tmp_path, signature, FINE[signature])
    compile_library([*compiler_command(compiler), str(source)])


@pytest.mark.parametrize("types", ["", "(T), "])
@pytest.mark.parametrize("n", [1, 29, 32, 33, 63])
def test_an_entry_lists_as_many_names_as_there_are_arrays(n, types, tmp_path):
    names = [f"a{k}" for k in range(n)]
    dtype = "T" if types else "float32"
    where = " where T: float32" if types else ""
    signature = f"f({', '.join(f'{x}: {dtype}[n]' for x in names)}) -> {dtype}[n]{where}"
    entry = f"(f, {types}{', '.join(names)}, out) {{ out[0] = a0[0]; return CUPLUG_OK; }}"
    text = f"""#include <cuplug/plugin.hpp>
CUPLUG_TYPED_HOST_OPERATOR(f, "{signature}", "F.");
CUPLUG_HOST_ENTRY{entry}
"""
    path = tmp_path / "f.cpp"
    path.write_text(text)
    command = ["g++", *OPTIONS, "-Wno-unused-parameter", "-fsyntax-only", path]
    subprocess.run(command, check=True, capture_output=True)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("what", REFUSED)
def test_what_differs_from_the_signature_does_not_compile(what, compiler, tmp_path):
    signature, entry, sentence = REFUSED[what]
    said = refused(compiler_command(compiler), write_source(tmp_path, signature, entry))
    assert sentence in said
    assert "plugin.cu:4:" in said
    assert MEANT not in said or said.count("neither exists nor") == 1


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("what", MISUSED)
def test_an_argument_is_what_the_signature_says(what, compiler, tmp_path):
    source = write_source(tmp_path, *MISUSED[what])
    assert "plugin.cu:4:" in refused(compiler_command(compiler), source)


@pytest.mark.sample(4)
@needs_nvcc
@pytest.mark.parametrize("arguments", LAUNCHES)
def test_arguments_of_a_kernel_are_checked(arguments, tmp_path):
    entry = (
        "(two, x, n, a, b) { if (int status = a.allocate(n, n)) return status; "
        f"return call.launch<kernel>({{cuplug::blocks(n, 256), 256}}, {arguments}); }}"
    )
    source = write_source(tmp_path, TWO, entry, "CUDA", KERNEL)
    command = [toolkit.find_nvcc(), "-std=c++17", "-arch=sm_90", f"-I{INCLUDE}"]
    command += ["-Xcompiler", "-Wall,-Wextra,-Werror", "-c", "-o", str(tmp_path / "plugin.o")]
    if LAUNCHES[arguments]:
        assert re.search(LAUNCHES[arguments], refused(command, source))
    else:
        compile_library([*command, str(source)])


@needs_nvcc
@pytest.mark.parametrize("what", ["a name", "a misspelt dtype"])
def test_nvcc_says_the_same(what, tmp_path):
    signature, entry, sentence = REFUSED[what]
    command = [toolkit.find_nvcc(), "-std=c++17", f"-I{INCLUDE}", "-cuda", "-o", os.devnull]
    said = refused(command, write_source(tmp_path, signature, entry))
    assert sentence.rpartition("<")[2].rstrip(">") in said
    assert said.count("error: ") == 1
    assert "plugin.cu(4)" in said or "line 4 of" in said


@pytest.mark.slow
@needs_nvcc
def test_device_lambdas(tmp_path):
    (tmp_path / "twin.cu").write_text(
        """#include <cuplug/plugin.hpp>
template <class F>
__global__ void each(F f, int64_t n) {
  const int64_t i = threadIdx.x;
  if (i < n) f(i);
}
CUPLUG_TYPED_CUDA_OPERATOR(twin, "twin(x: T[n]) -> T[n] where T: float32 | int64", "A copy.");
CUPLUG_CUDA_ENTRY(twin, (T), x, n, out) {
  const T *from = x;
  T *to = out;
  auto copy = [=] __device__(int64_t i) { to[i] = from[i]; };
  return call.launch<each<decltype(copy)>>({1, 32}, copy, n);
}
CUPLUG_PLUGIN(twin, "1.0.0");
"""
    )
    path = cuplug.build(tmp_path / "twin.cu", arch="90", options=["--extended-lambda"])
    assert cuplug.load(path).twin.signatures


def test_an_output_is_called_out(tmp_path):
    (tmp_path / "parts.c").write_text(
        """#include <cuplug/plugin.h>
CUPLUG_ENTRY int parts_host(const cuplug_call *call) {
  *(float *)call->tensors[1].data = 1;
  *(float *)call->tensors[2].data = 2;
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(parts_host, "parts(x: float32[n]) -> (out: float32[], mean: float32[])",
                     "Two numbers.");
CUPLUG_PLUGIN(parts, "1.0.0");
"""
    )
    parts = cuplug.load(cuplug.build(tmp_path / "parts.c")).parts
    found = parts(np.zeros(3, np.float32))
    assert (found.out, found.mean) == (1, 2)
    into = np.empty((), np.float32), np.empty((), np.float32)
    parts(np.zeros(3, np.float32), out=into)
    assert into == (1, 2)


STACK = """
#include <cuplug/plugin.hpp>
CUPLUG_TYPED_HOST_OPERATOR(stack,
                           "stack(xs: T[n][], order: int[], factor: float = None, "
                           "mode: 'plain' | 'reversed' = 'plain') -> (rows: T[len(order), n], "
                           "n_rows: int64[]) where T: float32 | int64",
                           "Arrays as rows, in an order.");
CUPLUG_HOST_ENTRY(stack, (T), xs, order, factor, mode, n, rows, n_rows) {
  for (int64_t k = 0; k < order.size(); k++) {
    if (order[k] < 0 || order[k] >= xs.size())
      return call.fail(CUPLUG_ERROR_INDEX, "order: got an item that is no number of xs");
    const auto x = xs[order[k]];
    for (int64_t j = 0; j < n; j++) {
      const int64_t from = mode == CUPLUG_CHOICE(mode, "reversed") ? n - 1 - j : j;
      rows[k * n + j] = (T)(x[from] * factor.value_or(1));
    }
  }
  *n_rows = order.size();
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(stack, "1.0.0");
"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_through_the_core(dtype, tmp_path):
    (tmp_path / "stack.cpp").write_text(STACK)
    stack = cuplug.load(cuplug.build(tmp_path / "stack.cpp")).stack
    xs = [np.arange(k, k + 3).astype(dtype) for k in range(4)]
    found = stack(xs, [3, 0, 3])
    np.testing.assert_array_equal(found.rows, np.stack([xs[3], xs[0], xs[3]]), strict=True)
    assert found.n_rows == 3
    found = stack(xs, [1], factor=2.0, mode="reversed")
    np.testing.assert_array_equal(found.rows, [2 * xs[1][::-1]])
    with pytest.raises(IndexError, match="^stack: order: got an item that is no number of xs$"):
        stack(xs, [4])


def test_strides_of_contiguous_arrays(tmp_path):
    source = tmp_path / "steps.cpp"
    source.write_text(
        """#include <cuplug/plugin.hpp>
CUPLUG_TYPED_HOST_OPERATOR(steps, "steps(x: float32[a, b, c], w: float32[n] = None) -> int64[6]",
                           "Strides." MAYBE);
CUPLUG_HOST_ENTRY(steps, x, w, out) {
  for (int k = 0; k < 3; k++) out[k] = x.stride(k - 3);
  out[3] = x.is_contiguous();
  out[4] = cuplug_n_elements(&call.operator const cuplug_call *()->tensors[1]);
  out[5] = w.size();
  return CUPLUG_OK;
}
CUPLUG_PLUGIN(steps, "1.0.0");
"""
    )
    x = np.zeros((2, 3, 4), "float32")
    for number, flag in enumerate(['""', "CUPLUG_TAKES_STRIDES"]):
        folder = tmp_path / str(number)
        folder.mkdir()
        library = folder / "libsteps.so"
        command = ["g++", *OPTIONS, f"-DMAYBE={flag}", "-shared", "-fPIC", source, "-o", library]
        compile_library([str(x) for x in command])
        steps = cuplug.load(library).steps
        assert steps(x).tolist() == [12, 4, 1, 1, 0, 0]
        assert steps(x, x[0, 0]).tolist() == [12, 4, 1, 1, 4, 4]
        turned = [3, 1, 6, 0, 0, 0] if number else [12, 4, 1, 1, 0, 0]
        seen = steps(np.zeros((4, 2, 3), "float32").transpose(1, 2, 0)).tolist()
        assert seen == turned

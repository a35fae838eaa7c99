# SPDX-License-Identifier: Apache-2.0
"""CUDA source -> machine code with NVRTC, which needs no GPU: names, types, messages, headers."""

import pickle
import re
import threading
from pathlib import Path

import pytest
from cuplug import CompileError
from cuplug._source.compilers import headers, jit, kernel_types, nvrtc

try:
    compiler = nvrtc.find()
except CompileError as error:
    pytest.skip(str(error), allow_module_level=True)


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch) -> Path:
    """Return the directory of the cache, empty; nothing is in memory."""
    monkeypatch.setenv("CUPLUG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(jit, "_memory", {})
    return tmp_path / "cache"


@pytest.fixture
def compilations(monkeypatch) -> list[str]:
    """Return the list of compilations by NVRTC."""
    seen = []

    def compile_program(path, text, *rest):
        seen.append(text)
        return original(path, text, *rest)

    original = jit.compile_program
    monkeypatch.setattr(jit, "compile_program", compile_program)
    return seen


def signatures(source: str, **keywords) -> dict[str, list[str]]:
    """Return the C types of each kernel."""
    types = jit.compile_to_binary(source, **keywords).types
    return {name: [kernel_types.describe(code) for code in types[name]] for name in types}


def message(source: str, **keywords) -> str:
    """Return the message of the CompileError."""
    with pytest.raises(CompileError) as caught:
        jit.compile_to_binary(source, **keywords)
    return str(caught.value)


def test_machine_code_names_and_types():
    source = """
    struct pair { float a; double b; };
    enum color { red };
    template <int N> __global__ void scale(float *x, long long n) { x[n] = N; }
    extern "C" __global__ void add(const float *__restrict__ x, double *y, const int n) {}
    namespace mine { __global__ void inner(pair p, const pair *q, color c, bool b, char **s) {} }
    """
    binary = jit.compile_to_binary(source, names=["scale<4>", "mine::inner"])
    assert binary.image.startswith(b"\x7fELF")
    assert binary.lowered["add"] == "add"
    assert binary.lowered["scale<4>"].encode() in binary.image
    assert signatures(source, names=["scale<4>", "mine::inner"]) == {
        "scale<4>": ["float *", "long long"],
        "mine::inner": ["struct of 16 bytes", "const struct of 16 bytes *", "int", "bool",
                        "void * *"],
        "add": ["const float *", "double *", "int"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "source",
    [
        "__global__ void f(cudaTextureObject_t t, float *x) { *x = tex1D<float>(t, 0.5f); }",
        "__global__ void f(cudaSurfaceObject_t s, float *x) { surf1Dread(x, s, 4); }",
        "__global__ void f(int *x) { *x = cudaErrorInvalidValue; }",
    ],
)
def test_what_a_minimal_compiler_lacks(source):
    assert list(jit.compile_to_binary(source).types) == ["f"]


def test_machine_code_does_not_depend_on_what_the_compiler_declares():
    source = """
    __global__ void f(int *x, double *y) {
      extern __shared__ int s[];
      y[threadIdx.x] = sin(y[0]) + atomicAdd(s, 1);
      __syncthreads();
      if (*x) printf("%d", *x), *x = __shfl_sync(~0u, *x, 1);
    }
    """
    asked = (compiler.path, source, "f.cu", "90", [], ["f"], {})
    minimal, whole = (jit.compile_program(*asked, answer) for answer in (True, False))
    assert minimal[0].startswith(b"\x7fELF")
    assert minimal == whole


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("int f();", True),
        ('#include "mine.h"', True),
        ("  #  include <mine.h>", True),
        ("#include <stdint.h>", True),
        ('#include "yours.h"', False),
        ("#include NAME", False),
    ],
)
def test_self_contained(source, wanted):
    assert headers.is_self_contained(source, {"mine.h": "// nothing to include"}) is wanted
    assert not headers.is_self_contained(source, {"mine.h": "#include <cuda_fp16.h>"})


def test_every_scalar_type():
    names = [name for name in kernel_types.SCALARS if not name.startswith("__nv_fp8")]
    plain = [name for name in names if name != "void" and not name.startswith("__")]
    parameters = ", ".join([f"{n} a{k}" for k, n in enumerate(plain)])
    pointers = ", ".join([f"const {n} *b{k}" for k, n in enumerate([*plain, "void"])])
    source = f"__global__ void f({parameters}, {pointers}) {{}}"
    types = jit.compile_to_binary(source).types["f"]
    declared = ", ".join([*plain, *[f"const {n} *" for n in [*plain, "void"]]])
    assert types == kernel_types.parse_signature(declared)


def test_kernels_that_cannot_be_asked_about_do_no_harm():
    source = """
    __global__ void fine(int x) {}
    #if 0
    __global__ void left_out(int x) {}
    #endif
    __global__ void twice(int x) {}
    __global__ void twice(float x) {}
    """
    assert signatures(source) == {"fine": ["int"]}


def test_the_message_shows_the_line():
    source = "__global__ void f(float *x) {\n  int i = threadIdx.x;\n  x[i] = alpha * 2;\n}\n"
    assert message(source, name="my.cu") == (
        'my.cu: line 3: identifier "alpha" is undefined\n'
        "  1 | __global__ void f(float *x) {\n"
        "  2 |   int i = threadIdx.x;\n"
        "> 3 |   x[i] = alpha * 2;\n"
        "    |          ^\n"
        "  4 | }"
    )
    cause = message("__global__ void f(int64t *x) {}").splitlines()[0]
    assert cause == '<string>: line 1: identifier "int64t" is undefined'


def test_messages_of_headers_options_names():
    assert 'mine.h: line 2: identifier "y"' in message(
        '#include "mine.h"\n', headers={"mine.h": "\n__device__ int f() { return y; }"}
    )
    assert "unrecognized option" in message("", options=["--no-such-option"])
    assert "nothing" in message("__global__ void f() {}", names=["nothing<3>"])
    source = "template <int N> __global__ void scale(int *x) {}\nnamespace mine { " + (
        "__global__ void add(int *x) {} }"
    )
    assert message(source, names=["scal<4>", "mine::add"], name="f.cu") == (
        'f.cu: names: scal<4>: identifier "scal" is undefined: did you mean scale?'
    )
    assert message(source, names=["mine::ad"], name="f.cu") == (
        'f.cu: names: mine::ad: namespace "mine" has no member "ad": did you mean add?'
    )
    assert message("__device__ int table;", names=["&tabl"], name="f.cu") == (
        'f.cu: names: &tabl: identifier "tabl" is undefined: did you mean table?'
    )
    assert "names: scale: cannot determine which instance" in message(source, names=["scale"])
    assert message("int f() { return y; }", names=["g"]).count("undefined") == 2
    assert "architecture: got 35, expected one that NVRTC" in message("", architecture="35")
    many = "".join(f"__device__ int f{k}() {{ return missing{k}; }}\n" for k in range(9))
    text = message(many)
    assert text.count("undefined") == 3
    assert text.endswith("and 6 more; the exception's `log` has them all")


def test_missing_headers_are_explained(monkeypatch):
    text = message("#include <vector>\n")
    assert 'cannot open source file "vector"' in text
    assert "of the C++ standard library kernels have <algorithm>, <array>" in text
    assert "is not in" in message("#include <cuda_fp99.h>\n")
    bare = nvrtc.Compiler(compiler.path, compiler.include[:3])
    monkeypatch.setattr(nvrtc, "find", lambda: bare)
    for header in ("cuda_fp16.h", "type_traits"):
        assert "CUDA's headers were not found beside" in message(f"#include <{header}>\n")


def test_headers_of_cuda():
    if len(compiler.include) < 3:
        pytest.skip("CUDA's headers are not here")
    source = """
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void f(__half a, __nv_bfloat16 *b) {}
    """
    assert signatures(source) == {"f": ["__half", "__nv_bfloat16 *"]}


def test_the_exception_pickles():
    error = CompileError("a message", "a log")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.log) == ("a message", "a log")


@pytest.mark.parametrize(
    ("keywords", "part"),
    [
        ({"names": [3]}, "compile: names[0]: got int, expected a str"),
        ({"options": [b"-G"]}, "compile: options[0]: got bytes"),
        ({"name": None}, "compile: name: got NoneType"),
        ({"architecture": 90}, "compile: architecture: got int"),
    ],
)
def test_wrong_arguments(keywords, part):
    with pytest.raises(TypeError) as caught:
        jit.compile_to_binary("", **keywords)
    assert part in str(caught.value)


def test_a_name_of_nothing():
    with pytest.raises(ValueError, match=r"^compile: names\[0\]: got ' ', expected the name"):
        jit.compile_to_binary("", names=[" "])


def test_a_newer_gpu_gets_ptx():
    binary = jit.compile_to_binary("__global__ void f(int x) {}", architecture="999")
    assert b".target sm_" in binary.image
    assert binary.types == {"f": kernel_types.parse_signature("int")}


def test_compiled_once(compilations, monkeypatch):
    source = "__global__ void f(int x) {}"
    first = jit.compile_to_binary(source, names=["f"])
    assert jit.compile_to_binary(source, names=["f"]) is first
    monkeypatch.setattr(jit, "_memory", {})
    again = jit.compile_to_binary(source, names=["f"])
    assert len(compilations) == 1
    assert (again.image, again.lowered, again.types) == (first.image, first.lowered, first.types)
    jit.compile_to_binary("", architecture="90")
    monkeypatch.setattr(jit, "_memory", {})
    assert jit.compile_to_binary("", architecture="90").lowered == {}
    assert len(compilations) == 2


@pytest.mark.parametrize(
    "changed",
    [
        {"options": ["-DX"]},
        {"names": ["f"]},
        {"name": "other.cu"},
        {"architecture": "80"},
        {"headers": {"x.h": ""}},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_changes_is_compiled_again(compilations, changed):
    jit.compile_to_binary("__global__ void f(int x) {}")
    jit.compile_to_binary("__global__ void f(int x) {}", **changed)
    assert len(compilations) == 2


def test_changed_headers_are_compiled_again(compilations, tmp_path):
    (tmp_path / "outer.h").write_text('#include "inner.h"\n')
    (tmp_path / "inner.h").write_text("#define N 1\n")
    source = "#include <outer.h>\n__global__ void f(int *x) { *x = N; }"
    for option in ([f"-I{tmp_path}"], ["-I", str(tmp_path)], [f"--include-path={tmp_path}"]):
        first = jit.compile_to_binary(source, options=option)
        assert jit.compile_to_binary(source, options=option) is first
        with open(tmp_path / "inner.h", "a") as file:
            file.write("//\n")
        assert jit.compile_to_binary(source, options=option) is not first
    assert len(compilations) == 6


def test_macros_of_the_user_do_not_reach_the_question_for_types():
    names = set(re.findall(r"\b[A-Za-z]\w*(?=_\b)", kernel_types.PROBE))
    assert names > {"T", "P", "list", "size"}
    macros = "".join(f"#define {name} 4\n" for name in sorted(names))
    source = macros + "template <int N> __global__ void f(float *x) { x[N] = T; }"
    source += "__global__ void g(double *y) {}"
    binary = jit.compile_to_binary(source, names=["f<T>"])
    parse = kernel_types.parse_signature
    assert binary.types == {"f<T>": parse("float *"), "g": parse("double *")}


def test_headers_need_not_be_utf8(compilations, tmp_path):
    (tmp_path / "old.h").write_bytes(b"// \xa9\n#define N 1\n")
    source = "#include <old.h>\n__global__ void f(int *x) { *x = N; }"
    first = jit.compile_to_binary(source, options=[f"-I{tmp_path}"])
    (tmp_path / "old.h").write_bytes(b"// \xae\n#define N 1\n")
    assert jit.compile_to_binary(source, options=[f"-I{tmp_path}"]) is not first


@pytest.mark.parametrize("text", ["\0", "\udc80"])
def test_text_that_is_none(text):
    for keywords in ({"names": [text]}, {"headers": {text: ""}}, {"headers": {"a.h": text}}):
        with pytest.raises(ValueError, match="compile: (names|headers).*: got "):
            jit.compile_to_binary("", **keywords)


def test_a_computed_include_is_not_kept(compilations, tmp_path, directory):
    (tmp_path / "a.h").write_text("")
    source = '#define HEADER "a.h"\n#include HEADER\n'
    for _ in range(2):
        jit.compile_to_binary(source, options=[f"-I{tmp_path}"])
    assert len(compilations) == 2
    assert not directory.exists()


def test_damaged_entries_are_compiled_again(compilations, directory, monkeypatch):
    jit.compile_to_binary("__global__ void f(int x) {}")
    (entry,) = (path for path in directory.iterdir() if path.name != "locks")
    entry.write_bytes(entry.read_bytes()[:-1])
    monkeypatch.setattr(jit, "_memory", {})
    jit.compile_to_binary("__global__ void f(int x) {}")
    assert len(compilations) == 2


def test_threads_compile_at_once():
    """Without the GIL: another thread runs while one compiles."""
    done, failures = [], []

    def compile_one(k):
        try:
            source = f"template <int N> __global__ void f(int *x) {{ *x = N + {k}; }}"
            done.append(jit.compile_to_binary(source, names=[f"f<{k}>"]).types[f"f<{k}>"])
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=compile_one, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert done == [kernel_types.parse_signature("int *")] * 8


def test_no_compiler(run_python, tmp_path):
    """Without NVRTC, the message names the searched places."""
    code = """
from cuplug._source.compilers import nvrtc
import cuplug
try:
    print(nvrtc.find().path)
except cuplug.CompileError as error:
    assert "install the CUDA toolkit or the Python package nvidia-cuda-nvrtc" in str(error)
"""
    done = run_python(code, {"CUDA_HOME": str(tmp_path), "CUDA_PATH": None})
    assert done.returncode == 0, done.stderr


def test_cuda_home_goes_first(run_python, tmp_path):
    (tmp_path / "lib64").mkdir()
    (tmp_path / "lib64" / "libnvrtc.so.12").write_text("no library")
    code = "from cuplug._source.compilers import nvrtc; print(nvrtc.find().path)"
    done = run_python(code, {"CUDA_HOME": str(tmp_path)})
    assert done.stdout == f"{tmp_path}/lib64/libnvrtc.so.12\n"
    code = "import cuplug; cuplug.compile('', architecture='90')"
    done = run_python(code, {"CUDA_HOME": str(tmp_path), "CUPLUG_CACHE_BYTES": "0"})
    assert "NVRTC cannot be loaded: " in done.stderr


def test_long_compilations_are_announced_on_a_terminal(monkeypatch, capsys):
    import time

    def slow(*arguments):
        time.sleep(0.05)
        return original(*arguments)

    original = jit.compile_program
    monkeypatch.setattr(jit, "compile_program", slow)
    monkeypatch.setattr(jit, "ANNOUNCE_S", 0.001)
    jit.compile_to_binary("// 1", name="one.cu")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    jit.compile_to_binary("// 2", name="two.cu")
    assert capsys.readouterr().err == "cuplug: compiling two.cu for sm_90 ...\n"


def test_a_module_without_a_gpu(run_python):
    source = "template <int N> __global__ void scale(float *x, float f, long long n) {}"
    code = f"""
import cuplug
try:
    cuplug.compile("__global__ void f() {{}}")
except cuplug.CudaError as error:
    assert "driver" in str(error)
else:
    assert cuplug.devices()
module = cuplug.compile({source!r}, names=["scale<2>"], architecture="90")
assert module["scale<2>"].signature == "scale<2>(float *, float, long long)"
"""
    done = run_python(code, {"CUPLUG_CACHE_BYTES": "0"})
    assert done.returncode == 0, done.stderr

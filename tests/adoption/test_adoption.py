# SPDX-License-Identifier: Apache-2.0
"""Functions of libraries that were not written for cuplug, as operators."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import cuplug
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
int Gather(float *source, int *index, float *res, int N, int M);
int Calls(void);
void Ping(void);
void Open(void);
int Wait(void);
int scale_in_place(double *data, long n, double factor);
int cuda_like(const uint16_t *x, uint16_t *out, unsigned short n);
"""
GATHER = {
    "function": "Gather",
    "signature": "gather(source: float32[m], index: int32[n]) -> result: float32[n]",
    "arguments": "source, index, result, n, m",
}
SCALE = {
    "function": "scale_in_place",
    "signature": "scale(inout data: float64[*shape], factor: float64 = 2)",
    "arguments": "data, size(data), factor",
    "returns": "errno",
}
COPY = {
    "function": "cuda_like",
    "signature": "copy(x: float16[n]) -> y: float16[n]",
    "arguments": "x, y, n",
    "returns": "cuda",
}


@pytest.fixture
def library(build_plugin):
    return build_plugin(FIXTURES / "plain.c", "plain", extra=["-fvisibility=default"])


def adopt(library, **operators):
    return cuplug.adopt(library, {"prototypes": PROTOTYPES, **operators})


def test_gather(library):
    gather = adopt(library, gather=GATHER).gather
    source = np.arange(10, dtype=np.float32)
    index = np.array([3, 1, 9], np.int32)
    found = gather(source, index)
    assert found.dtype == np.float32
    assert found.tolist() == [3, 1, 9]
    assert type(gather) is cuplug.Operator
    assert gather.path == str(library)
    assert gather(source[::2], index[:2]).tolist() == [6, 2]


def test_reload_leaves_it_alone(library):
    gather = adopt(library, gather=GATHER).gather
    assert str(library) not in cuplug.reload()
    assert gather(np.ones(1, np.float32), np.zeros(1, np.int32)).tolist() == [1]


@given(st.integers(1, 50), st.integers(0, 50), st.randoms())
@settings(max_examples=50)
def test_any_sizes(library, m, n, random):
    source = np.arange(m, dtype=np.float32)
    index = np.array([random.randrange(m) for _ in range(n)], np.int32)
    assert np.array_equal(adopt(library, gather=GATHER).gather(source, index), source[index])


def test_empty_outputs_are_not_called_for(library):
    both = adopt(library, gather=GATHER, Calls={**NO_ARGUMENTS, "signature": "Calls()"})
    both.gather(np.ones(3, np.float32), np.zeros(1, np.int32))  # no calls would be a success
    counted = count(both)
    assert both.gather(np.ones(3, np.float32), np.empty(0, np.int32)).shape == (0,)
    assert count(both) == counted


NO_ARGUMENTS = {"arguments": "", "returns": "zero"}


def count(operators):
    with pytest.raises(cuplug.PluginError, match=r"Calls: result: got \d+") as raised:
        operators.Calls()
    return int(str(raised.value).split()[3].rstrip(","))


def test_without_arguments(library):
    ping = {"signature": "ping()", "function": "Ping", "arguments": ""}
    operators = adopt(
        library, gather=GATHER, ping=ping, Calls={**NO_ARGUMENTS, "signature": "Calls()"}
    )
    operators.ping()
    counted = count(operators)
    assert operators.ping() is None
    assert count(operators) == counted + 1


def test_other_threads_go_on(library):
    names = ("Wait", "Open")
    gate = adopt(library, **{x: {"signature": f"{x}()", "arguments": ""} for x in names})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(gate.Wait)
        gate.Open()
        assert waiting.result() is None


def test_inout_scalars_and_errno(library):
    scale = adopt(library, scale=SCALE).scale
    data = np.arange(6.0).reshape(2, 3)
    scale(data)
    scale(data, factor=0.5)
    assert np.array_equal(data, np.arange(6.0).reshape(2, 3))
    with pytest.raises(OSError, match="scale: Invalid argument") as raised:
        scale(data, 0)
    assert raised.value.errno == 22


def test_status_is_an_error(library):
    gather = adopt(library, gather=GATHER).gather
    with pytest.raises(cuplug.PluginError, match="gather: result: got 1, expected 0"):
        gather(np.ones(3, np.float32), np.int32([0, 3]))
    ignored = adopt(library, gather={**GATHER, "returns": "ignored"}).gather
    assert ignored(np.ones(3, np.float32), np.int32([0, 3])).tolist() == [1, 0]
    copy = adopt(library, copy=COPY).copy
    assert np.array_equal(copy(np.ones(3, np.float16)), np.ones(3, np.float16))
    with pytest.raises(cuplug.CudaError, match="copy: CUDA error 700") as raised:
        copy(np.ones(7, np.float16))
    assert raised.value.code == 700


def test_sizes_are_never_cut_off(library):
    copy = adopt(library, copy=COPY).copy
    wanted = "^copy: arguments: n: got 65536, expected 0 to 65535, what the type of its param"
    with pytest.raises(ValueError, match=wanted):
        copy(np.zeros(65536, np.float16))


def test_arguments_are_checked_as_ever(library):
    gather = adopt(library, gather=GATHER).gather
    with pytest.raises(TypeError, match="gather: source: "):
        gather(np.ones(3), np.int32([0]))
    with pytest.raises(ValueError, match="gather: index: "):
        gather(np.ones(3, np.float32), np.int32([[0]]))


def test_sidecar(library, tmp_path):
    copied = tmp_path / library.name
    copied.write_bytes(library.read_bytes())
    with pytest.raises(ValueError, match=r"libplain.cuplug.toml: the description cannot"):
        cuplug.adopt(copied)
    copied.with_suffix(".cuplug.toml").write_text(
        f'prototypes = """{PROTOTYPES}"""\n[gather]\n'
        + "".join(f"{key} = {value!r}\n" for key, value in GATHER.items())
    )
    gather = cuplug.adopt(copied).gather
    assert gather(np.ones(3, np.float32), np.int32([0])).tolist() == [1]


def test_pickled(library):
    gather = adopt(library, gather=GATHER).gather
    assert pickle.loads(pickle.dumps(gather)) is gather


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"arguments": "source, index, result, n"}, "arguments: got 4, expected 5"),
        ({"arguments": "index, source, result, n, m"}, r"got index, expected float \*"),
        ({"arguments": "source, index, result, n, k"}, "arguments: got k, expected a parameter"),
        ({"arguments": "source, index, n, n, m"}, r"got n, expected float \*"),
        ({"arguments": "source, index, result, m, stream"}, "got stream, expected int"),
        ({"place": "moon"}, "place: got 'moon', expected 'host' or 'cuda'"),
        ({"returns": "luck"}, "returns: got 'luck'"),
        ({"colour": "red"}, "got .*colour, expected signature, arguments"),
        ({"signature": "other(x: float32[n])"}, "signature: got other, expected gather"),
        ({"signature": "gather(source: T[m], index: int32[n]) -> result: T[n] where T: floating"},
         "source: got float16, .* expected one real dtype"),
        ({"signature": "gather(source: float32[m], index: int32[n]) -> result: float32[?]"},
         r"got \?, expected sizes that are known"),
    ],
)  # fmt: skip
def test_descriptions_are_checked(library, changed, message):
    with pytest.raises(ValueError, match=f"gather: .*{message}"):
        adopt(library, gather={**GATHER, **changed})


def test_outputs_that_are_not_given(library):
    arguments = "source, index, source, n, m"
    with pytest.raises(ValueError, match="gather: arguments: got no result, expected every output"):
        adopt(library, gather={**GATHER, "arguments": arguments})


def test_a_description_has_operators(library):
    with pytest.raises(ValueError, match="its description has no operator"):
        adopt(library)


def test_libraries_are_checked(library, tmp_path):
    with pytest.raises(cuplug.PluginError, match="gather: Nothing: "):
        cuplug.adopt(
            library,
            {"prototypes": "int Nothing(void);", "gather": {**GATHER, "function": "Nothing"}},
        )
    with pytest.raises(cuplug.PluginError, match=r"nowhere\.so: "):
        adopt(tmp_path / "nowhere.so", gather=GATHER)
    with pytest.raises(ValueError, match="prototypes: "):
        cuplug.adopt(library, {"prototypes": "int (", "gather": GATHER})
    with pytest.raises(ValueError, match="prototypes: got None, expected C declarations"):
        cuplug.adopt(library, {"gather": GATHER})


def test_without_cffi(library, run_python):
    code = "import sys; sys.modules['cffi'] = None\nimport cuplug\n"
    code += f"cuplug.adopt({str(library)!r}, {{'prototypes': 'int Calls(void);', "
    code += "'Calls': {'signature': 'Calls()', 'arguments': ''}})"
    done = run_python(code)
    assert "PluginError: adopt: requires the package cffi: pip install cffi" in done.stderr


ON_A_FAKE_GPU = """
import cuplug, numpy as np
gather = cuplug.adopt({library!r}, {description!r}).gather
source, index = np.arange(10, dtype=np.float32), np.array([3, 1, 9], np.int32)
assert gather(source, index).tolist() == [3, 1, 9]
assert cuplug.last_call().device == "cuda:0"
found = gather(cuplug.asarray(source), cuplug.asarray(index))
assert type(found) is cuplug.Array
assert found.numpy().tolist() == [3, 1, 9]
print("done")
"""


@pytest.mark.parametrize("with_stream", [False, True])
def test_on_a_driver_without_a_gpu(library, emulated_cuda, run_python, with_stream):
    prototypes, given = PROTOTYPES, dict(GATHER)
    if with_stream:
        prototypes += "int GatherOn(float *, int *, float *, int, int, cudaStream_t);"
        given |= {"function": "GatherOn", "arguments": f"{GATHER['arguments']}, stream"}
    description = {"prototypes": prototypes, "gather": {**given, "place": "cuda"}}
    code = ON_A_FAKE_GPU.format(library=str(library), description=description)
    done = run_python(code, env={"LD_LIBRARY_PATH": str(emulated_cuda)})
    assert done.stdout == "done\n", done.stderr


CUDA_PROTOTYPES = """
int Gather(float *source, int *index, float *res, int N, int M);
cudaError_t GatherLater(float *source, int *index, float *res, int N, int M);
cudaError_t GatherOn(float *source, int *index, float *res, int N, int M, cudaStream_t stream);
int Ping(void);
"""
CUDA = {**GATHER, "place": "cuda"}
LATER = {**CUDA, "function": "GatherLater", "returns": "cuda"}
ON = {**LATER, "function": "GatherOn", "arguments": "source, index, result, n, m, stream"}


@pytest.fixture
def cuda_library(build_plugin):
    source = FIXTURES / "plain.cu"
    return build_plugin(source, "plain", cuda=True, extra=["-Xcompiler", "-fvisibility=default"])


@pytest.mark.gpu
@pytest.mark.sanitizer
@pytest.mark.parametrize("description", [CUDA, LATER, ON])
def test_on_a_gpu(cuda_library, description):
    description = {"prototypes": CUDA_PROTOTYPES, "gather": description}
    gather = cuplug.adopt(cuda_library, description).gather
    rng = np.random.default_rng(0)
    source = rng.random(100_000, np.float32)
    index = rng.integers(0, source.size, 50_000, np.int32)
    assert np.array_equal(gather(source, index), source[index])
    on_gpu = gather(cuplug.asarray(source, device="cuda"), cuplug.asarray(index, device="cuda"))
    assert np.array_equal(on_gpu.numpy(), source[index])
    assert gather(source, index[:0]).shape == (0,)


COPIES_BY_ITSELF = """
import cuplug, numpy as np
gather = cuplug.adopt({library!r}, {description!r}).gather
rng = np.random.default_rng(0)
source, index = rng.random(1000, np.float32), rng.integers(0, 1000, 500, np.int32)
for _ in range(2):
    assert np.array_equal(gather(source, index), source[index])
print("done")
"""


@pytest.fixture
def own_copies(build_plugin):
    source = FIXTURES / "cuindex.cu"
    return build_plugin(source, "cuindex", cuda=True, extra=["-Xcompiler", "-fvisibility=default"])


def description_of_own_copies():
    prototypes = "int Gather(float *source, int *index, float *res, int N, int M);"
    return {"prototypes": prototypes, "gather": {**GATHER, "returns": "one"}}


def test_a_library_that_copies_by_itself_is_adopted(own_copies):
    gather = cuplug.adopt(own_copies, description_of_own_copies()).gather
    assert gather(np.ones(3, np.float32), np.zeros(0, np.int32)).shape == (0,)


@pytest.mark.gpu
def test_a_library_that_copies_by_itself_and_resets_the_gpu(own_copies, run_python):
    """In a separate process, where no other code has GPU memory."""
    description = description_of_own_copies()
    done = run_python(COPIES_BY_ITSELF.format(library=str(own_copies), description=description))
    assert done.stdout == "done\n", done.stderr


@pytest.mark.gpu
def test_ping_on_a_gpu(cuda_library):
    ping = {"signature": "ping()", "function": "Ping", "arguments": "", "place": "cuda"}
    assert cuplug.adopt(cuda_library, {"prototypes": CUDA_PROTOTYPES, "ping": ping}).ping() is None


@pytest.mark.gpu
@pytest.mark.parametrize("description", [LATER, ON])
def test_is_ordered_with_streams(cuda_library, description):
    torch = pytest.importorskip("torch")
    description = {"prototypes": CUDA_PROTOTYPES, "gather": description}
    gather = cuplug.adopt(cuda_library, description).gather
    index = torch.arange(1 << 22, dtype=torch.int32, device="cuda").flip(0).contiguous()
    source = torch.zeros(1 << 22, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        for k in range(20):
            source.fill_(k)
            found = gather(source, index) + 1
            assert int(found.min()) == int(found.max()) == k + 1


@pytest.mark.gpu
def test_captures_want_a_stream(cuda_library):
    torch = pytest.importorskip("torch")
    source, index = torch.ones(8, device="cuda"), torch.zeros(4, dtype=torch.int32, device="cuda")
    both = {
        name: cuplug.adopt(
            cuda_library, {"prototypes": CUDA_PROTOTYPES, "gather": description}
        ).gather
        for name, description in (("later", LATER), ("on", ON))
    }
    for gather in both.values():
        gather(source, index)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = both["on"](source, index)
        with pytest.raises(ValueError, match="gather: stream: got one that a CUDA gra"):
            both["later"](source, index)
    source.fill_(5)
    graph.replay()
    assert found.tolist() == [5] * 4


def test_a_name_without_a_folder_is_the_dynamic_linkers(tmp_path, monkeypatch):
    """A file of that name in the current directory may be another user's."""
    (tmp_path / "libm.so.6").write_text("junk")
    monkeypatch.chdir(tmp_path)
    description = {
        "prototypes": "double cbrt(double x);",
        "cbrt": {"signature": "cbrt(x: float) -> y: float64[]", "arguments": "x", "returns": "y"},
    }
    assert np.isclose(cuplug.adopt("libm.so.6", description).cbrt(27), 3)
    with pytest.raises(cuplug.PluginError, match=r"libm\.so\.6"):
        cuplug.adopt("./libm.so.6", description)

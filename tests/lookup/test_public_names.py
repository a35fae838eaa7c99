# SPDX-License-Identifier: Apache-2.0
"""The public names: pickles contain no others, so modules may move."""

import ast
import inspect
import pickle
import pickletools
import pydoc
import re
from pathlib import Path

import cuplug
import cuplug.testing
import numpy as np
import pytest
from cuplug import errors
from cuplug._source.kernels.module_globals import Global
from places import FIXTURES, ROOT
from raw_plugins import named_plugin

PACKAGE = ROOT / "cython" / "cuplug"
MODULES = {"array_api", "ops", "random"}
NAMES = sorted(set(cuplug.__all__) - MODULES)
PUBLIC = {"cuplug", "cuplug.errors", "cuplug.testing", *(f"cuplug.{name}" for name in MODULES)}
# They hold memory, code, or data of one process; a fused function is pickled by its name.
NOT_PICKLED = {cuplug.Kernel, cuplug.Module, cuplug.Fused}
NOT_PICKLED |= {cuplug.Event, cuplug.Graph, cuplug.Handle, cuplug.Stream, cuplug.Texture}
STANDARD = {
    "CudaError": RuntimeError,
    "PluginError": RuntimeError,
    "CompileError": RuntimeError,
    "NotFoundError": LookupError,
    "SignatureError": ValueError,
}
SHOW = r"""
def show(x):
    "What an object is, apart from where it lies."
    inside = "" if isinstance(x, type) else getattr(x, "__dict__", "")
    return re.sub(" at 0x[0-9a-f]+", "", f"{x!r} {inside}")
"""
exec(SHOW)


def modules_named(data: bytes) -> set[str]:
    """Return the modules of cuplug that a pickle of protocol 2 names."""
    found = {arg.split()[0] for code, arg, _ in pickletools.genops(data) if code.name == "GLOBAL"}
    return {module for module in found if module.startswith("cuplug")}


def made_from_source():
    total = cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0", doc="The sum.")
    return [
        cuplug.elementwise("twice(x: T) -> T", "both(x)", preamble="#define both(x) (2 * x)"),
        cuplug.operator("copy(x: T[n]) -> y: T[n] where T: any", arguments="x, y, n", host="..."),
        cuplug.operator("fill() -> y: int8[4]", arguments="y", cuda="...", grid=(1, 2), block=32),
        total,
    ]


def records():
    cuplug.find("relu")(np.ones(3, np.float32))
    return [
        *cuplug.plugins(),
        *cuplug.search_path(),
        cuplug.last_call(),
        *(cuplug.Device("cuda:1"), cuplug.Device("cuda:*")),
        cuplug.MemoryInfo(1, 2, 3, 4, 5, 6),
        cuplug.KernelAttributes(1024, 32, 0, 0, 0, 1 << 16),
        cuplug.Plugin((cuplug.find("relu"), cuplug.find("scale"))),
        *(cuplug.In([1, 2]), cuplug.Out(np.zeros(2)), cuplug.InOut(np.zeros(2))),
        cuplug.Inferred(0, (cuplug.ArraySpec("float32", (2, -1)),)),
        cuplug.ArraySpec("int8", ()),
        cuplug.PickledOperator(cuplug.find, ("nowhere.nothing", "1.0", "ab" * 32)),
        cuplug.asarray([1.5], device="cpu"),
        *(cuplug.Device("cpu"), cuplug.progress()),
    ]


def raised():
    found = [getattr(cuplug, name)("why") for name in NAMES if name.endswith("Error")]
    found += [errors.OperatorAttributeError("why"), errors.OperatorImportError("why")]
    for wrong in (lambda: cuplug.elementwise("f(", "x"), lambda: cuplug.find("nowhere")):
        with pytest.raises((ValueError, cuplug.NotFoundError)) as seen:
            wrong()
        found.append(seen.value)
    return [*found, cuplug.CudaError("why", 700), cuplug.CompileError("why", "a log")]


@pytest.fixture
def objects():
    """Return all public names, and objects of each public class that can be pickled."""
    named = [getattr(cuplug, name) for name in NAMES]
    named += [getattr(cuplug.testing, name) for name in cuplug.testing.__all__]
    return [*named, cuplug.ops.relu, *made_from_source(), *records(), *raised()]


def test_pickles_hold_public_names_alone(objects, run_python, tmp_path):
    seen = {type(x) for x in objects}
    classes = {x for x in map(cuplug.__dict__.get, NAMES) if isinstance(x, type)}
    assert classes - NOT_PICKLED <= seen, "an object of each public class"
    for x in objects:
        assert modules_named(pickle.dumps(x, protocol=2)) <= PUBLIC, repr(x)
    (tmp_path / "pickled").write_bytes(pickle.dumps(objects))
    code = f"import pickle, re\n{SHOW}\nfor x in pickle.load(open('pickled', 'rb')): print(show(x))"
    done = run_python(code)
    assert done.stderr == ""
    assert done.stdout == "".join(f"{show(x)}\n" for x in objects)  # noqa: F821


def test_adopted_operators_are_pickled_by_their_description(build_plugin, run_python):
    pytest.importorskip("cffi")
    library = build_plugin(FIXTURES / "plain.c", "plain", extra=["-fvisibility=default"])
    signature = "scale(inout data: float64[n], factor: float64 = 3)"
    scale = {"signature": signature, "arguments": "data, n, factor"}
    prototypes = "int scale_in_place(double *data, long n, double factor);"
    description = {"prototypes": prototypes, "scale": scale | {"function": "scale_in_place"}}
    data = pickle.dumps(cuplug.adopt(library, description).scale, protocol=2)
    assert modules_named(data) == {"cuplug"}
    code = f"import pickle, numpy; x = numpy.ones(2); pickle.loads({data!r})(x); print(x)"
    assert run_python(code).stdout == "[3. 3.]\n"


def test_memory_of_a_gpu_is_not_pickled():
    variable = Global("table", 4096, 0, np.dtype("int32"), (2,))
    with pytest.raises(TypeError, match="table: its memory is of this process; pickle a copy"):
        pickle.dumps(variable)


def test_all_names_are_seen_and_imported(run_python):
    code = "import cuplug; print(sorted(dir(cuplug)))"
    assert run_python(code).stdout == f"{sorted([*cuplug.__all__, '__version__'])}\n"
    code = "from cuplug import *; import cuplug; print(set(cuplug.__all__) - set(globals()))"
    assert run_python(code).stdout == "set()\n"
    code = "import cuplug; print(cuplug.ops.relu.name, cuplug.nothing)"
    wanted = "no attribute 'nothing': functions of arrays are in cuplug.array_api, operators in"
    assert wanted in run_python(code).stderr


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(cuplug.__file__).with_suffix(".pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    seen = {x.asname: node.module for node in imports for x in node.names if x.name == x.asname}
    homes = {name: f"cuplug.{module}" for name, module in cuplug._HOMES.items()}
    assert seen == homes | dict.fromkeys(MODULES, "cuplug")


def test_help_introduces_each_name_once():
    groups = cuplug.__doc__.partition("Operators of plugins\n")[2]
    lines = re.findall(r"^    (\S+(?:, \S+)*)  +\S", groups, re.M)
    assert sorted(", ".join(lines).split(", ")) == cuplug.__all__
    page = pydoc.render_doc(cuplug, renderer=pydoc.plaintext)
    assert groups.splitlines()[0].strip() in page
    for name in NAMES:
        assert re.search(rf"^    (class )?{name}\(", page, re.M), name


def test_signatures_of_public_names():
    assert str(inspect.signature(cuplug.Operator)) == "()"
    assert str(inspect.signature(cuplug.ops.relu)).startswith("(x, *, out=None, device=None, str")
    assert str(inspect.signature(cuplug.find)) == "(name, version=None, digest=None)"


@pytest.mark.parametrize("name", sorted(set(cuplug.__all__) - MODULES))
def test_what_is_public_has_help_and_a_signature(name):
    found = getattr(cuplug, name)
    assert inspect.getdoc(found)
    if callable(found):
        inspect.signature(found)
        assert "--\n" not in inspect.getdoc(found).partition("\n\n")[0]


def test_no_module_has_the_name_of_something_public():
    inside = {path.stem for path in PACKAGE.iterdir()}
    assert {"errors", "ops"} <= inside
    assert inside & set(cuplug.__all__) == MODULES


USES = """
import pickle
from contextlib import suppress
import cuplug, numpy as np
import cuplug.errors, cuplug.setuptools, cuplug.testing
from cuplug import array_api as xp, ops
from cuplug._integration.commands.cli import main

for library in ("dask", "jax", "torch", "xarray"):
    with suppress(ImportError):
        __import__(f"cuplug.{library}")
x = np.ones((3, 4), np.float32)
cuplug.prepare("relu")
ops.relu(x, out=np.empty_like(x))
cuplug.last_call(), cuplug.plugins(), cuplug.search_path(), cuplug.devices(), cuplug.get_include()
cuplug.find("relu").infer(cuplug.ArraySpec("float32", (3, 4)))
y = xp.sum(cuplug.asarray(x) + 1, axis=0).sort()
pickle.loads(pickle.dumps(cuplug.find("relu")))
cuplug.random.default_rng(0).random(3)
cuplug.elementwise("twice(x: T) -> T", "2 * x")(x)
cuplug.reduction("total(x: T) -> T", reduce="a + b", identity="0")(x)
cuplug.fuse(lambda x: xp.exp(x) / 2)(x)
for name in cuplug.__all__:
    getattr(cuplug, name)
with suppress(SystemExit):
    main(["list"])
seen = {name for name in vars(cuplug) if not name.startswith("_")}
print(sorted(seen - {*cuplug.__all__}))
"""


def test_only_public_names_are_seen_after_use(run_python):
    done = run_python(USES)
    assert done.stderr == ""
    left = set(eval(done.stdout.splitlines()[-1]))
    libraries = {"dask", "jax", "torch", "xarray"}
    assert {"errors", "setuptools", "testing"} <= left
    assert left - libraries == {"errors", "setuptools", "testing"}


def test_no_operator_is_hidden_by_what_finds_it():
    assert [name for name in vars(cuplug.ops) if not name.startswith("_")] == []


def test_attributes_follow_the_search_path(place, tmp_path, monkeypatch):
    named_plugin(place / "libmoved.so", "moved")
    assert cuplug.ops.moved is cuplug.find("moved")
    (tmp_path / "other").mkdir()
    other = named_plugin(tmp_path / "other" / "libmoved.so", "moved")
    for name in ("LD_LIBRARY_CUPLUG_PATH", "LD_LIBRARY_PATH"):
        monkeypatch.setenv(name, str(tmp_path / "other"))
    assert cuplug.ops.moved.path == str(other)
    monkeypatch.delenv("LD_LIBRARY_CUPLUG_PATH")
    monkeypatch.delenv("LD_LIBRARY_PATH")
    with pytest.raises(AttributeError, match="^moved: no plugin has an operator of that name"):
        cuplug.ops.moved  # noqa: B018


def test_functions_that_use_the_operators_are_pickled(run_python):
    assert pickle.loads(pickle.dumps(cuplug.ops)) is cuplug.ops
    pytest.importorskip("cloudpickle")
    code = (
        "import cloudpickle, pickle\n"
        "from cuplug import ops\n"
        "print(pickle.loads(cloudpickle.dumps(lambda: ops.relu.name))())"
    )
    assert run_python(code).stdout == "relu\n"


def test_all_operators_are_imported(run_python):
    code = "from cuplug.ops import *; print(relu.name, gather.name, '__getattr__' in globals())"
    assert run_python(code).stdout == "relu gather False\n"


@pytest.mark.parametrize("name", ["", " ", "relu:nope", "a\0b", "\ud800", "x" * 100_000])
def test_what_no_operator_can_be_called_is_no_attribute(name):
    assert getattr(cuplug.ops, name, None) is None
    with pytest.raises(AttributeError, match="'cuplug.ops' has no attribute") as caught:
        getattr(cuplug.ops, name)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize("name", ["relu\0", "relu\0x", "relu.relu\0", "relu ", "RELU"])
def test_names_beside_that_of_an_operator_in_use(name):
    cuplug.ops.relu(np.zeros(1, "float32"))
    cuplug.find("relu.relu")
    assert getattr(cuplug.ops, name, None) is None
    with pytest.raises((ValueError, LookupError)):
        cuplug.find(name)


def test_an_operator_in_use_gives_way_to_one_ahead_of_it(tmp_path, monkeypatch):
    """It is used again if that plugin is removed from the search path."""
    stock = cuplug.ops.leaky_relu
    stock(np.zeros(1, "float32"))
    named_plugin(tmp_path / "libleaky_relu.so", "leaky_relu")
    with monkeypatch.context() as changed:
        changed.setenv("LD_LIBRARY_CUPLUG_PATH", str(tmp_path))
        assert cuplug.ops.leaky_relu.path == str(tmp_path / "libleaky_relu.so")
    assert cuplug.ops.leaky_relu is stock


def test_attributes_of_what_is_no_module():
    with pytest.raises(TypeError, match="requires a 'module' object"):
        type(cuplug.ops).__getattribute__(None, "relu")


def test_import_loads_the_core_alone(run_python):
    code = "import sys, cuplug; print(sorted(m for m in sys.modules if m.startswith('cuplug')))"
    seen = eval(run_python(code).stdout)
    assert seen == [
        *("cuplug", "cuplug._cython", "cuplug._engine"),
        *("cuplug._engine.base", "cuplug._engine.base.strings"),
    ]
    names = "cuplug.build, cuplug.BuildError, cuplug.get_include, cuplug.CudaError"
    code = f"import sys, cuplug; {names}; print('numpy' in sys.modules)"
    assert run_python(code).stdout == "False\n"


def test_exceptions_have_one_root_and_a_standard_class():
    found = set()
    for file in PACKAGE.rglob("*.py*"):
        found |= set(re.findall(r"^class ([A-Z]\w*Error)\(([\w, ]+)\)", file.read_text(), re.M))
    roots = {"Error", "CudaError", "PluginError", "NotFoundError", "CompileError"}
    assert ("CudaError", "Error, RuntimeError") in found
    assert {name for name, bases in found if not roots & set(bases.split(", "))} == set()
    for x in raised():
        assert isinstance(x, cuplug.Error)
    for name, standard in STANDARD.items():
        assert issubclass(getattr(errors, name), standard)


@pytest.mark.parametrize(
    "name", ["Device", "Event", "Graph", "In", "InOut", "Out", "Stream", "Texture"]
)
def test_classes_have_signatures(name):
    """Also classes of Cython, which have them in their docstrings."""
    cls = getattr(cuplug, name)
    names = {x.name for x in inspect.signature(cls).parameters.values()}
    documented = cls.__doc__.partition("Parameters\n")[2].partition("\n\n")[0]
    assert names == set(re.findall(r"^ {0,4}(\w+) : ", documented, re.M))
    assert "--" not in cls.__doc__.partition("Parameters")[0]

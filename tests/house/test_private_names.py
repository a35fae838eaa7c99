# SPDX-License-Identifier: Apache-2.0
"""Private names of PyTorch and JAX: in one module for each library, which lists them."""

import ast
import re
from pathlib import Path

import pytest
from places import ROOT

PACKAGE = ROOT / "cython" / "cuplug"
LIBTORCH = PACKAGE / "_engine/interop/libtorch.pyx"
TORCH = LIBTORCH.with_name("torch_private.py")
JAX = LIBTORCH.with_name("jax_private.py")
# `torch._check` is documented. Names of C++ are mangled.
PRIVATE = re.compile(
    r"\btorch\._(?!check\b)\w+|\b_C\.\w+|\b_functorch\b|\bforward_ad\._\w+|\b_SingleLevel\w*"
    r"|\b_OpNamespace\b|\b_make_(?:wrapper|dual)\w*|\._base\b|\b_cdata\b|\bpy_impl\b"
    r"|\bjax(?:lib)?\._src\b|\bjax\.interpreters\b|\bb[\"']_Z\w+"
)


def sources() -> list[Path]:
    found = (path for end in ("py", "pyx", "pxd") for path in PACKAGE.rglob(f"*.{end}"))
    return sorted(found)


def test_other_modules_have_none():
    others = [path for path in sources() if path not in (LIBTORCH, TORCH, JAX)]
    found = [f"{path.relative_to(ROOT)}: {x}" for path in others for x in names_in(path)]
    assert len(others) > 100
    assert found == []


def names_in(path: Path) -> list[str]:
    return PRIVATE.findall(path.read_text())


@pytest.mark.parametrize(
    "text",
    [
        *("torch._C._x()", "module._C.f", "b'_ZN2at5aliasE'", "b'_Z16THPVariable_Wrap'"),
        *("x._cdata", "from jax._src import core", "jax.interpreters.ad", "forward_ad._level"),
    ],
)
def test_the_pattern_finds(text):
    assert PRIVATE.search(text)


def test_pytorch_names_are_listed():
    text = TORCH.read_text()
    listed = ast.get_docstring(ast.parse(text))
    code = text.replace(listed, "")
    used = set(re.findall(r"\b(_(?:C|VF|ops)\.\w+|_?forward_ad\._\w+|Tensor\._\w+)", code))
    assert len(used) > 10
    assert [name for name in used if name.split(".")[-1] not in listed] == []


def test_jax_names_are_listed():
    listed = ast.get_docstring(ast.parse(JAX.read_text()))
    users = [PACKAGE / f"_integration/jax/{name}.py" for name in ("call", "gradient")]
    code = "\n".join(path.read_text() for path in users)
    used = set(re.findall(r"(?<![\w.])((?:ad|batching|dispatch|mlir|xla)\.\w+)", code))
    assert used == set(re.findall(r"`((?:ad|batching|dispatch|mlir|xla)\.\w+)`", listed))


def test_each_mangled_name_is_used():
    """Modules that call `find_symbols` use it under a readable name."""
    text = LIBTORCH.read_text()
    keys = re.findall(r'^    (b"[^"]+"):', text, re.M)
    users = [path.read_text() for path in sources() if "find_symbols" in path.read_text()]
    assert len(keys) > 5
    assert [key for key in keys if sum(user.count(key) for user in users) < 2] == []

# SPDX-License-Identifier: Apache-2.0
"""CUPLUG_NVTX: each call is a range, recorded by a replacement of the package `nvtx`."""

NVTX = """
noted = []

def push_range(name, domain):
    noted.append((name, domain))

def pop_range(domain):
    noted.append(("pop", domain))
"""

CODE = """
import numpy as np, cuplug
x = np.ones(3, np.float32)
cuplug.ops.relu(x)
try:
    cuplug.ops.relu("x")
except TypeError:
    pass
import nvtx
assert nvtx.noted == 2 * [("relu", "cuplug"), ("pop", "cuplug")], nvtx.noted
"""


def test_calls_are_ranges(run_python, tmp_path):
    (tmp_path / "nvtx.py").write_text(NVTX)
    text = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{CODE}"
    done = run_python(text, {"CUPLUG_NVTX": "1"})
    assert done.returncode == 0, done.stderr


def test_a_missing_package_is_named(run_python):
    text = "import sys; sys.modules['nvtx'] = None\nimport cuplug; cuplug.ops.relu"
    done = run_python(text, {"CUPLUG_NVTX": "1"})
    assert "CUPLUG_NVTX: it needs the Python package nvtx: install it" in done.stderr
    assert run_python(text, {"CUPLUG_NVTX": "0"}).returncode == 0

# SPDX-License-Identifier: Apache-2.0
"""Documentation of single parameters: in help, notebooks, stubs, `cuplug info` and `check`."""

import json

import cuplug
import pytest
from click.testing import CliRunner
from cuplug._integration.author import bind, check
from cuplug._integration.commands.cli import main
from processes import run

SOURCE = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int blur_host(const cuplug_call *call) { return call ? CUPLUG_OK : 1; }
CUPLUG_HOST_OPERATOR(blur_host, "blur(x: float32[n], width: int = 3) -> y: float32[n]",
                     "Blurs \\\\x." CUPLUG_DOC(x, "An <image>, \\"gray\\".")
                     CUPLUG_DOC(width, "Pixels = odd.") CUPLUG_DOC(y, "The result.")
                     CUPLUG_DETERMINISTIC);
CUPLUG_HOST_OPERATOR(blur_host, "blur(x: float64[n], width: int = 3) -> y: float64[n]",
                     "The same." CUPLUG_DOC(x, "In double precision.")
                     CUPLUG_DOC(y, "The result."));
CUPLUG_HOST_OPERATOR(blur_host, "plain(x: float32[n]) -> float32[n]", "Plain.");
CUPLUG_PLUGIN(documented, "1.0.0");
"""
SECTION = """\
Parameters
----------
x
    An <image>, "gray". In double precision.
width
    Pixels = odd.
y
    The result.
"""


@pytest.fixture
def path(build_plugin):
    return build_plugin(SOURCE, "documented")


def test_help_and_notebooks(path):
    plugin = cuplug.load(path)
    assert f"\nBlurs \\x.\nThe same.\n\n{SECTION}\nPlugin documented" in plugin.blur.__doc__
    assert "<dt>x</dt><dd>An &lt;image&gt;, &quot;gray&quot;. In" in plugin.blur._repr_html_()
    assert "Parameters" not in plugin.plain.__doc__
    assert "<dl>" not in plugin.plain._repr_html_()


def test_stubs(path, tmp_path):
    written = bind.write_stubs([str(path)], str(tmp_path))
    text = (tmp_path / written.pyi.rpartition("/")[2]).read_text()
    compile(text, "stub", "exec")
    assert "\n        width\n            Pixels = odd.\n" in text
    assert '"""Plain."""' in text
    assert [line for line in text.splitlines() if line != line.rstrip()] == []


def test_info(path):
    found = run("info", "documented.blur", LD_LIBRARY_CUPLUG_PATH=str(path.parent)).stdout
    assert "properties: deterministic\n" in found
    lines = [x.split(maxsplit=4) for x in found.splitlines() if x.startswith("width")]
    first = ["width", "scalar", "int64", "3"]
    assert lines == [[*first, "Pixels = odd."], first]
    arguments = ["info", "documented.blur", "--json"]
    document = json.loads(run(*arguments, LD_LIBRARY_CUPLUG_PATH=str(path.parent)).stdout)
    first = document["signatures"][0]
    told = {x["name"]: x["doc"] for x in first["parameters"] + first["outputs"]}
    assert told == {"x": 'An <image>, "gray".', "width": "Pixels = odd.", "y": "The result."}


def test_check_names_parameters_that_do_not_exist(build_plugin):
    path = build_plugin(
        SOURCE.replace("documented", "wrong").replace("DOC(width", "DOC(w"), "wrong"
    )
    result = CliRunner().invoke(main, ["check", str(path)])
    assert "overload 0: got the documentation of w, expected a parameter" in result.output
    assert all(x.level != check.ERROR for x in check.check_file(str(path)))

# SPDX-License-Identifier: Apache-2.0
"""The page of `cuplug list --html`, the variables of `cuplug env`, and completion in a shell."""

import json
import os
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from cuplug._engine.base import environment
from cuplug._integration.author.fatbin import Code
from cuplug._integration.commands import doctor, listing
from cuplug._integration.commands.cli import main
from places import ROOT
from processes import run


class Tables(HTMLParser):
    """The first table of each first heading, tags that are not closed, and addresses."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.open, self.links = {}, [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.links += [value for name, value in attributes if name in ("href", "src")]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "table":
            self.tables.setdefault(self.rows[0][0], self.rows[1:])


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Write the page for a machine with these GPUs, and a broken file on the path."""
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", str(tmp_path))
    tmp_path.chmod(0o755)
    (tmp_path / "libbad.so").write_bytes(b"<b>bad</b>")
    look_around = listing.look_around

    def look(*capabilities):
        machine = look_around()
        machine.devices = [
            SimpleNamespace(index=k, name="GPU <x>", compute_capability=x)
            for k, x in enumerate(capabilities)
        ]
        return machine

    def write(*capabilities):
        monkeypatch.setattr(listing, "look_around", lambda: look(*capabilities))
        file = tmp_path / "page.html"
        result = CliRunner().invoke(main, ["list", "--html", str(file)])
        assert (result.exit_code, result.output) == (0, "")
        return file.read_text()

    return write


def test_the_page_has_plugins_and_operators(page):
    text = page()
    found = Tables(text)
    assert (found.open, found.links) == ([], [])  # one file, which loads no other
    plugins = {row[0]: row for row in found.tables["Plugin"]}
    assert plugins["gather"][2:4] == ["ok", "cpu, cuda" if plugins["gather"][4] else "cpu"]
    assert re.match("rejected: .*<b>bad", plugins[""][2])
    rows = [row for row in found.tables["Operator"] if row[4] == "gather"]
    assert {row[0] for row in rows} == {"gather", "gather_backward"}
    signatures = [" ".join(x.split()) for x in listing.cuplug.find("gather.gather").signatures]
    assert [" ".join(row[1].split()) for row in rows if row[0] == "gather"] == signatures
    assert "No GPU" in text
    assert "Registers are read on a GPU" in text


def test_the_page_compares_architectures_with_the_gpus(page, monkeypatch):
    monkeypatch.setattr(listing, "code_of", lambda plugin: Code({80}, {80}))
    facts = dict.fromkeys(listing.KERNEL_FACTS, 7) | {"kernel": "add<int>"}
    monkeypatch.setattr(listing, "kernels_of", lambda path: [facts])
    stock = [x for x in listing.cuplug.plugins() if (x.origin, x.state) == ("stock", "ok")]
    changed = [x._replace(device_types=("cpu", "cuda"), architectures=(800,)) for x in stock]
    monkeypatch.setattr(listing.cuplug, "plugins", lambda: changed)
    text = page(75, 86, 90)
    assert "cuda:2 GPU &lt;x&gt;, compute capability 9.0" in text
    found = Tables(text)
    assert {row[4] for row in found.tables["Plugin"]} == {
        "8.0\nno code for cuda:0\nmachine code for cuda:1\nonly PTX for cuda:2"
    }
    kernels = text.rpartition('<section id="kernels">')[2]
    assert kernels.count("add&lt;int&gt;") == len(stock)


def test_variables(monkeypatch):
    monkeypatch.setenv("CUPLUG_VERBOSE", "1")
    monkeypatch.setenv("CUPLUG_PATHS", "/x")
    monkeypatch.setenv("CUPLUG_ALOW_GROUP", "1")
    monkeypatch.delenv("CUPLUG_ALLOW_GROUP", raising=False)
    found = {x.name: x for x in doctor.variables()}
    assert (found["CUPLUG_VERBOSE"].value, found["CUPLUG_VERBOSE"].source) == ("1", "environment")
    assert found["CUPLUG_VERBOSE"].default == "0"
    assert (found["CUPLUG_ALLOW_GROUP"].value, found["CUPLUG_ALLOW_GROUP"].source) == (
        "0",
        "default",
    )
    assert found["CUPLUG_ALOW_GROUP"].meaning == "did you mean CUPLUG_ALLOW_GROUP?"
    assert found["CUPLUG_PATHS"].source == "unknown"
    notes = [x.text for x in doctor.examine_environment(doctor.Machine())]
    assert "CUPLUG_PATHS is set, and cuplug does not read it" in notes
    monkeypatch.setattr(environment, "privileged", True)
    ignored = {x.name: x for x in doctor.variables()}["CUPLUG_VERBOSE"]
    assert (ignored.value, ignored.source) == ("0", "ignored")


def test_env(monkeypatch):
    document = json.loads(run("env", "--json", CUPLUG_DEVICE="cpu").stdout)
    (device,) = (x for x in document["variables"] if x["name"] == "CUPLUG_DEVICE")
    assert (device["value"], device["source"]) == ("cpu", "environment")
    done = run("env", CUPLUG_DEVICES="cuda")
    advice = "CUPLUG_DEVICES is not a variable of cuplug; did you mean CUPLUG_DEVICE?"
    assert advice in done.stdout.splitlines()


def test_the_page_of_variables_lists_what_the_sources_read():
    """Except the shell's variables, and ones that are read only to describe the machine."""
    calls = r'(?:getenv|environ\.get|environment\.variable|command_of)\(\s*"([A-Z_]+)"'
    folders = (ROOT / x for x in ("core", "runtime", "cython"))
    files = [x for folder in folders for x in folder.rglob("*.*") if x.suffix in (".c", ".py")]
    files += (ROOT / "cython").rglob("*.pyx")
    read = {name for x in files for name in re.findall(calls, x.read_text())}
    assert len(read) > 15
    listed = {x.name for x in doctor.variables() if x.source != "unknown"}
    assert read - {"PATH", "HOME", "PYTHONPATH", "SUDO_UID", "XDG_RUNTIME_DIR"} <= listed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cuplug info gat", ["gather", "gather_backward"]),
        ("cuplug test gather.gather_", ["gather.gather_backward"]),
        ("cuplug uninstall gat", ["gather"]),
        ("cuplug help envi", ["environment"]),
        ("cuplug comp", ["completion"]),
    ],
)
def test_completion(words, expected):
    last = len(words.split()) - 1
    done = run(COMP_WORDS=words, COMP_CWORD=str(last), _CUPLUG_COMPLETE="bash_complete")
    kinds = [line.partition(",") for line in done.stdout.splitlines()]
    assert [name for kind, _, name in kinds if kind == "plain"] == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell):
    assert "_CUPLUG_COMPLETE" in run("completion", shell).stdout
    assert os.environ.get("_CUPLUG_COMPLETE") is None

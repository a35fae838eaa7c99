# SPDX-License-Identifier: Apache-2.0
"""Plugins that are installed in searched folders, and removed."""

import json
import os
import shutil

import cuplug
import pytest
from click.testing import CliRunner
from cuplug._integration.commands.cli import main
from raw_plugins import named_plugin, quoted

pytestmark = pytest.mark.usefixtures("place")


@pytest.fixture
def built(tmp_path, build_plugin):
    """Return a plugin that fulfils the build contract, in a folder that is not searched."""
    source = tmp_path / "fitted.c"
    source.write_text(
        "#include <cuplug/plugin.h>\n"
        "CUPLUG_ENTRY int fitted_host(const cuplug_call *call) { (void)call; return 0; }\n"
        'CUPLUG_HOST_OPERATOR(fitted_host, "fitted()", "Does nothing.");\n'
        'CUPLUG_PLUGIN(fitted, "1.0");\n'
    )
    return cuplug.build(source)


def run(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(main, arguments)


def told(*arguments):
    """Return its JSON output."""
    done = run(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_into_the_first_folder_that_can_be_written(place, built):
    os.chmod(built, 0o666)  # the copy is used
    wanted = str(place / "libfitted.so")
    assert told("install", built) == {"path": wanted, "state": "ok", "reason": ""}
    assert cuplug.find("fitted").path == wanted
    assert os.stat(wanted).st_mode & 0o777 == 0o755
    assert os.listdir(place) == ["libfitted.so"]
    assert run("install", built).output == f"{wanted}\n"
    assert told("uninstall", "fitted") == {"removed": wanted, "used": None}
    assert os.listdir(place) == []


def test_into_the_users_folder(tmp_path, built, monkeypatch):
    monkeypatch.delenv("LD_LIBRARY_CUPLUG_PATH")
    wanted = tmp_path / "home/.local/share/cuplug/plugins/libfitted.so"
    assert told("install", built)["path"] == str(wanted)
    assert cuplug.find("fitted.fitted").path == str(wanted)
    assert run("uninstall", "fitted").output == f"removed: {wanted}\n"


def test_into_a_folder_that_is_named(place, tmp_path, built, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    found = told("install", built, "--to", str(other))
    assert (found["state"], found["reason"]) == (
        "not found",
        "its folder is not on the search path",
    )
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{other}")
    told("install", built)
    assert told("install", built, "--to", str(other))["state"] == "shadowed"
    assert told("uninstall", "fitted")["used"] == str(other / "libfitted.so")


def test_the_folder_that_a_plugin_was_built_in(place, built):
    folder = place.parent / "fitted"
    folder.mkdir()
    shutil.copy(built, folder)
    assert told("install", str(folder))["path"] == str(place / "libfitted.so")


def test_an_old_version_runs_on(place, built):
    old = named_plugin(place / "libfitted.so", "fitted", VERSION=quoted("0.1"))
    before = old.stat().st_ino
    cuplug.find("fitted")
    told("install", built)
    assert old.stat().st_ino != before
    assert cuplug.find("fitted").version == "1.0"


def refusal(*arguments):
    """Return the message of a rejected command."""
    done = run(*arguments)
    assert done.exit_code == 1
    return done.output


def test_what_is_refused(place, tmp_path, built):
    assert "no such file" in refusal("install", str(tmp_path / "none.so"))
    (tmp_path / "text.so").write_text("text")
    assert "expected an ELF shared object" in refusal("install", str(tmp_path / "text.so"))
    flawed = named_plugin(tmp_path / "flawed", "flawed", HOST_ENTRY=quoted("absent"))
    assert f"install: {flawed}: " in refusal("install", str(flawed))
    assert "no such folder" in refusal("install", built, "--to", str(tmp_path / "no"))
    place.chmod(0o777)
    assert "anyone may write it" in refusal("install", built, "--to", str(place))
    assert os.listdir(place) == []


def test_what_is_not_uninstalled(place):
    assert "there is no libgather.so" in refusal("uninstall", "gather")
    assert "expected the name of a plugin" in refusal("uninstall", "../x")

# SPDX-License-Identifier: Apache-2.0
"""The search path: the plugins that are found, their order, and the message if none is."""

import os
import shutil
from pathlib import Path

import cuplug
import pytest
from raw_plugins import compile_fixture, listed, named_plugin, quoted

pytestmark = pytest.mark.usefixtures("place")


# ---- Accepted files ----------------------------------------------------------------------------


def test_good_plugin_is_listed(place, good_file):
    shutil.copy(good_file, place / "libraw.so")
    record = listed(place / "libraw.so")
    assert (record.state, record.reason, record.loaded) == ("ok", "", False)
    assert (record.name, record.version) == ("raw", "1.0.0")
    assert list(record.operators) == ["raw"]
    assert list(record.device_types) == ["cpu"]


def test_listing_and_finding_run_no_code(place, run_python):
    path = compile_fixture("constructor.c", place / "libtell.so")
    done = run_python(
        f"""
import ctypes, cuplug
loaded = lambda: ctypes.CDLL(None).getenv(b"CUPLUG_TEST_LOADED")
assert [record for record in cuplug.plugins() if record.name == "tell"]
tell = cuplug.find("tell")
assert tell is cuplug.find("tell.tell") or tell.path == cuplug.find("tell.tell").path
assert cuplug.load({str(path)!r}).name == "tell"
assert not loaded()
tell()
assert loaded()
"""
    )
    assert done.returncode == 0, done.stderr


def test_file_of_any_name_is_loaded(tmp_path):
    path = named_plugin(tmp_path / "anything.plugin", "anything")
    plugin = cuplug.load(str(path))
    assert (plugin.name, plugin.path) == ("anything", str(path))
    assert cuplug.find("anything").path == str(path)


def test_relative_path_is_loaded(tmp_path, monkeypatch):
    named_plugin(tmp_path / "librelative.so", "relative")
    monkeypatch.chdir(tmp_path)
    assert cuplug.load("librelative.so").path == str(tmp_path / "librelative.so")


def test_file_loaded_last_comes_first(tmp_path, place):
    named_plugin(place / "liborder.so", "order")
    assert cuplug.find("order").path == str(place / "liborder.so")
    for version in ("1.1", "1.2"):
        named_plugin(tmp_path / version, "order", VERSION=quoted(version))
        assert cuplug.load(str(tmp_path / version)).version == version
        assert cuplug.find("order").version == cuplug.find("order.order").version == version
    records = [record for record in cuplug.plugins() if record.name == "order"]
    assert [record.state for record in records] == ["ok", "shadowed", "shadowed"]
    assert records[1].reason == f"shadowed by {tmp_path / '1.2'}"


# ---- Which plugin counts -----------------------------------------------------------------------


def test_earlier_directory_shadows(tmp_path, place, monkeypatch):
    later = tmp_path / "later"
    later.mkdir()
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{later}")
    for directory in (place, later):
        named_plugin(directory / "libshade.so", "shade")
    assert listed(place / "libshade.so").state == "ok"
    record = listed(later / "libshade.so")
    assert (record.state, record.reason) == ("shadowed", f"shadowed by {place / 'libshade.so'}")
    assert cuplug.find("shade").path == str(place / "libshade.so")


def test_rejected_file_shadows_nothing(tmp_path, place, monkeypatch):
    later = tmp_path / "later"
    later.mkdir()
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{later}")
    (place / "libstand.so").write_bytes(b"")
    named_plugin(later / "libstand.so", "stand")
    assert cuplug.find("stand").path == cuplug.find("stand.stand").path
    assert cuplug.find("stand").path == str(later / "libstand.so")
    assert listed(later / "libstand.so").state == "ok"


def test_file_must_be_called_as_its_plugin(place):
    path = named_plugin(place / "libother.so", "mine")
    reason = 'it holds the plugin "mine", so its file must be called libmine.so'
    assert listed(path).reason == reason
    with pytest.raises(cuplug.NotFoundError, match=r"rejected: .*libother.so: it holds"):
        cuplug.find("other.mine")
    shutil.copy(path, place / "libmine.so")
    assert listed(path).reason == reason + ", which is also in the same directory"
    assert cuplug.find("mine").path == str(place / "libmine.so")


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_linked_file_counts_once(tmp_path, place, monkeypatch, link):
    later = tmp_path / "later"
    later.mkdir()
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{later}")
    path = named_plugin(place / "liblinked.so", "linked")
    link(path, later / "liblinked.so")
    record = listed(later / "liblinked.so")
    assert (record.state, record.reason) == ("duplicate", f"the same file as {path}")


def test_operator_in_a_plugin_of_another_name(place):
    named_plugin(place / "libcase.so", "case", SECOND_SIGNATURE=quoted("inner(n: int)"))
    assert cuplug.find("inner").plugin == "case"
    assert cuplug.find("case.inner").name == "inner"
    assert list(listed(place / "libcase.so").operators) == ["case", "inner"]


def test_search_path_in_order(tmp_path, place, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "home/.local/share/cuplug/plugins").mkdir(parents=True)
    monkeypatch.setenv(
        "LD_LIBRARY_CUPLUG_PATH", f":{place}//::relative:{place}:{tmp_path}/file:{tmp_path}/no:"
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    records = {d.path: (d.state, d.reason) for d in cuplug.search_path()}
    expected = {
        "relative": ("rejected", "got a relative path, expected an absolute one"),
        f"{tmp_path}/file": ("rejected", "not a directory"),
        f"{tmp_path}/no": ("missing", "does not exist"),
        str(tmp_path): ("ok", ""),
        f"{tmp_path}/home/.local/share/cuplug/plugins": ("ok", ""),
    }
    paths = [directory.path for directory in cuplug.search_path()]
    assert paths[0] == paths[2] == str(place)
    assert list(records)[1:6] == list(expected)
    assert {path: records[path] for path in expected} == expected
    assert records[str(place)] == ("duplicate", f"the same directory as {place}")
    assert paths[-1].endswith("/cuplug")


def test_user_directory_follows_xdg(tmp_path, place, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    paths = [directory.path for directory in cuplug.search_path()]
    assert str(tmp_path / "data/cuplug/plugins") in paths
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    paths = [directory.path for directory in cuplug.search_path()]
    assert str(tmp_path / "home/.local/share/cuplug/plugins") in paths


def test_libraries_without_a_table_are_left_out_of_the_library_path(tmp_path, place, monkeypatch):
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    compile_fixture("no_table.c", libraries / "libplain.so")
    (libraries / "libscript.so").write_text("INPUT(-lc)")
    named_plugin(libraries / "libold.so", "old", ABI=quoted("1.9"))
    named_plugin(libraries / "libfresh.so", "fresh")
    files = [r for r in cuplug.plugins() if Path(r.path).parent == libraries]
    assert [(Path(r.path).name, r.state) for r in files] == [
        ("libfresh.so", "ok"),
        ("libold.so", "rejected"),
    ]
    assert cuplug.find("fresh").path == str(libraries / "libfresh.so")


def test_a_thousand_plugins(place):
    first = named_plugin(place / "libmany0000.so", "many0000")
    image = first.read_bytes()
    names = [f"many{number:04}" for number in range(1000)]
    for name in names[1:]:
        text = image.replace(b"name=many0000", b"name=" + name.encode())
        (place / f"lib{name}.so").write_bytes(text)
    records = [record for record in cuplug.plugins() if Path(record.path).parent == place]
    assert [record.name for record in records] == names
    assert {record.state for record in records} == {"ok"}
    assert cuplug.find("many0500.many0000").path == str(place / "libmany0500.so")


# ---- Names that lead nowhere -------------------------------------------------------------------


def test_unknown_operator(place):
    named_plugin(place / "libzebra.so", "zebra")
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("zerba")
    lines = str(caught.value).splitlines()
    assert lines[0] == "zerba: no plugin has an operator of that name; did you mean zebra?"
    assert lines[1] == f"  searched: {place}"
    assert any(line.endswith("/plugins (does not exist)") for line in lines)


@pytest.mark.parametrize("asked", ["hidden", "other.hidden"])
def test_a_rejected_file_that_has_the_operator(place, asked):
    """The message names it, whatever its name, and the reason."""
    file = named_plugin(
        place / "libother.so", "other", SIGNATURE=quoted("hidden(x: int8[n]) -> int8[n]")
    )
    file.chmod(0o666)
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find(asked)
    assert f"\n  rejected: {file}: anyone may write it (mode 666)" in str(caught.value)
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("shown")
    assert "\n  rejected" not in str(caught.value)


def test_some_files_whose_operators_are_not_known(place):
    for k in range(5):
        (place / f"libbroken{k}.so").write_bytes(b"text")
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("nothing")
    text = str(caught.value)
    assert text.count("\n  rejected, with unknown operators: ") == 3
    assert "\n  rejected: 2 more files; cuplug list shows them" in text


@pytest.mark.parametrize("value", [None, "", "/nowhere"])
def test_the_variable_is_named(monkeypatch, value):
    monkeypatch.delenv("LD_LIBRARY_CUPLUG_PATH", raising=False)
    if value is not None:
        monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", value)
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("nothing")
    advice = "is set; add to it" if value else "is not set; set it to"
    assert str(caught.value).endswith(f"  LD_LIBRARY_CUPLUG_PATH {advice} the folder of the plugin")


@pytest.mark.parametrize(
    ("name", "is_named"),
    [
        *[(name, True) for name in ("CUPLUG_PATH", "LD_LIBRARY_PATH_CUPLUG", "CUPLUG_PLUGINS")],
        *[(name, True) for name in ("LD_LIBRARY_CUPLUG_PTH", "LD_LIBARY_CUPLUG_PATH")],
        *[(name, True) for name in ("ld_library_cuplug_path", "CUPLUG_PLUGIN_DIR", "CuplugPath")],
        *[(name, False) for name in ("CUPLUG_CACHE_DIR", "LD_LIBRARY_PATH", "LIBRARY_PATH")],
        *[(name, False) for name in ("CUPLUG_ALLOW_GROUP", "PYTHONPATH", "CUPLUG_VERBOSE")],
    ],
)
def test_variables_that_are_misspelled(monkeypatch, name, is_named):
    monkeypatch.setenv(name, "/nowhere")
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("nothing")
    advice = f"\n  {name} is set, and cuplug does not read it; set LD_LIBRARY_CUPLUG_PATH\n"
    assert (advice in str(caught.value)) == is_named


@pytest.mark.parametrize(
    ("asked", "near"),
    [("qqqqqqqq", ""), ("zgizag", "zigzag"), ("zigza", "zigzag"), ("zizag", "zigzag")],
)
def test_what_is_near(place, asked, near):
    named_plugin(place / "libzigzag.so", "zigzag")
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find(asked)
    first = str(caught.value).splitlines()[0]
    assert first.partition("did you mean ")[2] == (f"{near}?" if near else "")


def test_unknown_plugin(place):
    (place / "libnothing.so").write_bytes(b"")
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("nothing.op")
    lines = str(caught.value).splitlines()
    assert lines[0] == 'nothing.op: no plugin "nothing" (libnothing.so) was found'
    assert lines[1] == (
        f"  rejected: {place / 'libnothing.so'}: got an empty file, expected a shared object"
    )


def test_near_plugin(place):
    named_plugin(place / "libzebra.so", "zebra")
    with pytest.raises(cuplug.NotFoundError, match=r"did you mean zebra\.zebra\?"):
        cuplug.find("zebro.zebra")


def test_plugin_without_that_operator(place):
    path = named_plugin(place / "libzoo.so", "zoo", SECOND_SIGNATURE=quoted("lion()"))
    with pytest.raises(cuplug.NotFoundError) as caught:
        cuplug.find("zoo.tiger")
    assert str(caught.value) == (
        f'zoo.tiger: plugin "zoo" ({path}) has no operator "tiger"; it has zoo, lion'
    )


@pytest.mark.parametrize("name", ["", "a b", "a.b.c", ".a", "a.", "1a", "a-b", "é", "n" * 200])
def test_what_is_no_name(place, name):
    with pytest.raises(ValueError, match=r'expected "operator" or "plugin.operator"'):
        cuplug.find(name)


def test_missing_file():
    with pytest.raises(cuplug.NotFoundError, match=r"^/nonexistent/libx.so: no such file$"):
        cuplug.load("/nonexistent/libx.so")

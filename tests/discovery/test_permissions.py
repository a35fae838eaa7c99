# SPDX-License-Identifier: Apache-2.0
"""The permissions of a plugin, and of each directory in its real path."""

import grp
import os
import pwd
import shutil
import tempfile
from pathlib import Path

import cuplug
import pytest
from cuplug._engine.discovery.table import read_table
from cuplug._integration.author.check import check_file
from processes import NEEDS_ROOT, enter_user_namespace, in_child
from raw_plugins import assert_refused, compile_fixture, directory_at, listed, named_plugin

pytestmark = pytest.mark.usefixtures("place")

STRANGER = 12345  # a user, and a group


@pytest.fixture
def nested(place, monkeypatch):
    """Return a folder of plugins in another folder, both of this user."""
    folder = place / "above" / "own"
    folder.mkdir(parents=True)
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", str(folder))
    return folder


def test_world_writable_file(place, monkeypatch, good_file):
    path = Path(shutil.copy(good_file, place / "libraw.so"))
    path.chmod(0o757)
    reason = (
        "anyone may write it (mode 757); remove this permission with chmod o-w, or "
        "set CUPLUG_ALLOW_UNSAFE=1"
    )
    assert_refused(path, reason)
    assert listed(path).name == read_table(str(path)).name == "raw"
    for other in ("CUPLUG_ALLOW_UNSAFE", "yes"), ("CUPLUG_ALLOW_GROUP", "1"):
        monkeypatch.setenv(*other)
        assert listed(path).reason == reason
    monkeypatch.setenv("CUPLUG_ALLOW_UNSAFE", "1")
    assert listed(path).state == "ok"


def test_the_folder_of_stock_plugins_excuses_no_other(place, monkeypatch, good_file):
    stock = Path(cuplug.find("gather").path).parent
    path = Path(shutil.copy(good_file, place / "libraw.so"))
    there = stock / os.path.relpath(path, stock)
    path.chmod(0o666)
    with pytest.raises(cuplug.PluginError, match="anyone may write it"):
        cuplug.load(there)
    place.chmod(0o777)
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", str(there.parent))
    assert directory_at(there.parent).reason.startswith("anyone may write it (mode 777)")


def test_world_writable_directory(place, good_file):
    shutil.copy(good_file, place / "libraw.so")
    for mode in (0o777, 0o1777):
        place.chmod(mode)
        assert directory_at(place).state == "rejected"
        assert directory_at(place).reason.startswith("anyone may write it (mode 777)")
    assert not [r for r in cuplug.plugins() if Path(r.path).parent == place]


@pytest.mark.parametrize(("mode", "state"), [(0o777, "rejected"), (0o1777, "ok")])
def test_a_directory_above_may_be_sticky(nested, mode, state):
    nested.parent.chmod(mode)
    record = directory_at(nested)
    assert record.state == state
    if state != "ok":
        assert record.reason.startswith(f"{nested.parent}, on the way to it: anyone may write it")


@NEEDS_ROOT
@pytest.mark.parametrize("which", ["file", "folder", "above"])
def test_another_group(nested, good_file, monkeypatch, which):
    path = Path(shutil.copy(good_file, nested / "libraw.so"))
    shared = {"file": path, "folder": nested, "above": nested.parent}[which]
    os.chown(shared, -1, STRANGER)
    shared.chmod(0o775)
    reason = (
        f"group {STRANGER} may write it (mode 775); remove this permission with chmod g-w, or "
        "set CUPLUG_ALLOW_GROUP=1"
    )
    way = f"{nested.parent}, on the way to it: " if which == "above" else ""
    record = listed(path) if which == "file" else directory_at(nested)
    assert (record.state, record.reason) == ("rejected", way + reason)
    if which != "folder":  # a named file may be in a directory where others may add files
        with pytest.raises(cuplug.PluginError, match=f"group {STRANGER} may write it"):
            cuplug.load(path)
    monkeypatch.setenv("CUPLUG_ALLOW_GROUP", "1")
    assert listed(path).state == "ok"


@NEEDS_ROOT
@pytest.mark.parametrize("which", ["file", "folder", "above"])
def test_another_owner(nested, good_file, which):
    path = Path(shutil.copy(good_file, nested / "libraw.so"))
    os.chown({"file": path, "folder": nested, "above": nested.parent}[which], STRANGER, -1)
    reason = (
        f"owned by user {STRANGER}, expected root or user 0; CUPLUG_TRUSTED_OWNERS={STRANGER} "
        "or CUPLUG_ALLOW_UNSAFE=1 allows it"
    )
    way = f"{nested.parent}, on the way to it: " if which == "above" else ""
    record = listed(path) if which == "file" else directory_at(nested)
    assert (record.state, record.reason) == ("rejected", way + reason)
    with pytest.raises(cuplug.PluginError, match=f"owned by user {STRANGER}"):
        cuplug.load(path)


@NEEDS_ROOT
@pytest.mark.parametrize("which", ["file", "folder", "above"])
def test_owners_that_are_trusted(nested, good_file, which, monkeypatch):
    path = Path(shutil.copy(good_file, nested / "libraw.so"))
    changed = {"file": path, "folder": nested, "above": nested.parent}[which]
    os.chown(changed, pwd.getpwnam("nobody").pw_uid, -1)
    for others in ("", "root", f"{STRANGER}", "nobody2:no such user", "-2", "65534x"):
        monkeypatch.setenv("CUPLUG_TRUSTED_OWNERS", others)
        with pytest.raises(cuplug.PluginError, match="owned by user"):
            cuplug.load(path)
    for owners in ("nobody", f"{STRANGER}::nobody", f"{pwd.getpwnam('nobody').pw_uid}:daemon"):
        monkeypatch.setenv("CUPLUG_TRUSTED_OWNERS", owners)
        assert directory_at(nested).state == "ok"
        assert cuplug.load(path).name == "raw"
        assert [f.level for f in check_file(str(path)) if f.rule == "permissions"] == ["ok"]
    changed.chmod(0o757)
    with pytest.raises(cuplug.PluginError, match="anyone may write it"):
        cuplug.load(path)


@NEEDS_ROOT
def test_files_of_root_in_a_user_namespace(good_file, monkeypatch):
    """They belong to the overflow user there, which can be trusted by its number in the message."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        path = shutil.copy(good_file, folder)

        def work():
            enter_user_namespace(STRANGER)
            with pytest.raises(cuplug.PluginError, match="owned by user 65534.*=65534 or CUPLUG_A"):
                cuplug.load(path)
            monkeypatch.setenv("CUPLUG_TRUSTED_OWNERS", "65534")
            assert cuplug.load(path).name == "raw"

        in_child(work, STRANGER)


@NEEDS_ROOT
def test_where_a_link_leads_is_what_counts(nested, tmp_path, good_file):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    own = Path(shutil.copy(good_file, tmp_path / "libraw.so"))
    shutil.copy(good_file, foreign / "libraw.so")
    os.chown(foreign, STRANGER, -1)
    (nested / "libraw.so").symlink_to(own)
    assert listed(nested / "libraw.so").state == "ok"
    (nested / "libraw.so").unlink()
    (nested / "libraw.so").symlink_to(foreign / "libraw.so")
    assert listed(nested / "libraw.so").reason.startswith(f"{foreign}, on the way to it: owned by")


def test_each_link_counts_by_itself(nested, tmp_path):
    """The result for the folder of one link is not used for another one."""
    for folder in ("good", "open"):
        (tmp_path / folder).mkdir()
    targets = {
        "a": tmp_path / "good" / "liba.so",
        "b": tmp_path / "open" / "libb.so",
        "c": tmp_path / "good" / "libc.so",
        "d": Path(os.path.relpath(tmp_path / "good" / "libd.so", nested)),
        "e": Path(os.path.relpath(tmp_path / "open" / "libe.so", nested)),
        "f": tmp_path / "good" / "libf.so",
        "g": tmp_path / "good" / "libg.so",
        "h": tmp_path / "good" / "libh.so",
    }
    for name, target in targets.items():
        if name != "h":
            named_plugin(nested / target, name)
        (nested / f"lib{name}.so").symlink_to(target)
    targets["f"].rename(tmp_path / "open" / "libf.so")
    targets["f"].symlink_to(tmp_path / "open" / "libf.so")  # a link to a link
    (tmp_path / "open").chmod(0o777)
    targets["g"].chmod(0o666)
    seen = {path.name[3]: listed(path).reason for path in nested.iterdir()}
    refused = f"{tmp_path}/open, on the way to it: anyone may write it (mode 777)"
    assert {name for name, reason in seen.items() if not reason} == {"a", "c", "d"}
    assert {name for name, reason in seen.items() if reason.startswith(refused)} == {"b", "e", "f"}
    assert seen["g"].startswith("anyone may write it (mode 666)")
    assert seen["h"] == "dangling link: its target does not exist"


@NEEDS_ROOT
def test_a_link_that_is_turned_before_the_first_call(tmp_path, run_python):
    """The folder is reached through a link of another user, as in /tmp."""
    good, foreign = tmp_path / "good", tmp_path / "foreign"
    good.mkdir()
    foreign.mkdir()
    path = compile_fixture("constructor.c", good / "libtell.so")
    shutil.copy2(path, foreign / "libtell.so")
    os.chown(foreign, STRANGER, -1)
    link = tmp_path / "link"
    link.symlink_to(good)
    os.chown(link, STRANGER, -1, follow_symlinks=False)
    code = f"""
import ctypes, os, cuplug
tell = cuplug.find("tell")
os.unlink({str(link)!r})
os.symlink({str(foreign)!r}, {str(link)!r})
try:
    tell()
except cuplug.PluginError as error:
    print(error)
print(ctypes.CDLL(None).getenv(b"CUPLUG_TEST_LOADED"))
"""
    done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(link)})
    wanted = f"tell: {link}/libtell.so: {foreign}, on the way to it: owned by user {STRANGER}, "
    assert done.stdout.startswith(wanted), done.stderr
    assert done.stdout.endswith("\n0\n")


def private_user():
    """Return a user whose group has the user's name and no other member."""
    for user in pwd.getpwall():
        try:
            group = grp.getgrgid(user.pw_gid)
        except KeyError:
            continue
        if user.pw_uid and group.gr_name == user.pw_name and not group.gr_mem:
            return user
    pytest.skip("there is no user with a group of their own")


@NEEDS_ROOT
def test_a_group_of_the_user_alone(run_python):
    """On systems with umask 002, each user has a group, which counts as the user."""
    user = private_user()
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        path = named_plugin(Path(folder, "libshared.so"), "shared")
        for shared in (folder, path):
            os.chown(shared, user.pw_uid, user.pw_gid)
            os.chmod(shared, 0o775)
        code = f"""
import os, cuplug
cuplug.plugins()
os.setegid({user.pw_gid})
os.seteuid({user.pw_uid})
for group in ({user.pw_gid}, {STRANGER}):
    print([p.reason for p in cuplug.plugins() if p.path == {str(path)!r}])
    os.seteuid(0)
    os.chown({str(path)!r}, -1, {STRANGER})
    os.seteuid({user.pw_uid})
"""
        done = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": folder})
        first, second = done.stdout.splitlines()
        assert first == "['']"
        assert f"group {STRANGER} may write it" in second

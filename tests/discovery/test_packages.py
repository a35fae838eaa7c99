# SPDX-License-Identifier: Apache-2.0
"""Plugins of installed Python packages: their entry points, and the time of their search."""

import shutil

import cuplug
import pytest


@pytest.fixture
def site(tmp_path):
    """Return an empty directory for packages."""
    directory = tmp_path / "site"
    directory.mkdir()
    return directory


@pytest.fixture
def run_with(run_python, site):
    """Return a function that runs code with an installed distribution of these entry points."""

    def run(entry_points, code, **environment):
        info = site / "own-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1\n")
        (info / "entry_points.txt").write_bytes(b"[cuplug.plugins]\n" + entry_points)
        start = f"import sys; sys.path.append({str(site)!r}); import cuplug;"
        return run_python(start + code, env=environment)

    return run


def test_a_directory_of_a_package(run_with, site, good_file):
    plugins = site / "own" / "plugins"
    plugins.mkdir(parents=True)
    (plugins.parent / "__init__.py").write_text("raise SystemExit('was imported')")
    (plugins / "libraw.so").symlink_to(good_file)
    done = run_with(
        b"own = own.plugins\n",
        "print(cuplug.find('raw').path);"
        "print([d.path for d in cuplug.search_path() if d.origin == 'package'])",
    )
    assert done.stdout == f"{plugins}/libraw.so\n{[str(plugins)]}\n", done.stderr


def test_packages_come_before_stock_plugins(run_with, site):
    (site / "own").mkdir()
    shutil.copy(cuplug.find("hello.hello").path, site / "own")
    done = run_with(b"own = own\n", "print(cuplug.find('hello').path)")
    assert done.stdout == f"{site}/own/libhello.so\n"


def test_an_entry_point_of_no_package(run_with):
    done = run_with(b"own = gone.plugins\n", "print(cuplug.find('gather').name)")
    assert done.stdout == "gather\n"
    assert "the entry point own = gone.plugins names no package that is installed" in done.stderr


@pytest.mark.parametrize("line", [b"\xff = x\n", b"no pair\n"])
def test_entry_points_that_cannot_be_read(run_with, line):
    done = run_with(line, "print(cuplug.find('gather').name)")
    assert done.stdout == "gather\n"
    assert "got a malformed entry_points.txt, its plugins are skipped: " in done.stderr


def test_one_package_that_cannot_be_read_hides_no_other(run_with, site, good_file):
    folder = site / "fine"
    folder.mkdir()
    shutil.copy(good_file, folder / "libraw.so")
    for name, text in (("Fine-One", "[cuplug.plugins]\nfine = fine\n"), ("A.bad_one", "x\n")):
        metadata = site / f"{name.replace('-', '_')}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(text)
    done = run_with(b"no pair\n", "print(cuplug.find('raw').plugin)")
    assert done.stdout == "raw\n", done.stderr
    assert "cuplug: a-bad-one: got a malformed entry_points.txt" in done.stderr or (
        done.stderr.count("malformed") == 1
    )


def test_packages_are_looked_through_when_they_matter(run_with, tmp_path, good_file):
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o755)
    shutil.copy(good_file, folder)
    done = run_with(
        b"own = gone.plugins\n",
        "cuplug.find('raw.raw'); print('=====', file=sys.stderr); cuplug.plugins()",
        LD_LIBRARY_CUPLUG_PATH=str(folder),
    )
    before, after = done.stderr.split("=====\n")
    assert not before
    assert "the entry point own = gone.plugins" in after


def test_what_is_no_path_is_passed_over(run_python):
    code = (
        "import sys, numpy, cuplug; sys.path += [5, None, object(), chr(0), chr(0xd800), b'/tmp'];"
        "print(cuplug.find('gather').name)"
    )
    assert run_python(code).stdout == "gather\n"

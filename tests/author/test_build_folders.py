# SPDX-License-Identifier: Apache-2.0
"""The folders of a build: their owners, and the remains of a killed build."""

import os
import subprocess
import sys

import pytest
from cuplug._integration.author import build
from cuplug._source.compilers import toolkit
from places import ROOT

HALF = (ROOT / "examples" / "drop_in" / "half.c").read_text()


@pytest.fixture(autouse=True)
def without_nvcc(monkeypatch):
    monkeypatch.setattr(toolkit, "find_nvcc", lambda: None)


def test_what_killed_builds_left_is_removed(tmp_path):
    (tmp_path / "half.c").write_text(HALF)
    notes = tmp_path / ".cuplug-notes"
    notes.mkdir()
    (notes / "thesis.txt").touch()
    os.utime(notes, (0, 0))
    code = "import os, sys; from cuplug._source.compilers.temporary import folder; "
    killed = f"{code}c = folder(sys.argv[1]); c.__enter__(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", killed, tmp_path]).returncode == -9
    assert len(os.listdir(tmp_path)) == 3
    assert build.build(tmp_path / "half.c") == str(tmp_path / "libhalf.so")
    assert sorted(os.listdir(tmp_path)) == [".cuplug-notes", "half.c", "libhalf.so"]
    assert (notes / "thesis.txt").exists()


def test_compilers_keep_their_temporary_files_private(tmp_path, monkeypatch):
    (tmp_path / "half.c").write_text(HALF)
    (tmp_path / "unsafe").mkdir()
    (tmp_path / "unsafe").chmod(0o777)
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\nstat -c "%a %n" "$TMPDIR" >> {tmp_path}/seen\nexec cc "$@"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "unsafe"))
    build.build(tmp_path / "half.c")
    seen = (tmp_path / "seen").read_text().split()
    assert seen[::2] == ["700"]
    assert not seen[1].startswith(str(tmp_path / "unsafe"))

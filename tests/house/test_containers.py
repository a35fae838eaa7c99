# SPDX-License-Identifier: Apache-2.0
"""The image of examples/container, and processes with the restrictions of system services."""

import shutil
import subprocess
import sys
from pathlib import Path

import images
import pytest
from places import ROOT
from processes import environment
from test_packaging import build_wheel

EXAMPLE = ROOT / "examples" / "container"
WANTED = "[0.  0.5 1.  1.5] [3. 0.] [ 1.  4.  7. 10.]\n"
ANYONE = "1234567890:0"  # of no entry in /etc/passwd; OpenShift assigns such users
# As a service with NoNewPrivileges=, MemoryDenyWriteExecute=, ProtectSystem=strict and, in its
# folder of temporary files, NoExecPaths=.
LOCKED_DOWN = """
mount -t tmpfs -o noexec,mode=1777 tmpfs "$TMPDIR" && mount -o remount,bind,ro / &&
mkdir "$CUPLUG_CACHE_DIR" && for each in 1 2; do "$@" || exit; done
"""
CALLS = """
import ctypes, errno, sys
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0  # PR_SET_NO_NEW_PRIVS
if library.prctl(65, 1, 0, 0, 0):  # PR_SET_MDWE, of Linux 6.3
    assert ctypes.get_errno() == errno.EINVAL
import cuplug, numpy as np
from cuplug.ops import gather, relu, sort
x = np.arange(4.0)
for k, f in enumerate([relu, sort]):
    assert f(x).tolist() == x.tolist()
    y = cuplug.elementwise("f(x: T) -> T", f"{k} - x", doc="Locked down.")(x)
    assert y.tolist() == (k - x).tolist()
try:
    open(sys.argv[1], "w")
except OSError as error:
    assert error.errno == errno.EROFS
    print("called")
"""
NO_PLACE = "for each in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro tmpfs $each || exit; done"


@pytest.fixture
def context(once, tmp_path) -> Path:
    """Return the context that the Dockerfile describes."""
    folder = shutil.copytree(EXAMPLE, tmp_path / "context")
    shutil.copy(ROOT / "examples" / "drop_in" / "half.c", folder)
    shutil.copytree(once("wheel", build_wheel) / "wheel", folder / "dist")
    return folder


def engine() -> str:
    """Return the program that builds images here; "" for none, or if its service does not run."""
    tools = filter(shutil.which, ("docker", "podman"))
    works = (x for x in tools if not subprocess.run([x, "info"], capture_output=True).returncode)
    return next(works, "")


@pytest.mark.slow
@pytest.mark.skipif(not engine(), reason="needs docker or podman")
def test_the_image_is_built_and_run(context):
    tool, python = engine(), f"{sys.version_info[0]}.{sys.version_info[1]}"
    build = [tool, "build", "-q", "--build-arg", f"PYTHON={python}", str(context)]
    image = subprocess.run(build, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    run = [tool, "run", "--rm", "--read-only", "--user", ANYONE]
    for more in ([], ["--tmpfs", "/tmp"]):
        done = subprocess.run([*run, *more, image], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (WANTED, "")
    subprocess.run([tool, "rmi", "-f", image], check=True)


@pytest.mark.slow
@images.NEEDS_MOUNTS
def test_the_steps_of_the_image(context, tmp_path):
    """Without an engine: on copies of this machine's files. pip downloads what cuplug needs."""
    image = images.build(context, tmp_path / "stages")
    assert image.user == "10001:0"
    for user in ("", ANYONE):
        for setup in ("mount -t tmpfs tmpfs /tmp", NO_PLACE):
            assert image.run_command(setup, user) == WANTED
    assert image.run_command(HOME="/", user=ANYONE) == WANTED
    with pytest.raises(AssertionError, match="no C compiler: no cc, gcc or clang on PATH"):
        image.run_command(CUPLUG_WARM_PATH="")


@images.NEEDS_MOUNTS
def test_a_service_that_is_locked_down(tmp_path):
    """Its second process loads code from the cache, where no file can be executed."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    command = ["unshare", "--mount", "sh", "-c", LOCKED_DOWN, "sh", sys.executable, "-c", CALLS]
    done = subprocess.run(
        [*command, str(tmp_path / "file")],
        env=environment() | {"TMPDIR": str(folder), "CUPLUG_CACHE_DIR": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "called\n" * 2), done.stderr

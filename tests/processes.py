# SPDX-License-Identifier: Apache-2.0
"""Python and the command `cuplug` in separate processes."""

import ctypes
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from cuplug._engine.base.flags import PACKAGE

NOBODY = 65534  # a user without rights
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file away")


def environment() -> dict[str, str]:
    """Return the variables of this process, without cuplug's except its cache directory."""
    kept = {"CUPLUG_CACHE_DIR": os.environ["CUPLUG_CACHE_DIR"]}
    return {k: v for k, v in os.environ.items() if not k.startswith("CUPLUG_")} | kept


def run_on(driver: str, text: str, **variables: str) -> str:
    """Run Python text with the libcuda.so.1 of a directory, "" for none; return its output."""
    others = {
        k: v for k, v in environment().items() if k == "LD_PRELOAD" or not k.startswith("LD_")
    }
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=others | {"LD_LIBRARY_PATH": driver, **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def run(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess:
    """Run the command `cuplug` as a user does."""
    path = [str(Path(PACKAGE).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    changed = {"PYTHONPATH": os.pathsep.join(path), **variables}
    command = [sys.executable, "-m", "cuplug", *arguments]
    return subprocess.run(
        command, env=os.environ | changed, capture_output=True, text=True, cwd=cwd
    )


def in_child(function: Callable[[], object], user: int | None = None) -> None:
    """Run a function in a forked process, as another user if given; fail if it fails."""
    child = os.fork()
    if not child:
        try:
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)
            function()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def enter_user_namespace(user: int) -> None:
    """Enter a namespace where the system's root has no number, as in rootless containers."""
    library = ctypes.CDLL(None)
    library.prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE: after a change of users, root owns /proc/self
    if library.unshare(0x10000000):  # CLONE_NEWUSER
        os._exit(0)  # the system does not allow it
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    assert os.stat("/").st_uid not in (0, user)

# SPDX-License-Identifier: Apache-2.0
"""Images of containers without a container engine: the steps of a Dockerfile, one by one.

Each stage is a copy of this machine's files (an overlay), visible only to its own commands. This
machine replaces the image in `FROM`, and its Python is /usr/local/bin/python there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _can_mount() -> bool:
    unshare = shutil.which("unshare")
    return bool(unshare) and not os.geteuid() and not subprocess.call([unshare, "--mount", "true"])


NEEDS_MOUNTS = pytest.mark.skipif(not _can_mount(), reason="needs root that may mount")
COMPILERS = ("cc", "gcc", "clang")  # absent from slim images
# Runs in its own mount namespace. The arguments are the stage's folder and the command.
_ENTER = """
cd "$1" && shift && mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work root &&
mount --rbind /proc root/proc && mount --rbind /sys root/sys && mount --rbind /dev root/dev &&
exec chroot root sh -c "$@"
"""


class Stage:
    """One stage of a Dockerfile; `variables` are set for its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        self.directory, self.user, self.command = "/", "0:0", ["true"]
        for name in ("upper", "work", "root"):
            (folder / name).mkdir(parents=True, mode=0o755)
        python = Path(sys.executable).resolve()
        above = shlex.join(map(str, python.parents))
        wrapper = folder / "upper" / "usr" / "local" / "bin" / "python"
        wrapper.parent.mkdir(parents=True)
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(str(python))} "$@"\n')
        wrapper.chmod(0o755)
        self.run(f"chmod a+rx {above}")

    def run(self, script: str, *arguments: str, **variables: str) -> str:
        """Run a script, which ends at the first error, as root in the stage; return its output."""
        command = ["unshare", "--mount", "sh", "-c", _ENTER, "sh", str(self.folder)]
        script = f"cd {self.directory} && {script}"
        done = subprocess.run(
            [*command, script, "sh", *arguments],
            env=self.variables | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def run_command(self, setup: str = "true", user: str = "", **variables: str) -> str:
        """Run the command of CMD as the user of USER or another one, from a read-only root."""
        user, _, group = (user or self.user).partition(":")
        as_user = f"setpriv --reuid={user} --regid={group} --clear-groups --no-new-privs"
        script = f'{setup} && mount -o remount,ro / && exec {as_user} "$@"'
        return self.run(script, *self.command, **variables)

    def copy(self, sources: list[Path], target: str) -> None:
        """Copy files, and the contents of folders, like COPY."""
        to = self.folder / "upper" / target.lstrip("/")
        to.mkdir(parents=True, exist_ok=True, mode=0o755)
        for source in sources:
            if source.is_dir():
                shutil.copytree(source, to, symlinks=True, dirs_exist_ok=True)
            else:
                shutil.copy(source, to)


def build(context: Path, folder: Path) -> Stage:
    """Run the steps of a context's Dockerfile in a folder; return the last stage."""
    stages: dict[str, Stage] = {}
    stage = None
    for line in (context / "Dockerfile").read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stage = stages[name] = Stage(folder / (name or "last"))
            if base.endswith("-slim"):
                stage.run(f"rm -f $(which -a {' '.join(COMPILERS)})")
        elif word == "ENV":
            for each in rest.split():
                name, _, value = each.partition("=")
                stage.variables[name] = value.replace("$PATH", stage.variables["PATH"])
        elif word == "RUN":
            pip = {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
            stage.run(rest, **pip)
        elif word == "COPY":
            *names, target = rest.split()
            place = context
            if found := re.match("--from=(.*)", names[0]):
                place, names = stages[found[1]].folder / "upper", names[1:]
            stage.copy([place / name.lstrip("/") for name in names], target)
        elif word == "WORKDIR":
            stage.directory = rest
        elif word == "USER":
            stage.user = rest
        elif word == "CMD":
            stage.command = json.loads(rest)
        else:
            assert not word or word in ("#", "ARG"), line
    return stage

# SPDX-License-Identifier: Apache-2.0
"""Make a built package, and the command `cuplug`, available in this Python: link.py FOLDER

It writes the files of an editable installation, so that pip lists, replaces and removes it.
"""

import os
import re
import shutil
import sys
import sysconfig
import tomllib
from pathlib import Path

COMMAND = """#!/bin/sh
exec "$(dirname "$(readlink -f "$0")")/python" -P -m cuplug "$@"
"""


def read_version() -> str:
    """Return the version of cuplug."""
    header = Path("include/cuplug/host.h").read_text()
    return re.search(r'#define CUPLUG_VERSION "([^"]+)"', header).group(1)


def path_line(folder: str) -> str:
    """Return the line of a .pth file that adds a folder.

    Python decodes such files by the locale and does not start if that fails, so they are ASCII.
    """
    if folder.isascii():
        return f"{folder}\n"
    return f"import os, sys; sys.path.append(os.fsdecode({os.fsencode(folder)!r}))\n"


def metadata() -> dict[str, str]:
    """Return the files of the metadata and their text."""
    with open("pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    head = f"Metadata-Version: 2.1\nName: cuplug\nVersion: {read_version()}\n"
    needs = [f"Requires-Dist: {package}\n" for package in project["dependencies"]]
    groups = {"console_scripts": project["scripts"], **project["entry-points"]}
    entries = [
        line
        for group, places in groups.items()
        for line in (f"[{group}]\n", *(f"{name} = {place}\n" for name, place in places.items()))
    ]
    return {
        "METADATA": "".join([head, *needs]),
        "entry_points.txt": "".join(entries),
        "INSTALLER": "make\n",
    }


def main() -> None:
    """Write the link, the command and the metadata, unless pip has installed cuplug."""
    site, scripts = (Path(sysconfig.get_path(name)) for name in ("purelib", "scripts"))
    if (site / "cuplug").exists():
        return
    for old in site.glob("cuplug-*.dist-info"):
        shutil.rmtree(old)
    folder = site / f"cuplug-{read_version()}.dist-info"
    texts = {folder / name: text for name, text in metadata().items()}
    texts |= {site / "cuplug.pth": path_line(sys.argv[1]), scripts / "cuplug": COMMAND}
    texts[folder / "RECORD"] = "".join(f"{path},,\n" for path in [*texts, folder / "RECORD"])
    folder.mkdir()
    for path, text in texts.items():
        path.write_text(text)
    (scripts / "cuplug").chmod(0o755)


if __name__ == "__main__":
    main()

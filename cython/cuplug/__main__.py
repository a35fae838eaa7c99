# SPDX-License-Identifier: Apache-2.0
"""The command `cuplug`, also as `python -m cuplug`.

What makefiles ask for each file they compile is answered before anything else is loaded.
"""

import io
import os
import sys
from importlib.util import find_spec

from cuplug import __version__
from cuplug._engine.base import flags


def _line(*options: str) -> str:
    """Return flags as one line that a shell splits into these flags."""
    line = " ".join(options)
    if len(line.split()) == len(options):
        return line
    from cuplug._source.compilers import (
        cache,  # which takes longer to import than to print the line
    )

    return " ".join(map(cache.without_spaces, options))


QUICK = {
    "--version": lambda: f"cuplug {__version__}",
    "--cflags": lambda: _line(*flags.plugin_flags()),
    "--cflags --nvcc": lambda: _line(*flags.plugin_flags(nvcc=True)),
    "--libs": lambda: _line(*flags.host_flags()),
    "--cmake": flags.get_cmake_path,
    "--cflags --libs": lambda: _line(*flags.plugin_flags(), *flags.host_flags()),
}


def main() -> None:
    """Run the command with the arguments of this process.

    If a reader closes the pipe early, like `head`, no error is printed.
    """
    _open_streams()
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _open_streams() -> None:
    """Open missing streams, and let them encode any file name."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)  # None if it was closed
        if stream is None:
            setattr(sys, name, io.StringIO())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run() -> None:
    if answer := QUICK.get(" ".join(sys.argv[1:])):
        print(answer())
        return
    for package in ("click", "rich"):  # a build for the packages of a Python installs none
        if not find_spec(package):
            sys.exit(f"the command cuplug needs the package {package}: pip install {package}")
    from cuplug._integration.commands import cli

    cli.main(prog_name="cuplug")


if __name__ == "__main__":
    main()

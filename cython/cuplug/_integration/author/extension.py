# SPDX-License-Identifier: Apache-2.0
"""A plugin as setuptools knows extensions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from setuptools import Extension

from cuplug._integration.author.sources import HEADER_SUFFIXES, source_files


class Plugin(Extension):
    """A plugin as a part of a package.

    Parameters
    ----------
    name : str
        The package and the plugin: "my_operators.twice" becomes my_operators/libtwice.so.
    sources : sequence of str
        .cu, .c and .cpp files, or folders of them. Headers beside them go into source archives.
    arch : str
        GPU architectures as for `cuplug build`; the variable CUPLUG_ARCH goes before it.
    options : sequence of str
        More options for the compilers.
    stubs : str
        A module of the package: its type stubs are written for the operators of all plugins that
        name it. "" for none.
    typed : bool
        Also write the typed functions for Cython code, as `cuplug bind` does.
    depends : sequence of str
        More files that source archives need.
    """

    def __init__(
        self,
        name: str,
        sources: Sequence[str],
        *,
        arch: str = "native",
        options: Sequence[str] = (),
        stubs: str = "",
        typed: bool = False,
        depends: Sequence[str] = (),
    ) -> None:
        files = [file for path in sources for file in _files(path)]
        folders = dict.fromkeys(os.path.dirname(file) for file in files)
        beside = [file for folder in folders for file in _headers(folder)]
        super().__init__(name, files, depends=[*beside, *depends])
        self.arch = os.environ.get("CUPLUG_ARCH") or arch
        self.options, self.stubs, self.typed = list(options), stubs, typed

    @property
    def folder(self) -> str:
        """Return the folder of its package, relative to what is built."""
        return os.path.join(*self.name.split(".")[:-1], "")

    @property
    def file(self) -> str:
        """Return where its library lies, relative to what is built."""
        return os.path.join(self.folder, f"lib{self.name.split('.')[-1]}.so")


def _files(path: str) -> Iterable[str]:
    return relative(source_files(path)) if os.path.isdir(path) else [os.fspath(path)]


def _headers(folder: str) -> list[str]:
    names = sorted(os.listdir(folder or os.curdir)) if os.path.isdir(folder or os.curdir) else []
    return [os.path.join(folder, name) for name in names if name.endswith(HEADER_SUFFIXES)]


def relative(files: Iterable[str]) -> list[str]:
    """Return paths as setuptools wants them: relative to setup.py or pyproject.toml."""
    return [os.path.relpath(file) for file in files]

# SPDX-License-Identifier: Apache-2.0
"""A plugin as an extension of setuptools."""

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
        .cu, .c and .cpp files, or folders of them. Source archives include headers next to them.
    arch : str
        GPU architectures as for `cuplug build`. The variable CUPLUG_ARCH overrides it.
    options : sequence of str
        Additional compiler options.
    stubs : str
        A module of the package, for which type stubs are written with the operators of all plugins
        that name it. "" for none.
    typed : bool
        Also write the typed functions for Cython code, as `cuplug bind` does.
    depends : sequence of str
        Other files that source archives need.

    Examples
    --------
    >>> twice = cuplug.setuptools.Plugin("my_operators.twice", ["twice.c"])
    >>> twice.sources
    ['twice.c']
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
        """Return the package's folder, relative to the build folder.

        Examples
        --------
        >>> cuplug.setuptools.Plugin("my_operators.twice", ["twice.c"]).folder
        'my_operators/'
        """
        return os.path.join(*self.name.split(".")[:-1], "")

    @property
    def file(self) -> str:
        """Return the library's path, relative to the build folder.

        Examples
        --------
        >>> cuplug.setuptools.Plugin("my_operators.twice", ["twice.c"]).file
        'my_operators/libtwice.so'
        """
        return os.path.join(self.folder, f"lib{self.name.split('.')[-1]}.so")


def _files(path: str) -> Iterable[str]:
    return relative(source_files(path)) if os.path.isdir(path) else [os.fspath(path)]


def _headers(folder: str) -> list[str]:
    names = sorted(os.listdir(folder or os.curdir)) if os.path.isdir(folder or os.curdir) else []
    return [os.path.join(folder, name) for name in names if name.endswith(HEADER_SUFFIXES)]


def relative(files: Iterable[str]) -> list[str]:
    """Return paths relative to setup.py or pyproject.toml, as setuptools requires."""
    return [os.path.relpath(file) for file in files]

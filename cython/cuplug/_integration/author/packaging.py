# SPDX-License-Identifier: Apache-2.0
"""The setuptools commands that build and pack plugins."""

from __future__ import annotations

import os
from typing import Any

from setuptools import Extension
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

from cuplug._integration.author.bind import write_module, write_stubs
from cuplug._integration.author.build import build_library
from cuplug._integration.author.extension import Plugin
from cuplug._integration.author.sources import BuildError, source_of


class BuildPlugins(build_ext):
    """The command build_ext; the base class has its usual name."""

    def get_ext_filename(self, fullname: str) -> str:
        """Return the path of an extension's library."""
        for plugin in self._plugins():
            if plugin.name == fullname:
                return plugin.file
        return super().get_ext_filename(fullname)

    def build_extension(self, ext: Extension) -> None:
        """Build a plugin. The base class builds other extensions."""
        if not isinstance(ext, Plugin):
            super().build_extension(ext)
            return
        output = os.path.abspath(os.path.join(self.build_lib, ext.file))
        os.makedirs(os.path.dirname(output), exist_ok=True)
        try:
            source = source_of(tuple(map(os.path.abspath, ext.sources)))
            built = build_library(source, output, ext.arch, ext.options)
        except (BuildError, OSError) as error:
            raise CompileError(str(error)) from None
        if built.log:
            self.warn(built.log)

    def build_extensions(self) -> None:
        """Build plugins, then the files generated from them, then extensions that use these."""
        every: list[Extension] = self.extensions
        try:
            self.extensions = self._plugins()
            super().build_extensions()
            self._write(self.extensions)
            self.extensions = [extension for extension in every if extension not in self.extensions]
            super().build_extensions()
        finally:
            self.extensions = every

    def _write(self, plugins: list[Plugin]) -> None:
        for plugin in plugins:
            library = os.path.join(self.build_lib, plugin.file)
            if plugin.typed:
                write_module(library, os.path.join(self.build_lib, plugin.folder))
        for folder, name in self._stubs():
            files = [x.file for x in plugins if (x.folder, x.stubs) == (folder, name)]
            libraries = [os.path.join(self.build_lib, file) for file in files]
            write_stubs(libraries, os.path.join(self.build_lib, folder), name)
        if any(plugin.typed for plugin in plugins):
            # Cython's own build_ext, used if Cython is installed, searches .pxd files there.
            self.cython_include_dirs = [*(getattr(self, "cython_include_dirs", ())), self.build_lib]

    def get_outputs(self) -> list[str]:
        """Return all generated files."""
        written = [os.path.join(self.build_lib, file) for file in self._written()]
        return [*super().get_outputs(), *written]

    def get_output_mapping(self) -> dict[str, str]:
        """Return the paths of generated files in editable installations."""
        pairs = dict(super().get_output_mapping())
        if self.inplace:
            pairs |= {os.path.join(self.build_lib, x): self._in_place(x) for x in self._written()}
        return pairs

    def copy_extensions_to_source(self) -> None:
        """Copy the built files into the package's sources, for editable installations."""
        super().copy_extensions_to_source()
        for file in self._written():
            self.copy_file(os.path.join(self.build_lib, file), self._in_place(file))

    def _in_place(self, file: str) -> str:
        folder, name = os.path.split(file)
        packages: Any = self.get_finalized_command("build_py")
        return os.path.join(packages.get_package_dir(folder.replace(os.sep, ".")), name)

    def _plugins(self) -> list[Plugin]:
        return [extension for extension in self.extensions if isinstance(extension, Plugin)]

    def _stubs(self) -> list[tuple[str, str]]:
        return list(dict.fromkeys((x.folder, x.stubs) for x in self._plugins() if x.stubs))

    def _written(self) -> list[str]:
        """Return the files generated from the plugins, relative to the build folder."""
        typed = [x.file for x in self._plugins() if x.typed]
        pxd = [os.path.join(os.path.dirname(x), f"{_name(x)}_typed.pxd") for x in typed]
        return [*pxd, *(os.path.join(folder, f"{name}.pyi") for folder, name in self._stubs())]


def _name(library: str) -> str:
    return os.path.basename(library).removeprefix("lib").removesuffix(".so")


class TagWheel(bdist_wheel):
    """The command bdist_wheel. Plugins do not depend on Python, so one wheel fits all versions."""

    def get_tag(self) -> tuple[str, str, str]:
        """Return the tag. With other extensions, it includes this Python version."""
        python, abi, platform = super().get_tag()
        extensions = self.distribution.ext_modules or ()
        if all(isinstance(extension, Plugin) for extension in extensions):
            return "py3", "none", platform
        return python, abi, platform

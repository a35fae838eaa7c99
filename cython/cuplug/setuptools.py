# SPDX-License-Identifier: Apache-2.0
"""Plugins in Python packages, built and packed by setuptools.

In pyproject.toml, with setuptools and cuplug in the build requirements:

    [tool.cuplug]
    package = "my_operators"

or in setup.py: `setup(ext_modules=[Plugin("my_operators.twice", ["twice.cu"])])`. The libraries are
installed in the package, and the wheel fits all Pythons of its platform unless there are other
extensions.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from typing import Any

from setuptools import Distribution, __version__
from setuptools.errors import OptionError

from cuplug._integration.author.extension import Plugin, relative
from cuplug._integration.author.sources import SUFFIXES, BuildError, find_sources, source_files

__all__ = ["Plugin"]

SETTINGS = {
    "package": str,
    "plugins": list,
    "arch": str,
    "options": list,
    "stubs": str,
    "typed": bool,
}
OLDEST_SETUPTOOLS = 77
USUAL_PLUGINS = ("plugins/*",)


def finalize(distribution: Distribution) -> None:
    """Add the settings of pyproject.toml and the build step, for each package."""
    found = [*(distribution.ext_modules or ()), *_configured("pyproject.toml")]
    if not any(isinstance(extension, Plugin) for extension in found):
        return
    # Other packages' builds also reach this line, maybe with a setuptools without these commands.
    if int(__version__.partition(".")[0]) < OLDEST_SETUPTOOLS:
        raise OptionError(
            f"setuptools: got {__version__}, expected {OLDEST_SETUPTOOLS} or newer: "
            "pip install --upgrade setuptools"
        )
    from cuplug._integration.author.packaging import BuildPlugins, TagWheel

    distribution.ext_modules = found
    for name, ours in (("build_ext", BuildPlugins), ("bdist_wheel", TagWheel)):
        theirs = distribution.get_command_class(name)
        distribution.cmdclass[name] = type(name, (ours, theirs), {})


def _configured(path: str) -> Iterator[Plugin]:
    """Yield the plugins of [tool.cuplug]."""
    import tomllib

    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        told = tomllib.load(file).get("tool", {}).get("cuplug")
    if told is None:
        return
    _check(told)
    package = told.pop("package")
    patterns = told.pop("plugins", USUAL_PLUGINS)
    paths = [path for pattern in patterns for path in sorted(glob.glob(pattern)) if _is_one(path)]
    if not paths:
        raise OptionError(f"tool.cuplug: plugins: got {list(patterns)}, expected paths of sources")
    for path in paths:
        yield from _plugins_at(path, package, told)


def _is_one(path: str) -> bool:
    return bool(source_files(path)) if os.path.isdir(path) else path.endswith(SUFFIXES)


def _check(told: dict[str, Any]) -> None:
    for key, value in told.items():
        if key not in SETTINGS:
            raise OptionError(
                f"tool.cuplug: got unknown setting {key}, expected {', '.join(SETTINGS)}"
            )
        if key == "options" and isinstance(value, dict):
            for name, own in value.items():
                _check({"options": own, "package": name})
            continue
        texts = value if isinstance(value, list) else []
        if not isinstance(value, SETTINGS[key]) or not all(isinstance(x, str) for x in texts):
            wanted = "a list of texts" if SETTINGS[key] is list else SETTINGS[key].__name__
            raise OptionError(f"tool.cuplug: {key}: got {value!r}, expected {wanted}")
    if "package" not in told:
        raise OptionError(
            "tool.cuplug: package: got nothing, expected the package that has the plugins"
        )


def _plugins_at(path: str, package: str, told: dict[str, Any]) -> Iterator[Plugin]:
    try:
        found = find_sources(path)
    except BuildError as error:
        raise OptionError(str(error)) from None
    for source in found:
        options = told.get("options", [])
        if isinstance(options, dict):
            options = options.get(source.name, [])
        name, files = f"{package}.{source.name}", relative(source.files)
        yield Plugin(name, files, **told | {"options": options})

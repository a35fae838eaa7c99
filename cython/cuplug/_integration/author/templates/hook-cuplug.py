# SPDX-License-Identifier: Apache-2.0
"""The files that PyInstaller adds to a program that imports cuplug.

These are modules that are imported at their first use, the core with its stock plugins, headers,
and templates for compiled code.
"""

from importlib import import_module

hooks = import_module("PyInstaller.utils.hooks")
datas, binaries, hiddenimports = hooks.collect_all("cuplug")

# The stock plugins are in the folder `cuplug` next to the core, which PyInstaller puts at the top
# with the other libraries.
stock = [file for file, folder in binaries if folder.endswith("cuplug/lib/cuplug")]
binaries += [(file, "cuplug") for file in stock]

# Packages with plugins, which are found by their metadata.
entry_datas, entry_modules = hooks.collect_entry_point("cuplug.plugins")
datas += entry_datas
hiddenimports += entry_modules

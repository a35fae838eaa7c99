# SPDX-License-Identifier: Apache-2.0
"""What PyInstaller puts into a program that imports cuplug: modules that are imported when they are
first used, the core beside its stock plugins, headers and templates for code that is compiled."""

from importlib import import_module

hooks = import_module("PyInstaller.utils.hooks")
datas, binaries, hiddenimports = hooks.collect_all("cuplug")

# The stock plugins are searched in the folder `cuplug` beside the core, which PyInstaller puts at
# the top with the other libraries.
stock = [file for file, folder in binaries if folder.endswith("cuplug/lib/cuplug")]
binaries += [(file, "cuplug") for file in stock]

# Packages that bring plugins, which are found by their metadata.
entry_datas, entry_modules = hooks.collect_entry_point("cuplug.plugins")
datas += entry_datas
hiddenimports += entry_modules

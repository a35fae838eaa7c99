# SPDX-License-Identifier: Apache-2.0
"""New code for operators whose files were rebuilt: `cuplug.reload`."""

from __future__ import annotations

import os
import sys
import threading

from cuplug._engine.base.public import public
from cuplug._engine.call.operator import Operator, living_paths, reload_operators
from cuplug._engine.lookup.bound import begin_reload, forget_reloaded
from cuplug._engine.lookup.find import forget_operators, load
from cuplug._engine.lookup.records import Plugin

_one_at_a_time = threading.RLock()


@public
def reload(what: Operator | Plugin | None = None) -> tuple[str, ...]:
    """Reload files that were replaced since their code was loaded.

    Every Operator of such a file then runs the new code, under any name that it was imported
    as. The old code stays in the process: results remain valid, and calls on other threads
    finish. Typed-memoryview functions run the new code if its signature is the one that they
    were compiled for, and raise PluginError otherwise. Operators of adopted libraries and of
    tvm-ffi modules keep their descriptions. C programs keep the old code.

    Parameters
    ----------
    what : Operator or Plugin, optional
        The one whose file is reloaded; the default is all files that this process uses.

    Returns
    -------
    tuple of str
        The files that had changed.

    Raises
    ------
    PluginError
        If a new file is broken or rejected, or if a file was overwritten in place; its operators
        keep the old code. Replace files by renaming, as `cuplug build` does.
    NotFoundError
        If a new file lacks an operator, which keeps the old code.

    Examples
    --------
    >>> cuplug.reload()
    ()
    """
    forget_operators()
    if what is None:
        paths = {path for path in living_paths() if os.path.isabs(path)}
    elif isinstance(what, Operator | Plugin):
        paths = {what.path}
    else:
        raise TypeError(f"reload: got {type(what).__name__}, expected an operator or a plugin")
    with _one_at_a_time:
        begin_reload()
        try:
            changed, errors = reload_operators(paths)
        finally:
            forget_reloaded()
        changed |= _reload_others(None if what is None else paths, errors)
    if errors:
        raise errors[0]
    if isinstance(what, Plugin):
        fresh = load(what.path)
        what._take(fresh.operators, fresh.functions)
    return tuple(sorted(changed))


def _reload_others(paths: set[str] | None, errors: list[Exception]) -> set[str]:
    """Reload adopted libraries and modules; return the files that had changed."""
    from cuplug._engine.adoption.adopt import reload_adopted

    parts = [reload_adopted(paths)]
    if modules := sys.modules.get("cuplug._engine.modules.module"):  # not used by most processes
        parts.append(modules.reload_modules(paths))
    errors += [error for _, refused in parts for error in refused]
    return {path for changed, _ in parts for path in changed}

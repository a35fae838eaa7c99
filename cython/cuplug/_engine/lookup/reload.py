# SPDX-License-Identifier: Apache-2.0
"""New code for operators whose files were built anew: `cuplug.reload`."""

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
    """Load files anew that were replaced since their code was loaded.

    Every Operator of such a file runs the new code from then on, whatever name it was imported
    under. The old code stays in the process: results live on, and calls on other threads come to
    their end. Typed-memoryview functions run the new code if its signature is the one that they
    were compiled for, and raise PluginError otherwise. Operators of adopted libraries and of
    tvm-ffi modules keep their descriptions. C programs go on with the old code.

    Parameters
    ----------
    what : Operator or Plugin, optional
        The one whose file is meant; without it, all that this process knows.

    Returns
    -------
    tuple of str
        The files that had changed.

    Raises
    ------
    PluginError
        A new file is broken or is refused; its operators go on with the old code. The same for one
        that was written over in place: replace files by renaming, as `cuplug build` does.
    NotFoundError
        A new file lacks an operator, which goes on with the old code.
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
    if modules := sys.modules.get("cuplug._engine.modules.module"):  # no part of most processes
        parts.append(modules.reload_modules(paths))
    errors += [error for _, refused in parts for error in refused]
    return {path for changed, _ in parts for path in changed}

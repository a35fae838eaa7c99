# SPDX-License-Identifier: Apache-2.0
"""Objects of adopted libraries in handles: each is destroyed once, after its users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

_lock = Lock()  # of all counts


class Opaque:
    """A pointer that a library has made.

    Parameters
    ----------
    ffi, pointer
        The objects of cffi.
    library : str
        The code that created it. Other code of the same path must not receive it; "" if any code
        may.
    destroy : callable
        Called without arguments, once.
    kept
        Memory that the object refers to.
    uses : sequence of Opaque
        Objects that must outlive this one, which was created from them.
    """

    def __init__(
        self,
        ffi: Any,
        pointer: Any,
        library: str,
        destroy: Callable[[], object],
        kept: Any = None,
        uses: Sequence[Opaque] = (),
    ) -> None:
        self.pointer, self.library, self.kept = pointer, library, kept
        self.address, self.type = int(ffi.cast("uintptr_t", pointer)), ffi.typeof(pointer).cname
        self._destroy, self._uses = destroy, tuple(uses)
        self._n_users = 1  # the handle, and objects made from this one
        with _lock:
            for x in self._uses:
                x._n_users += 1

    def close(self) -> None:
        """Destroy it, or let the last object that was created from it do so."""
        with _lock:
            self._n_users -= 1
            if self._n_users:
                return
        try:
            self._destroy()
        finally:
            self.pointer = self.kept = None
            for x in self._uses:
                x.close()

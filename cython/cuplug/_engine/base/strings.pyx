# SPDX-License-Identifier: Apache-2.0
"""The core's version, and the names of its statuses and dtypes."""

cimport cuplug._engine.base.core as core

cdef extern from "internal/core.h":
    const void *cuplug_core


def version() -> str:
    """Return the version of the core."""
    return core.cuplug_version().decode()


# The modules of the package share structures with the core, which change between versions.
if cuplug_core == NULL:
    raise ImportError(
        f"cuplug: got libcuplug.so.1 of version {version()}, expected that of this package, "
        f"{core.CUPLUG_VERSION.decode()}; remove the folder of the other one from LD_LIBRARY_PATH"
    )


def status_names() -> dict[int, str]:
    """Return the name of every status but OK, by number."""
    names = {}
    for status in range(1, 10000):
        if core.cuplug_status_name(status) != NULL:
            names[status] = core.cuplug_status_name(status).decode()
    return names


def dtype_ids() -> dict[str, int]:
    """Return the id of every dtype by its name, in the order of the core's sets of dtypes."""
    ids = {}
    while core.cuplug_dtype_name(len(ids)) != NULL:
        ids[core.cuplug_dtype_name(len(ids)).decode()] = core.cuplug_dtype_id(len(ids))
    return ids

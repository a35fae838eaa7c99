# SPDX-License-Identifier: Apache-2.0
"""The directories of the search path, and the plugins in them."""

import os

cimport cython
from libc.stdint cimport uint32_t

cimport cuplug._engine.base.core as core
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.base.strings cimport to_architectures, to_str

from cuplug._engine.base.public import public
from cuplug._engine.discovery.entry_points import any_package_mentions
from cuplug._engine.discovery.fields import STATES
from cuplug._engine.lookup.records import Directory, PluginFile

# Indexed by number, in the order of <cuplug/host.h>.
ORIGINS = (
    "LD_LIBRARY_CUPLUG_PATH", "LD_LIBRARY_PATH", "user", "system", "package", "stock", "loaded",
)

cdef bint packages_are_read = False
cdef cython.pymutex lock


@public
def search_path() -> list[Directory]:
    """List the directories that are searched for plugins, in order.

    Returns
    -------
    In search order; a state and a reason describe those that are skipped.

    Examples
    --------
    >>> [directory.path for directory in cuplug.search_path() if directory.state == "ok"]
    [...]
    """
    return list_places(False)


def list_plugins() -> list[PluginFile]:
    """Return a PluginFile for each file with a table on the search path, in search order."""
    return list_places(True)


cdef list list_places(bint with_files):
    cdef core.cuplug_listing *listing = NULL
    cdef core.cuplug_error error
    cdef size_t k
    cdef int status
    read_packages()
    with nogil:
        status = core.cuplug_list(with_files, &listing, &error)
    if status:
        raise_error(&error)
    found = []
    try:
        if with_files:
            for k in range(core.cuplug_listing_n_files(listing)):
                found.append(describe_file(core.cuplug_listing_file(listing, k)))
        else:
            for k in range(core.cuplug_listing_n_directories(listing)):
                found.append(describe_directory(core.cuplug_listing_directory(listing, k)))
        return found
    finally:
        core.cuplug_free_listing(listing)


cdef object describe_directory(const core.cuplug_directory *x):
    return Directory(
        path=os.fsdecode(core.cuplug_directory_path(x)),
        origin=ORIGINS[core.cuplug_directory_origin(x)],
        state=STATES[core.cuplug_directory_state(x)],
        reason=to_str(core.cuplug_directory_reason(x)),
    )


cdef object describe_file(const core.cuplug_file *x):
    cdef const core.cuplug_overload *row
    cdef uint32_t k, abi_version = core.cuplug_file_abi_version(x)
    cdef bint on_host = False, on_cuda = False
    texts = []
    for k in range(core.cuplug_file_n_overloads(x)):
        row = core.cuplug_file_overload(x, k)
        texts.append(to_str(core.cuplug_overload_signature(row)))
        on_host |= core.cuplug_overload_entry(row, core.CUPLUG_CPU) != NULL
        on_cuda |= core.cuplug_overload_entry(row, core.CUPLUG_CUDA) != NULL
    names = [signature.partition("(")[0].strip() for signature in texts]
    return PluginFile(
        name=to_str(core.cuplug_file_name(x)),
        version=to_str(core.cuplug_file_version(x)),
        path=os.fsdecode(core.cuplug_file_path(x)),
        state=STATES[core.cuplug_file_state(x)],
        reason=to_str(core.cuplug_file_reason(x)),
        origin=ORIGINS[core.cuplug_file_origin(x)],
        operators=tuple(dict.fromkeys(names)),
        signatures=tuple(texts),
        device_types=("cpu",) * on_host + ("cuda",) * on_cuda,
        architectures=to_architectures(core.cuplug_file_architectures(x)),
        abi=f"{abi_version >> 16}.{abi_version & 0xFFFF}",
        loaded=core.cuplug_file_is_loaded(x) != 0,
    )


cdef int read_packages() except -1:
    """Add the directories that installed packages name to the search path, once."""
    global packages_are_read
    cdef core.cuplug_error error
    if packages_are_read:
        return 0
    with lock:
        if packages_are_read:
            return 0
        if any_package_mentions(b"cuplug.plugins"):
            from cuplug._engine.discovery.packages import plugin_directories

            for directory in plugin_directories():
                if core.cuplug_add_directory(os.fsencode(directory), &error):
                    raise_error(&error)
        packages_are_read = True
    return 0

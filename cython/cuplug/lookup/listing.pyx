# SPDX-License-Identifier: Apache-2.0
"""What is on the search path: its directories, and the plugins in them."""

import os

cimport cython

from cuplug.base.core cimport (
    cuplug_add_directory,
    cuplug_directory,
    cuplug_error,
    cuplug_file,
    cuplug_free_listing,
    cuplug_list,
    cuplug_listing,
)
from cuplug.base.status cimport raise_error
from cuplug.base.texts cimport to_architectures, to_str

from cuplug.base.public import public
from cuplug.discovery.entry_points import any_package_mentions
from cuplug.discovery.fields import STATES
from cuplug.lookup.records import Directory, PluginFile

# By number, in the order of <cuplug/host.h>.
ORIGINS = (
    "LD_LIBRARY_CUPLUG_PATH", "LD_LIBRARY_PATH", "user", "system", "package", "stock", "loaded",
)

cdef bint packages_are_read = False
cdef cython.pymutex lock


@public
def search_path():
    """List the directories that are searched for plugins, in order.

    Returns
    -------
    list of Directory
    """
    return list_places(False)


def list_plugins():
    """Return a PluginFile for each file with a table on the search path, in search order."""
    return list_places(True)


cdef list list_places(bint with_files):
    cdef cuplug_listing *listing = NULL
    cdef cuplug_error error
    cdef int status
    read_packages()
    with nogil:
        status = cuplug_list(with_files, &listing, &error)
    if status:
        raise_error(&error)
    try:
        if with_files:
            return [describe_file(&listing.files[k]) for k in range(listing.n_files)]
        return [
            describe_directory(&listing.directories[k]) for k in range(listing.n_directories)
        ]
    finally:
        cuplug_free_listing(listing)


cdef object describe_directory(const cuplug_directory *x):
    return Directory(
        os.fsdecode(x.path), ORIGINS[x.origin], STATES[x.state], text_or_empty(x.reason)
    )


cdef object describe_file(const cuplug_file *x):
    signatures = tuple([to_str(x.rows[k].signature) for k in range(x.n_rows)])
    names = [signature.partition("(")[0].strip() for signature in signatures]
    on_host = any([x.rows[k].host_entry[0] != 0 for k in range(x.n_rows)])
    on_cuda = any([x.rows[k].cuda_entry[0] != 0 for k in range(x.n_rows)])
    return PluginFile(
        name=to_str(x.name),
        version=to_str(x.version),
        path=os.fsdecode(x.path),
        state=STATES[x.state],
        reason=text_or_empty(x.reason),
        origin=ORIGINS[x.origin],
        operators=tuple(dict.fromkeys(names)),
        signatures=signatures,
        sides=("cpu",) * on_host + ("cuda",) * on_cuda,
        architectures=to_architectures(x.architectures),
        abi=f"{x.abi_version >> 16}.{x.abi_version & 0xFFFF}",
        loaded=x.loaded != 0,
    )


cdef str text_or_empty(const char *text):
    return to_str(text) if text != NULL else ""


cdef int read_packages() except -1:
    """Put the directories that installed packages name on the search path, once."""
    global packages_are_read
    cdef cuplug_error error
    if packages_are_read:
        return 0
    with lock:
        if packages_are_read:
            return 0
        if any_package_mentions(b"cuplug.plugins"):
            from cuplug.discovery.packages import plugin_directories

            for directory in plugin_directories():
                if cuplug_add_directory(os.fsencode(directory), &error):
                    raise_error(&error)
        packages_are_read = True
    return 0

# SPDX-License-Identifier: Apache-2.0
"""Finding, loading and listing plugins."""

import os

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport uint32_t

from cuplug._host cimport (
    CUPLUG_CUDA,
    cuplug_add_directory,
    cuplug_describe,
    cuplug_directory,
    cuplug_error,
    cuplug_file,
    cuplug_find,
    cuplug_find_early,
    cuplug_free_listing,
    cuplug_list,
    cuplug_listing,
    cuplug_load,
    cuplug_operator,
    cuplug_operator_info,
    cuplug_version,
)
from cuplug._operator cimport Operator, wrap_operator
from cuplug._run cimport get_last_run, last_run
from cuplug._status cimport raise_error

from cuplug._entry_points import any_package_mentions
from cuplug.errors import NotFoundError, PluginError
from cuplug.arguments import absolute
from cuplug.records import Directory, LastCall, Plugin, PluginFile

# By number, in the order of <cuplug/host.h>.
STATES = ("ok", "shadowed", "duplicate", "rejected", "changed", "no plugin", "missing")
ORIGINS = (
    "LD_LIBRARY_CUPLUG_PATH", "LD_LIBRARY_PATH", "user", "system", "package", "stock", "loaded",
)

cdef enum:
    ROOM = 64  # for the operators of one file, at first

cdef bint packages_are_read = False
cdef cython.pymutex lock


def version():
    """Return the version of the core."""
    return cuplug_version().decode()


def find(name):
    """Find an operator.

    Parameters
    ----------
    name : str
        "operator", or "plugin.operator".

    Returns
    -------
    Operator

    Raises
    ------
    NotFoundError
        There is none; the message lists the directories looked in, and near names.
    """
    cdef cuplug_operator *op = NULL
    cdef cuplug_error error
    cdef int status = 0
    encoded = encode_name(name)
    cdef const char *text = encoded
    if not packages_are_read:  # to look through them takes longer than all else here
        with nogil:
            status = cuplug_find_early(text, &op, &error)
    if not status and op == NULL:
        read_packages()
        with nogil:
            status = cuplug_find(text, &op, &error)
    if not status:
        return wrap_operator(op)
    try:
        raise_error(&error)
    except NotFoundError as missing:
        from cuplug.sidecars import find_adopted

        return find_adopted(name, missing)


cdef bytes encode_name(object name):
    if not isinstance(name, str):
        raise TypeError(f"find: name: seen {type(name).__name__}, wanted a string")
    encoded = name.encode("utf-8", "backslashreplace")
    if b"\0" in encoded:
        raise ValueError(f"find: name: seen {name!r}, wanted a string without zero characters")
    return encoded


def load(path):
    """Register the plugin in one file, ahead of the search path, whatever the file is called.

    Its code is loaded at the first call of one of its operators.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    Plugin
        Its operators are attributes: `cuplug.load("libhalf.so").half(x)`.

    Raises
    ------
    PluginError
        The file is no plugin, or is refused.
    """
    encoded = os.fsencode(absolute("load", path))
    try:
        return Plugin(load_operators(encoded, ROOM))
    except PluginError as refusal:
        from cuplug.sidecars import load_adopted

        return load_adopted(os.fsdecode(encoded), refusal)


cdef tuple load_operators(bytes path, uint32_t room):
    cdef cuplug_operator **ops
    cdef cuplug_error error
    cdef uint32_t n = 0
    cdef int status
    cdef const char *text = path
    ops = <cuplug_operator **>PyMem_RawMalloc(room * sizeof(cuplug_operator *))
    if ops == NULL:
        raise MemoryError()
    try:
        with nogil:
            status = cuplug_load(text, ops, room, &n, &error)
        if status:
            raise_error(&error)
        if n > room:
            return load_operators(path, n)
        return tuple([wrap_operator(ops[k]) for k in range(n)])
    finally:
        PyMem_RawFree(ops)


def plugins():
    """List the libraries in the directories of the search path; runs none of their code.

    Returns
    -------
    list of PluginFile
        In search order: the first of a name is the one that is used. Adopted libraries come last.
    """
    from cuplug.sidecars import list_adopted

    listed = list_places(True)
    adopted = list_adopted(listed)
    if not adopted:
        return listed
    paths = {record.path for record in adopted}
    return [record for record in listed if record.path not in paths] + adopted


def search_path():
    """List the directories that are searched for plugins, in order.

    Returns
    -------
    list of Directory
    """
    return list_places(False)


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
    signatures = tuple([decode(x.rows[k].signature) for k in range(x.n_rows)])
    names = [signature.partition("(")[0].strip() for signature in signatures]
    on_host = any([x.rows[k].host_entry[0] != 0 for k in range(x.n_rows)])
    on_cuda = any([x.rows[k].cuda_entry[0] != 0 for k in range(x.n_rows)])
    return PluginFile(
        name=decode(x.name),
        version=decode(x.version),
        path=os.fsdecode(x.path),
        state=STATES[x.state],
        reason=text_or_empty(x.reason),
        origin=ORIGINS[x.origin],
        operators=tuple(dict.fromkeys(names)),
        signatures=signatures,
        sides=("cpu",) * on_host + ("cuda",) * on_cuda,
        architectures=tuple(
            [int(part) for part in decode(x.architectures).split(",") if part.isdigit()]
        ),
        abi=f"{x.abi_version >> 16}.{x.abi_version & 0xFFFF}",
        loaded=x.loaded != 0,
    )


cdef str decode(const char *text):
    return text.decode("utf-8", "replace")


cdef str text_or_empty(const char *text):
    return decode(text) if text != NULL else ""


def last_call():
    """Say what this thread's last call did.

    Returns
    -------
    LastCall or None
        Operator, device ("cpu" or "cuda:0"), whether host arrays were staged through the GPU,
        and the plugin's file. None before the first call.
    """
    cdef last_run last = get_last_run()
    cdef cuplug_operator_info info
    if last.op == NULL:
        return None
    cuplug_describe(last.op, &info)
    device = f"cuda:{last.device_id}" if last.device_type == CUPLUG_CUDA else "cpu"
    return LastCall(info.name.decode(), device, last.staged != 0, os.fsdecode(info.path))


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
            from cuplug.packages import plugin_directories

            for directory in plugin_directories():
                if cuplug_add_directory(os.fsencode(directory), &error):
                    raise_error(&error)
        packages_are_read = True
    return 0

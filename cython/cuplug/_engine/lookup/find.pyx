# SPDX-License-Identifier: Apache-2.0
"""Finding and loading plugins."""

import os
from types import ModuleType

from cpython.dict cimport PyDict_GetItemWithError
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.module cimport PyModule_Check, PyModule_GetDict
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t
from libc.string cimport strlen

from cuplug._engine.base.core cimport (
    cuplug_error,
    cuplug_find,
    cuplug_find_early,
    cuplug_load,
    cuplug_operator,
    cuplug_operator_digest,
)
from cuplug._engine.base.core_call cimport cuplug_find_loaded, cuplug_find_stock
from cuplug._engine.call.operator cimport Operator, wrap_operator
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.lookup.listing cimport packages_are_read, read_packages

from cuplug.errors import NotFoundError, PluginError
from cuplug._engine.base.validate import absolute
from cuplug._engine.base.public import public
from cuplug._engine.call.pickled import PickledOperator
from cuplug._engine.lookup.records import Listing, Plugin
from cuplug._engine.lookup.listing import list_plugins

cdef extern from "Python.h":
    bint PyUnicode_IS_ASCII(object text)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *n_bytes) except NULL

cdef enum:
    ROOM = 64  # for the operators of one file, initially

cdef dict wrapped = {}  # operators of plugins, by the addresses of their records in the core


@public
def find(name: str, version: str | None = None, digest: str | None = None) -> Operator:
    """Find an operator.

    Parameters
    ----------
    name : str
        "operator", or "plugin.operator".
    version : str, optional
        The required version of the plugin.
    digest : str, optional
        The required SHA-256 of the plugin's file, as 64 digits: no other code is accepted.

    Returns
    -------
    Operator

    Raises
    ------
    NotFoundError
        If no plugin has it; the message lists the searched directories and suggestions.
    PluginError
        If its version or file differs.

    Examples
    --------
    >>> gather = cuplug.find("gather.gather")
    >>> gather(numpy.array([1, 2, 3]), numpy.array([2, 0]))
    array([3, 1])
    """
    found = find_any(name)
    if version is not None or digest is not None:
        if not isinstance(found, Operator):
            raise PluginError(f"{name}: got a version or digest, expected none for {found!r}")
        check_code(found, version, digest)
    return found


cdef object find_in_plugins(object name, bint is_stock):
    cdef cuplug_operator *op = NULL
    cdef cuplug_error error
    cdef int status
    encoded = encode_name(name)
    cdef const char *text = encoded
    with nogil:
        status = cuplug_find_stock(text, &op, &error) if is_stock else look_up(text, &op, &error)
    if status:
        raise_error(&error)
    return operator_of(op)


cdef Operator operator_of(cuplug_operator *op):
    """Return the same object for each look-up: creating one takes longer than a call."""
    cdef Operator found = wrapped.get(<size_t>op)
    if found is None:
        found = wrapped.setdefault(<size_t>op, wrap_operator(op, pickled))
    if found.op != op:  # that one was reloaded
        found = wrapped[<size_t>op] = wrap_operator(op, pickled)
    return found


def forget_operators():
    """Release operators that are not in use."""
    wrapped.clear()


cdef cuplug_operator *find_in_use(object name) except? NULL:
    """Find an operator in the registry, the most frequent look-up. Keeps the GIL, reads no file."""
    cdef Py_ssize_t n_bytes = 0
    cdef const char *text
    if type(name) is not str or not PyUnicode_IS_ASCII(name):
        return NULL
    text = PyUnicode_AsUTF8AndSize(name, &n_bytes)
    return cuplug_find_loaded(text) if strlen(text) == <size_t>n_bytes else NULL


cdef object find_any(object name):
    cdef cuplug_operator *op = find_in_use(name)
    if op != NULL:
        return operator_of(op)
    try:
        return find_in_plugins(name, False)
    except NotFoundError as missing:
        from cuplug._engine.lookup.adopted_libraries import find_adopted
        from cuplug._engine.lookup.tvm_modules import find_in_modules

        try:
            return find_adopted(name, missing)
        except NotFoundError as not_adopted:
            return find_in_modules(name, not_adopted, load)


cdef int look_up(const char *name, cuplug_operator **op, cuplug_error *error) except -1 nogil:
    cdef int status = 0
    if not packages_are_read:  # searching them takes longer than everything else here
        status = cuplug_find_early(name, op, error)
    if not status and op[0] == NULL:
        with gil:
            read_packages()
        status = cuplug_find(name, op, error)
    return status


def operator_or_attribute(module: ModuleType, str name not None):
    """Return an attribute of a module that has operators, as the module's `__getattribute__`.

    Python would create an exception before it calls the module's `__getattr__`, which takes longer
    than a call.
    """
    cdef PyObject *own = NULL
    if PyModule_Check(module):
        own = PyDict_GetItemWithError(<object>PyModule_GetDict(module), name)
        if own != NULL:
            return <object>own
        if not name.startswith("_"):
            try:
                return find_any(name)
            except (NotFoundError, ValueError):
                pass
    return ModuleType.__getattribute__(module, name)


def find_stock(name: str) -> Operator:
    """Find "plugin.operator" among the stock plugins, also if others have the same name.

    Parameters
    ----------
    name : str

    Returns
    -------
    Operator
    """
    return find_in_plugins(name, True)


def pickled(Operator op):
    """Return the pickled form of an operator of a plugin: its name, and its code's identity."""
    return PickledOperator, (find, (f"{op.plugin}.{op.name}", op.version, digest_of(op)))


cdef str digest_of(Operator op):
    cdef uint8_t[32] digest
    cdef cuplug_error error
    cdef int status
    with nogil:
        status = cuplug_operator_digest(op.op, digest, &error)
    if status:
        raise_error(&error)
    return (<bytes>(<char *>digest)[:32]).hex()


cdef int check_code(Operator op, object version, object digest) except -1:
    seen = digest_of(op) if digest is not None else ""
    if op.version == (op.version if version is None else version) and seen == (digest or ""):
        return 0
    raise PluginError(
        f"{op.plugin}.{op.name}: got {describe(op.version, seen)}, in {op.path}, "
        f"expected {describe(version, digest)}"
    )


cdef str describe(object version, object digest):
    parts = [f"version {version}"] if version is not None else []
    return " with ".join([*parts, *([f"SHA-256 {digest}"] if digest else [])])


cdef bytes encode_name(object name):
    if not isinstance(name, str):
        raise TypeError(f"find: name: got {type(name).__name__}, expected a string")
    encoded = name.encode("utf-8", "backslashreplace")
    if strlen(encoded) != <size_t>len(encoded):
        raise ValueError(f"find: name: got {name!r}, expected a string without zero characters")
    return encoded


@public
def load(path: str | os.PathLike[str]) -> Plugin:
    """Register the plugin in one file, ahead of the search path, also under another file name.

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
        If the file is not a plugin, or is rejected, or the gradient of an operator does not fit.

    Examples
    --------
    >>> half = cuplug.load("plugins/libhalf.so").half  # doctest: +SKIP
    """
    encoded = os.fsencode(absolute("load", path))
    try:
        operators = load_operators(encoded, ROOM)
    except PluginError as refusal:
        from cuplug._engine.lookup.adopted_libraries import load_adopted
        from cuplug._engine.lookup.tvm_modules import is_module, load_module

        if is_module(os.fsdecode(encoded)):
            return load_module(os.fsdecode(encoded), load)
        return load_adopted(os.fsdecode(encoded), refusal)
    check_gradients(operators)
    return Plugin(operators)


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
        return tuple([operator_of(ops[k]) for k in range(n)])
    finally:
        PyMem_RawFree(ops)


cdef int check_gradients(tuple operators) except -1:
    """Reject gradients that do not fit: training would find this after a forward pass."""
    by_name = {op.name: op for op in operators}
    for op in operators:
        for text, properties in zip(op.signatures, op.properties):
            found = by_name.get(properties.get("gradient"))
            if found is None:  # it has no gradient, or the gradient is in another plugin
                continue
            from cuplug._engine.signature.gradient import linear_in, match_gradient
            from cuplug._engine.signature.signature import parse

            rows = [parse(row) for row in found.signatures]
            try:
                match_gradient(parse(text), rows, linear_in(found.properties))
            except ValueError as error:
                raise PluginError(
                    f"load: {op.path}: the gradient of {op.name} does not fit: {error}"
                ) from None
    return 0


@public
def plugins() -> Listing:
    """List the libraries in the directories of the search path. None of their code runs.

    Returns
    -------
    list of PluginFile
        Notebooks show it as a table. In search order: the first of a name is used. Adopted
        libraries come after plugins, then modules of tvm-ffi.

    Examples
    --------
    >>> [file.name for file in cuplug.plugins() if file.name == "gather"]
    ['gather']
    """
    from cuplug._engine.lookup.adopted_libraries import list_adopted
    from cuplug._engine.lookup.tvm_modules import list_modules

    listed = list_plugins()
    others = list_adopted(listed)
    others += list_modules(listed + others)
    paths = {record.path for record in others}
    own = [record for record in listed if record.path not in paths]
    return Listing(own + others)

# SPDX-License-Identifier: Apache-2.0
"""Operators as Python callables."""

import sys
import weakref

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint32_t

from cuplug._engine.arguments.inputs cimport read_arguments, read_keyword
from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ABSENT,
    cuplug_load_code,
    cuplug_error,
    cuplug_operator,
    cuplug_operator_name,
    cuplug_operator_path,
    cuplug_operator_plugin,
    cuplug_operator_version,
    cuplug_reload,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.base.vectorcall cimport (
    PyVectorcall_Call,
    PyVectorcall_NARGS,
    enable_vectorcall,
    vectorcallfunc,
)
from cuplug._engine.call.operator_base cimport Described, token
from cuplug._engine.call.infer cimport infer_outputs
from cuplug._engine.call.overloads cimport choose_overload, names_of
from cuplug._engine.call.run cimport note_returned, run_operator
from cuplug._engine.cuda.streams cimport parse_stream
from cuplug._engine.interop.reading cimport MAX_ARGUMENTS, arbitrary_code_ran, reading
from cuplug._engine.interop.reading cimport start_reading

from cuplug._engine.base import nvtx_ranges
from cuplug._engine.base.public import PublicCall, public
from cuplug._engine.call.delegate import hand_on
from cuplug._engine.discovery.fields import full_doc
from cuplug._engine.signature.signature_attribute import CallSignature

cdef enum:
    RETURNED = 252  # replaces a position
    STREAM = 253
    OUT = 254
    DEVICE = 255

cdef object live_operators = weakref.WeakValueDictionary()  # all operators, by their address
cdef list retired = []  # names, positions and rows that another thread's call may be reading

cdef str out_name = sys.intern("out")
cdef str device_name = sys.intern("device")
cdef bint has_ranges = nvtx_ranges.is_on
cdef str stream_name = sys.intern("stream")


@cython.final
cdef class Operator(Described):
    """One operator of a plugin, called as a function on arrays.

    The arguments are the parameters of its signature, by position or keyword, and

    out : array, or tuple of arrays, optional
        The arrays for the outputs, instead of new arrays.
    return_<name> : bool, optional
        If True, also compute the optional output of that name; otherwise, its value is None.
    device : str, int or Device, optional
        The device for arrays of the host: "cpu", "cuda", "cuda:1", or in parts on all GPUs,
        `"cuda:*"`.
    stream : object with __cuda_stream__, stream of PyTorch or CuPy, or int, optional
        The stream for the work on arrays of a GPU, instead of the current stream of their library.
        It is ordered after that stream, and that stream after it.

    Outputs are arrays of the type of the first array argument, on its device.

    Attributes
    ----------
    name, plugin, version, path : str
        The operator's name, its plugin's name and version, and the plugin's file.
    signatures : tuple of str
        One for each overload.
    doc : str
        The plugin's documentation of it.
    properties : tuple of dict
        Its properties in the plugin, for each overload.
    returns : dict of str to int
        The number of each optional output, by the keyword that requests it.

    Examples
    --------
    >>> gather = cuplug.ops.gather
    >>> gather.signatures[0]
    'gather(source: T[m, *row], index: I[*n], ...) -> T[*n, *row] where T: any, I: integer'
    """

    def __call__(self, *args, **keywords):
        return PyVectorcall_Call(self, args, keywords)

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def __qualname__(self) -> str:
        return self.name

    @property
    def __module__(self):
        return "cuplug.ops" if is_of_plugin(self) else "cuplug"

    @property
    def __doc__(self):
        doc = full_doc(self.doc, self.properties)
        lines = [*self.signatures, "", doc, "", self.origin]
        return "\n".join(lines)

    __signature__ = CallSignature()

    def infer(self, *args, **keywords) -> Inferred:
        """Return the shapes and dtypes of a call's outputs, without loading or running anything.

        Parameters
        ----------
        *args, **keywords
            As in a call; an `ArraySpec` may replace any array.

        Returns
        -------
        Inferred
            The number of the overload that takes the arguments, and an `ArraySpec` for each output,
            including optional ones, with -1 for a size that is known after the run.

        Raises
        ------
        TypeError, ValueError
            As for a call that rejects its arguments.

        Examples
        --------
        >>> cuplug.ops.relu.infer(cuplug.ArraySpec("float32", (3, 4))).outputs
        (ArraySpec(dtype='float32', shape=(3, 4)),)
        """
        cdef tuple names = tuple(keywords), values = tuple(keywords.values())
        cdef PyObject *out = NULL
        cdef PyObject *device = NULL
        cdef reading r
        cdef uint32_t n = <uint32_t>min(len(args), MAX_ARGUMENTS + 1)
        check_number(self, n)
        start_reading(&r)
        r.takes_specs = True
        try:
            read_arguments(PySequence_Fast_ITEMS(args), n, &r, 0)
            n = read_keywords(
                self, &r, n, PySequence_Fast_ITEMS(values), <PyObject *>names, &out, &device
            )
            if out != NULL:
                raise TypeError(f"{self.name}: infer: got out, expected only inputs")
            return infer_outputs(self.op, &r, n)
        finally:
            Py_XDECREF(r.kept)

    def load(self):
        """Load the plugin's code now instead of at the first call.

        Raises
        ------
        PluginError
            If the file cannot be loaded, or lacks an entry point.

        Examples
        --------
        >>> cuplug.ops.relu.load()
        >>> cuplug.ops.relu.loaded
        True
        """
        cdef cuplug_error error
        cdef int status
        with nogil:
            status = cuplug_load_code(self.op, &error)
        if status:
            raise_error(&error)

    def __repr__(self):
        lines = "\n".join([f"    {signature}" for signature in self.signatures])
        name = f"{self.plugin}.{self.name} {self.version}".rstrip()
        return f"<operator {name} from {self.path}\n{lines}>"

    def __reduce__(self):
        if is_of_plugin(self):
            return self.made(self)
        return self.made.__reduce__()

    def __eq__(self, other):
        return (<Operator>other).op == self.op if isinstance(other, Operator) else NotImplemented

    def __hash__(self):
        return hash((self.plugin, self.name))  # unchanged when it is reloaded


public(Operator)


cdef bint is_of_plugin(Operator op):
    return not isinstance(op.made, PublicCall)


cdef Operator wrap_operator(cuplug_operator *op, object made):
    cdef Operator self = Operator.__new__(Operator, token)
    self.vectorcall = <vectorcallfunc>call_operator
    self.made = made
    take_operator(self, op)
    live_operators[<size_t><PyObject *>self] = self
    return self


cdef int take_operator(Operator self, cuplug_operator *op) except -1:
    names, positions, rows = names_of(op)
    self.names, self.positions, self.rows, self.op = names, positions, rows, op
    return 0


cdef list all_living():
    """Copy the values: iterating over them would fail if another thread creates an operator."""
    return [op for reference in live_operators.valuerefs() if (op := reference()) is not None]


def reload_operators(set paths: set[str]) -> tuple[set[str], list[Exception]]:
    """Reload the code of the operators of these files.

    Returns
    -------
    tuple
        The paths of the files that had changed, and a list of exceptions. The operators of a broken
        file keep the old code.
    """
    cdef cuplug_operator *fresh = NULL
    cdef cuplug_error error
    cdef Operator op
    cdef int status
    changed, errors = set(), {}
    for op in all_living():
        path = op.path
        if path not in paths or path in errors or not is_of_plugin(op):
            continue
        with nogil:
            status = cuplug_reload(op.op, &fresh, &error)
        if status:
            try:
                raise_error(&error)
            except Exception as exception:
                errors[path] = exception
        elif fresh != op.op:
            retired.append((op.names, op.positions, op.rows))
            take_operator(op, fresh)
            changed.add(path)
    return changed, list(errors.values())


def living_paths() -> set[str]:
    """Return the files of all plugins with an Operator object."""
    return {op.path for op in all_living() if is_of_plugin(op)}


cdef object call_operator(
    PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *keywords
):
    cdef Operator self = <Operator>callable
    cdef uint32_t n_positional = <uint32_t>PyVectorcall_NARGS(nargsf), n = n_positional
    cdef PyObject *out = NULL
    cdef PyObject *device = NULL
    cdef reading r
    if n > MAX_ARGUMENTS:
        check_number(self, n)
    start_reading(&r)
    if has_ranges:
        nvtx_ranges.push(self.name)
    try:
        read_arguments(args, n, &r, 0)
        if keywords != NULL:
            n = read_keywords(self, &r, n, args + n, keywords, &out, &device)
        if r.handed_to != NULL:
            result = delegate_call(self, &r, args, n_positional, keywords)
            if result is not NotImplemented:
                return result
        return run_operator(self.op, &r, n, out, device)
    finally:
        Py_XDECREF(r.kept)
        if has_ranges:
            nvtx_ranges.pop()


cdef object delegate_call(
    Operator self, reading *r, PyObject *const *args, uint32_t n, PyObject *keywords
):
    """Return the result of a call from the library of one of its arrays, or NotImplemented."""
    names = () if keywords == NULL else <tuple>keywords
    given = [<object>args[k] for k in range(n + len(names))]
    positional, named = tuple(given[:n]), dict(zip(names, given[n:]))
    return hand_on(<str>r.handed_to, self, positional, named)


cdef int check_number(Operator self, uint32_t n) except -1:
    if n > MAX_ARGUMENTS:
        raise TypeError(f"{self.name}: got {n} arguments, expected at most {MAX_ARGUMENTS}")
    return 0


cdef int read_keywords(
    Operator self, reading *r, uint32_t n, PyObject *const *values, PyObject *keywords,
    PyObject **out, PyObject **device
) except -1:
    """Read arguments given by name. Returns the number of arguments, absent ones included."""
    cdef Py_ssize_t k
    cdef uint32_t at, n_given = n
    cdef PyObject *name
    cdef list names = [] if self.rows is not None else None
    for k in range(PyTuple_GET_SIZE(<tuple>keywords)):
        name = PyTuple_GET_ITEM(<tuple>keywords, k)
        at = position_of(self, name)
        if at == OUT:
            out[0] = values[k]
        elif at == DEVICE:
            device[0] = values[k]
        elif at == STREAM:
            r.given_stream = parse_stream(self.name, <object>values[k])
            arbitrary_code_ran(r)
        elif at == RETURNED:
            note_returned(r, self, <object>name, <object>values[k])
        elif names is not None:
            read_named(self, r, n, names, name, values[k])
        else:
            if at < n_given and r.args[at].kind != CUPLUG_ARGUMENT_ABSENT:
                refuse_twice(self, <object>name)
            while n_given <= at:
                r.args[n_given].kind = CUPLUG_ARGUMENT_ABSENT
                r.args[n_given].flags = 0
                n_given += 1
            read_keyword(values[k], r, at)
    return choose_overload(self.op, r, n, names, self.rows) if names else n_given


cdef int read_named(
    Operator self, reading *r, uint32_t n, list names, PyObject *name, PyObject *value
) except -1:
    """Read keywords in the order of the call, because overloads order them differently."""
    n += <uint32_t>len(names)
    check_number(self, n + 1)
    names.append(<object>name)
    return read_keyword(value, r, n)


cdef inline int position_of(Operator self, PyObject *name) except -1:
    """Return a keyword's position. Names in calls are interned like these; others are compared."""
    cdef Py_ssize_t k
    cdef PyObject *names = <PyObject *>self.names  # without references
    if name == <PyObject *>out_name:
        return OUT
    for k in range(PyTuple_GET_SIZE(<tuple>names)):
        if PyTuple_GET_ITEM(<tuple>names, k) == name:
            return (<unsigned char *>PyBytes_AS_STRING(<bytes><PyObject *>self.positions))[k]
    if name == <PyObject *>device_name:
        return DEVICE
    if name == <PyObject *>stream_name:
        return STREAM
    return compare_name(self, <object>name)


cdef int compare_name(Operator self, object name) except -1:
    if name in self.names:
        return self.positions[self.names.index(name)]
    if name == out_name:
        return OUT
    if name == device_name:
        return DEVICE
    if name == stream_name:
        return STREAM
    if name in self.returns:
        return RETURNED
    wanted = ", ".join([*self.names, *self.returns, "out", "device"])
    raise TypeError(f"{self.name}: got unknown argument {name}, expected {wanted} or stream")


cdef int refuse_twice(Operator self, object name) except -1:
    raise TypeError(f"{self.name}: {name}: got two values, by position and keyword, expected one")


cdef Operator nothing = None  # its fields are not read
enable_vectorcall(Operator, <char *>&nothing.vectorcall - <char *><PyObject *>nothing)

# SPDX-License-Identifier: Apache-2.0
"""Operators from source text: their definitions in the core, and its calls to compiled code."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int32_t, uint32_t

from cuplug._engine.base.core cimport (
    CUPLUG_OVERLOAD_IN_PLACE,
    CUPLUG_OVERLOAD_NO_SPLIT,
    CUPLUG_OVERLOAD_NONBLOCKING,
    CUPLUG_OVERLOAD_TAKES_STRIDES,
    CUPLUG_VERSION,
    cuplug_error,
)
from cuplug._engine.base.core_call cimport cuplug_entry, cuplug_term
from cuplug._engine.base.runtime cimport (
    CUPLUG_MAX_PASSES,
    cuplug_code,
    cuplug_compile,
    cuplug_definition_overload,
    cuplug_elementwise_cuda,
    cuplug_elementwise_host,
    cuplug_function_host,
    cuplug_kernel_argument,
    cuplug_kernel_cuda,
    cuplug_launch_plan,
    cuplug_reduction_cuda,
    cuplug_reduction_host,
    cuplug_reduction_reshape,
    cuplug_rows_cuda,
    cuplug_rows_host,
    cuplug_scan_cuda,
    cuplug_scan_host,
    cuplug_source,
    cuplug_variant,
    cuplug_find_kernel,
    cuplug_image,
    cuplug_kernel,
    cuplug_kernel_function,
    cuplug_load_image,
)
from cuplug._engine.call.define cimport define
from cuplug._engine.call.operator cimport Operator
from cuplug._engine.base.status cimport raise_error, raise_later
from cuplug._engine.signature.terms cimport allocate, set_term

from cuplug._engine.base.dtypes import BY_ID
from cuplug._source.compilers.stack import on_large_stack
from cuplug._engine.signature.variant import Variant

MAX_PASSES: int = CUPLUG_MAX_PASSES


cdef int compile_variant(
    void *user, const cuplug_variant *v, cuplug_code *code, cuplug_error *error
) noexcept with gil:
    try:
        ids = [v.types[k] for k in range(v.n_arrays)]
        function, finish = on_large_stack(
            <object>user,
            Variant(
                device=v.device,
                types=tuple([BY_ID[id].name if id in BY_ID else "" for id in ids]),
                still=v.still,
                fixed=v.fixed,
                near=v.near,
                across=v.across,
                width=v.width,
                unroll=v.unroll,
                ndim=v.ndim,
                n_reduced=v.n_reduced,
                wide=v.wide != 0,
                columns=v.columns != 0,
                alone=v.alone != 0,
                flat=v.flat != 0,
                few=v.few != 0,
                stores=v.stores != 0,
                walk=v.walk,
            )
        )
        code.function = <void *><size_t>function
        code.finish = <void *><size_t>finish
        return 0
    except BaseException as raised:
        return raise_later(raised, error)


def load_functions(bytes image, str name, list symbols: list[str], int32_t device) -> list[int]:
    """Load machine code until the process exits; return the CUfunction of each symbol."""
    cdef cuplug_image *loaded = NULL
    cdef cuplug_kernel *kernel = NULL
    cdef void *function = NULL
    cdef cuplug_error error
    cdef bytes text = name.encode()
    if cuplug_load_image(<const char *>image, len(image), text, &loaded, &error):
        raise_error(&error)
    found = []
    for symbol in symbols:
        encoded = symbol.encode()
        if cuplug_find_kernel(loaded, encoded, text, &kernel, &error):
            raise_error(&error)
        if cuplug_kernel_function(kernel, device, &function, &error):
            raise_error(&error)
        found.append(<size_t>function)
    return found


cdef cuplug_source *new_source(object compile, bint in_order) except NULL:
    """Allocated until the process exits, as the operator is."""
    cdef cuplug_source *source = <cuplug_source *>allocate(1, sizeof(cuplug_source))
    Py_INCREF(compile)
    source.compile = compile_variant
    source.user = <void *><PyObject *>compile
    source.in_order = in_order
    return source


cdef int define_row(
    cuplug_definition_overload *row, cuplug_entry *host, cuplug_entry *cuda, cuplug_source *source,
    const char *signature, uint32_t flags
) except -1:
    row.signature = signature
    row.host = host
    row.cuda = cuda
    row.context = source
    row.reshape = NULL
    row.flags = flags
    row.null_strides_when_contiguous = 0
    row.scans = 0
    row.takes_handles = 0
    row.close = NULL
    row.gradient = row.linear = NULL
    return 0


cdef Operator define_source(
    const cuplug_definition_overload *rows, uint32_t n_rows, str doc, object made
):
    return define(rows, n_rows, "source", CUPLUG_VERSION, "<source>", doc, made)


cdef int set_sizes(cuplug_source *source, list sizes) except -1:
    cdef cuplug_term *terms = <cuplug_term *>allocate(len(sizes), sizeof(cuplug_term))
    for k, size in enumerate(sizes):
        set_term(&terms[k], size)
    source.sizes = terms
    source.n_sizes = <uint32_t>len(sizes)
    return 0


def define_elementwise(
    list overloads: list[tuple[str, Compile, int, list[Term], int]], str doc, bint in_order,
    bint is_whole, bint nonblocking, made: PublicCall,
) -> Operator:
    """Define an element-wise operator.

    Parameters
    ----------
    overloads : list of tuple
        For each overload, the signature, a compiling function, a bit for each array that the code
        indexes itself, numbers that the code receives after the scalars, as `formula.Term`, and the
        number of packs per thread of a GPU. The compiling function, Variant -> (address of the
        function, CUPLUG_CODE_...), is never released.
    doc : str
    in_order : bool
        True if the code counts elements.
    is_whole : bool
        True if the code counts elements, or uses sizes of loop dimensions: calls are not split.
    nonblocking : bool
        True if small calls on the host keep the GIL.
    made : PublicCall
        The call that recreates the operator when it is unpickled.
    """
    cdef bytearray memory = bytearray(len(overloads) * sizeof(cuplug_definition_overload))
    cdef cuplug_definition_overload *rows = <cuplug_definition_overload *><char *>memory
    cdef cuplug_source *source
    cdef uint32_t flags = CUPLUG_OVERLOAD_NO_SPLIT if is_whole else 0
    flags |= CUPLUG_OVERLOAD_NONBLOCKING if nonblocking else 0
    texts = [signature.encode() for signature, *_ in overloads]
    for k, (_, compiler, raw, sizes, work) in enumerate(overloads):
        source = new_source(compiler, in_order)
        source.raw = raw
        source.work = work
        set_sizes(source, sizes)
        define_row(
            &rows[k], cuplug_elementwise_host, cuplug_elementwise_cuda, source, texts[k],
            flags | (0 if raw else CUPLUG_OVERLOAD_TAKES_STRIDES | CUPLUG_OVERLOAD_IN_PLACE)
        )
        rows[k].null_strides_when_contiguous = 1
    return define_source(rows, len(texts), doc, made)


def define_reduction(
    str signature, str doc, compile: Compile, bint in_order, int n_outputs, int accumulator_bytes,
    bint has_identity, int strided_below, bint nonblocking, made: PublicCall,
) -> Operator:
    """Define a reduction: arguments as for `define_elementwise`, of one overload."""
    cdef cuplug_definition_overload row
    cdef cuplug_source *source = new_source(compile, in_order)
    cdef bytes text = signature.encode()
    cdef uint32_t flags = CUPLUG_OVERLOAD_TAKES_STRIDES | CUPLUG_OVERLOAD_NO_SPLIT
    flags |= CUPLUG_OVERLOAD_NONBLOCKING if nonblocking else 0
    source.n_outputs = n_outputs
    source.accumulator_bytes = accumulator_bytes
    source.has_identity = has_identity
    source.strided_below = strided_below
    define_row(&row, cuplug_reduction_host, cuplug_reduction_cuda, source, text, flags)
    row.reshape = cuplug_reduction_reshape
    return define_source(&row, 1, doc, made)


def define_rows(
    list signatures: list[str], str doc, compile: Compile, int n_outputs, bint has_identity,
    made: PublicCall,
) -> Operator:
    """Define functions of rows, with several overloads: arguments as for `define_elementwise`."""
    cdef bytearray memory = bytearray(len(signatures) * sizeof(cuplug_definition_overload))
    cdef cuplug_definition_overload *rows = <cuplug_definition_overload *><char *>memory
    cdef cuplug_source *source = new_source(compile, False)
    cdef uint32_t flags = CUPLUG_OVERLOAD_TAKES_STRIDES | CUPLUG_OVERLOAD_NO_SPLIT
    flags |= CUPLUG_OVERLOAD_IN_PLACE
    source.n_outputs = n_outputs
    source.has_identity = has_identity
    texts = [signature.encode() for signature in signatures]
    for k, text in enumerate(texts):
        define_row(
            &rows[k], cuplug_rows_host, cuplug_rows_cuda, source, text,
            flags | CUPLUG_OVERLOAD_NONBLOCKING
        )
    return define_source(rows, len(texts), doc, made)


def define_scan(
    str signature, str doc, compile: Compile, int n_outputs, int accumulator_bytes,
    made: PublicCall,
) -> Operator:
    """Define a scan: arguments as for `define_reduction`."""
    cdef cuplug_definition_overload row
    cdef cuplug_source *source = new_source(compile, True)
    cdef bytes text = signature.encode()
    source.n_outputs = n_outputs
    source.accumulator_bytes = accumulator_bytes
    define_row(
        &row, cuplug_scan_host, cuplug_scan_cuda, source, text,
        CUPLUG_OVERLOAD_TAKES_STRIDES | CUPLUG_OVERLOAD_NO_SPLIT
    )
    row.scans = 1
    return define_source(&row, 1, doc, made)


def define_function(
    str signature, str doc, compile_host: Compile | None, compile_cuda: Compile | None,
    made: PublicCall,
) -> Operator:
    """Define an operator of a function and a kernel. A missing one has None as its compiler."""
    cdef cuplug_definition_overload row
    cdef bytes text = signature.encode()
    compilers = (compile_host, compile_cuda)

    def compile(variant):
        return compilers[0 if variant.on_host else 1](variant)

    define_row(&row, NULL, NULL, new_source(compile, False), text, 0)
    if compile_host is not None:
        row.host = cuplug_function_host
    if compile_cuda is not None:
        row.cuda = cuplug_kernel_cuda
    return define_source(&row, 1, doc, made)


def make_plan(
    list grid: list[Term], list block: list[Term], shared: Term | None, list passes: list[Pass],
    bint per_thread,
) -> int:
    """Return the address of a `cuplug_launch_plan`, which is never freed.

    Parameters
    ----------
    grid, block : list of formula.Term
    shared : formula.Term, or None for a function on the host
    passes : list of passes.Pass
        At most CUPLUG_MAX_PASSES.
    per_thread : bool
        True if the grid counts threads.
    """
    cdef cuplug_launch_plan *plan = <cuplug_launch_plan *>allocate(1, sizeof(cuplug_launch_plan))
    cdef size_t bytes = sizeof(cuplug_kernel_argument)
    cdef cuplug_kernel_argument *to = <cuplug_kernel_argument *>allocate(len(passes), bytes)
    for d in range(len(grid)):
        set_term(&plan.grid[d], grid[d])
    for d in range(len(block)):
        set_term(&plan.block[d], block[d])
    if shared is not None:
        set_term(&plan.shared_bytes, shared)
    for k, each in enumerate(passes):
        to[k].kind = each.kind
        to[k].operand = each.operand
        to[k].type = each.type
        to[k].unit_bytes = each.unit_bytes
        to[k].unit_alignment = each.unit_alignment
        set_term(&to[k].number, each.term)
    plan.passes = to
    plan.n_passes = <uint32_t>len(passes)
    plan.per_thread = per_thread
    return <size_t>plan

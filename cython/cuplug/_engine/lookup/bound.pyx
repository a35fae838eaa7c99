# SPDX-License-Identifier: Apache-2.0
"""Operators that compiled calls, the typed-memoryview functions, have found.

Such a call passes its arguments by position and without names, so a plugin with another signature
than the call was compiled for would misinterpret them.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport malloc

from cuplug._engine.base.core cimport (
    cuplug_error,
    cuplug_operator,
    cuplug_operator_n_overloads,
    cuplug_operator_overload,
    cuplug_overload_signature,
)
from cuplug._engine.base.core_call cimport (
    CUPLUG_ANY_OVERLOAD,
    cuplug_bound_call,
    cuplug_call_otherwise,
    cuplug_frame,
    cuplug_operator_signature,
    cuplug_parameter,
    cuplug_signature,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.call.operator cimport Operator
from cuplug._engine.lookup.find cimport look_up, operator_of

from libc.string cimport strcmp

from cuplug.errors import PluginError

cdef extern from *:
    """
    #define cuplug_load_slot(slot) __atomic_load_n((slot), __ATOMIC_ACQUIRE)
    #define cuplug_store_slot(slot, op) __atomic_store_n((slot), (op), __ATOMIC_RELEASE)
    """
    cuplug_operator *cuplug_load_slot(cuplug_operator **slot) noexcept nogil
    void cuplug_store_slot(cuplug_operator **slot, cuplug_operator *op) noexcept nogil

REMEDY = "rebuild the module with what `cuplug bind` writes for this plugin"

# The operator of each slot, by the slot's address: alive, so that `cuplug.reload` finds it.
cdef dict operators = {}
# Odd while a reload runs. Operators that are found meanwhile may have the old code, and are not
# stored.
cdef size_t n_turns = 0


cdef const cuplug_bound_call *bound_of(
    cuplug_operator **slot, const char *name, cuplug_call_otherwise *otherwise
) except NULL nogil:
    cdef const cuplug_bound_call *bound = <const cuplug_bound_call *>cuplug_load_slot(slot)
    return bound if bound != NULL else fill_slot(slot, name, otherwise)


cdef const cuplug_bound_call *fill_slot(
    cuplug_operator **slot, const char *name, cuplug_call_otherwise *otherwise
) except NULL with gil:
    cdef bytes whole = name, found_as = whole.partition(b"(")[0]
    cdef const char *text = found_as
    cdef const char *signature = name + whole.find(b".") + 1
    cdef cuplug_operator *op = NULL
    cdef cuplug_error error
    cdef cuplug_bound_call *bound
    cdef size_t turn = n_turns
    cdef int status
    with nogil:
        status = look_up(text, &op, &error)
    if status:
        raise_error(&error)
    row = CUPLUG_ANY_OVERLOAD if found_as == whole else row_of(operator_of(op), op, signature)
    bound = <cuplug_bound_call *>malloc(sizeof(cuplug_bound_call))
    if bound == NULL:
        raise MemoryError()
    bound.op, bound.row, bound.otherwise = op, row, otherwise
    operators[<size_t>slot] = operator_of(op)
    cuplug_store_slot(slot, <cuplug_operator *>bound)
    if turn != n_turns or turn & 1:
        cuplug_store_slot(slot, NULL)
    return bound


cdef uint32_t row_of(
    Operator found, cuplug_operator *op, const char *signature
) except? CUPLUG_ANY_OVERLOAD:
    """Return the overload that has exactly this signature."""
    cdef uint32_t k
    for k in range(cuplug_operator_n_overloads(op)):
        if not strcmp(cuplug_overload_signature(cuplug_operator_overload(op, k)), signature):
            return k
    seen = " and ".join([repr(text) for text in found.signatures])
    raise PluginError(
        f"{found.name}: got {seen}, from the plugin {found.plugin} {found.version} in "
        f"{found.path}, expected {(<bytes>signature).decode()!r}, for which this module was "
        f"compiled; {REMEDY}"
    )


cdef int check_other_row(const cuplug_bound_call *bound, const cuplug_frame *frame) except -1 nogil:
    cdef const cuplug_signature *own = cuplug_operator_signature(bound.op, bound.row)
    if bound.row == CUPLUG_ANY_OVERLOAD or takes_the_same(own, frame.signature):
        return 0
    with gil:
        return refuse_row(bound, frame)


cdef bint takes_the_same(const cuplug_signature *a, const cuplug_signature *b) noexcept nogil:
    """Return whether each argument has the same name and kind in both."""
    cdef const cuplug_parameter *x
    cdef const cuplug_parameter *y
    cdef int k
    if a.n_parameters != b.n_parameters or a.n_outputs != b.n_outputs:
        return False
    for k in range(a.n_parameters + a.n_outputs):
        x, y = &a.parameters[k], &b.parameters[k]
        if x.kind != y.kind or strcmp(x.name, y.name):
            return False
    return True


cdef int refuse_row(const cuplug_bound_call *bound, const cuplug_frame *frame) except -1:
    rows = [
        cuplug_overload_signature(cuplug_operator_overload(bound.op, k)).decode()
        for k in (frame.row, bound.row)
    ]
    name = (<const char *>frame.signature.name).decode()
    raise PluginError(
        f"{name}: got arguments that {rows[0]!r} takes before {rows[1]!r}, for which this module "
        f"was compiled, expected them to be for that one alone; {REMEDY}"
    )


def begin_reload():
    """Store no operator that compiled calls find until `forget_reloaded`. Only one reload runs."""
    global n_turns
    n_turns += 1


def forget_reloaded():
    """Let compiled calls search for their operators again if these were reloaded."""
    global n_turns
    cdef const cuplug_bound_call *bound
    cdef cuplug_operator **slot
    for address, found in list(operators.items()):
        slot = <cuplug_operator **><size_t>address
        bound = <const cuplug_bound_call *>cuplug_load_slot(slot)
        if bound != NULL and bound.op != (<Operator>found).op:
            cuplug_store_slot(slot, NULL)
    n_turns += 1

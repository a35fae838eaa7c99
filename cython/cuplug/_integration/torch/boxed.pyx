# SPDX-License-Identifier: Apache-2.0
"""Kernels for PyTorch's dispatcher that run an operator without Python, from PyTorch 2.10 on.

They consist of stable C functions of libtorch, which are found in the process. A Python function
handles other cases, such as tensors that are traced, recorded or must be copied, and arguments that
will be rejected. If a function is missing, no such kernels exist.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ABSENT,
    CUPLUG_ARGUMENT_BOOL,
    CUPLUG_ARGUMENT_FLOAT,
    CUPLUG_ARGUMENT_INT,
    CUPLUG_ARGUMENT_STRING,
    cuplug_argument,
    cuplug_error,
    cuplug_operator,
    cuplug_tensor,
)
from cuplug._engine.base.core_call cimport (
    cuplug_bind, cuplug_frame, cuplug_keep_layout, cuplug_run,
)
from cuplug._engine.base.status cimport raise_error, raise_later
from cuplug._engine.call.operator cimport Operator
from cuplug._engine.call.last_call cimport is_verbose, note_last
from cuplug._engine.cuda.placement cimport has_default
from cuplug._engine.interop.torch_scratch cimport free_scratch, lend_scratch, torch_scratch
from cuplug._integration.torch.functions cimport (
    boxed,
    cuda,
    cuda_stream,
    is_plain_tensor,
    is_untraced,
    new_tensor,
    place_in_object,
    read_tensor,
    throw_pending,
    torch,
)

import torch as library_torch

cdef extern from *:
    """
    /* The dispatcher passes no context to its functions, so each slot has its own function. */
    typedef void cuplug_boxed(uint64_t *stack, uint64_t n_arguments, uint64_t n_outputs);
    static void (*cuplug_run_slot)(int slot, uint64_t *stack);
    #define EACH16(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7) \\
      X(n##8) X(n##9) X(n##a) X(n##b) X(n##c) X(n##d) X(n##e) X(n##f)
    #define EACH256(X, n) EACH16(X, n##0) EACH16(X, n##1) EACH16(X, n##2) EACH16(X, n##3) \\
      EACH16(X, n##4) EACH16(X, n##5) EACH16(X, n##6) EACH16(X, n##7) EACH16(X, n##8) \\
      EACH16(X, n##9) EACH16(X, n##a) EACH16(X, n##b) EACH16(X, n##c) EACH16(X, n##d) \\
      EACH16(X, n##e) EACH16(X, n##f)
    #define EACH(X) EACH256(X, 0) EACH256(X, 1) EACH256(X, 2) EACH256(X, 3)
    #define DEFINE(n)                                                               \\
      static void cuplug_boxed_##n(uint64_t *stack, uint64_t in, uint64_t out) {    \\
        (void)in, (void)out, cuplug_run_slot(0x##n, stack);                         \\
      }
    EACH(DEFINE)
    #define NAME(n) cuplug_boxed_##n,
    static cuplug_boxed *const cuplug_boxed_functions[] = {EACH(NAME)};
    """
    boxed *cuplug_boxed_functions
    void (*cuplug_run_slot)(int slot, uint64_t *stack) noexcept nogil

cdef enum:
    N_SLOTS = 1024

cdef enum answer:
    DONE
    DECLINED
    RAISED  # base.status has a pending exception

# An overload under one key of the dispatcher.
ctypedef struct slot:
    cuplug_operator **op  # the operator's slot, which a reload changes
    PyObject *plain  # the Python function for declined calls
    uint32_t n
    uint32_t n_outputs
    bint is_front  # 1 if gradients are recorded at this key; accepts tensors that need none
    char kinds[64]
    bint optional[64]

cdef slot slots[N_SLOTS]
cdef int n_slots = 0
cdef list kept = []  # objects to which slots point
cdef dict libraries = {}  # dispatch key -> handle
cdef object Tensor = library_torch.Tensor
cuplug_run_slot = run_slot


# ---- The kernel ----------------------------------------------------------------------------------


cdef void run_slot(int number, uint64_t *stack) noexcept nogil:
    cdef slot *s = &slots[number]
    cdef uint64_t outputs[64]
    cdef answer done = DECLINED
    if not s.is_front or is_plain(s, stack):
        done = run_plain(s, stack, outputs)
    if done == DECLINED:
        done = run_in_python(s, stack, outputs)
    release(s, stack)
    if done == RAISED:
        throw_pending()
    memcpy(stack, outputs, s.n_outputs * sizeof(uint64_t))


cdef inline void *tensor_of(slot *s, uint64_t *stack, uint32_t k) noexcept nogil:
    """Returns NULL for an omitted argument or one that is not a tensor."""
    if s.kinds[k] != c"T":
        return NULL
    if s.optional[k]:
        return <void *>(<uint64_t *>stack[k])[0] if stack[k] else NULL
    return <void *>stack[k]


cdef bint is_plain(slot *s, uint64_t *stack) noexcept nogil:
    """Returns whether no tensor is traced, recorded or wrapped."""
    cdef uint32_t k
    cdef bint records = torch.grad_is_enabled()
    cdef void *tensor
    if not is_untraced():
        return False
    for k in range(s.n):
        tensor = tensor_of(s, stack, k)
        if tensor != NULL and not is_plain_tensor(tensor, records):
            return False
    return True


cdef answer run_plain(slot *s, uint64_t *stack, uint64_t *outputs) noexcept nogil:
    cdef cuplug_argument args[64]
    cdef cuplug_frame frame
    cdef cuplug_error error
    cdef torch_scratch scratch
    cdef int32_t device_type = 0, device_index = 0
    cdef uint32_t k
    cdef int status
    scratch.n = 0
    if has_default or is_verbose:
        return DECLINED
    for k in range(s.n):
        if not read(s, stack, k, &args[k], &device_type, &device_index):
            return DECLINED
    if cuplug_bind(s.op[0], args, s.n, &frame, &error):
        return DECLINED
    if frame.n_inputs and frame.tensors[0].strides != NULL:
        cuplug_keep_layout(&frame)
    if frame.copy_mask:
        return DECLINED
    if frame.n_tensors - frame.n_inputs != s.n_outputs:
        return DECLINED
    if device_type == cuda and (cuda_stream == NULL or cuda_stream(device_index, &frame.stream)):
        return DECLINED
    if not allocate(&frame, device_type, device_index, outputs):
        return DECLINED
    if device_type == cuda:
        frame.keep_scratch = lend_scratch
        frame.user = &scratch
    status = cuplug_run(&frame, &error)
    free_scratch(&scratch)
    if status:
        drop_all(outputs, s.n_outputs)
        wait_to_raise(&error)
        return RAISED
    note_last(&frame)
    return DONE


cdef bint read(
    slot *s, uint64_t *stack, uint32_t k, cuplug_argument *a, int32_t *device_type,
    int32_t *device_index
) noexcept nogil:
    cdef uint64_t word = stack[k]
    a.flags = 0
    if s.optional[k]:
        if not word:
            a.kind = CUPLUG_ARGUMENT_ABSENT
            return True
        word = (<uint64_t *>word)[0]
    if s.kinds[k] == c"T":
        return read_tensor(<void *>word, a, device_type, device_index)
    if s.kinds[k] == c"i":
        a.kind = CUPLUG_ARGUMENT_INT
        a.scalar.i = <int64_t>word
    elif s.kinds[k] == c"b":
        a.kind = CUPLUG_ARGUMENT_BOOL
        a.scalar.i = word & 1
    elif s.kinds[k] == c"f":
        a.kind = CUPLUG_ARGUMENT_FLOAT
        memcpy(&a.scalar.f, &word, sizeof(double))
    else:
        a.kind = CUPLUG_ARGUMENT_STRING
        return torch.string_text(<void *>word, &a.scalar.s) == 0
    return True


cdef bint allocate(
    cuplug_frame *frame, int32_t device_type, int32_t device_index, uint64_t *outputs
) noexcept nogil:
    """Allocates all outputs or none: the sizes of some are known only after the run."""
    cdef uint32_t k, n = frame.n_tensors - frame.n_inputs
    cdef cuplug_tensor *x = &frame.tensors[frame.n_inputs]
    for k in range(n):
        outputs[k] = <uint64_t>new_tensor(&x[k], device_type, device_index)
        if not outputs[k]:
            drop_all(outputs, k)
            return False
    return True


cdef void drop_all(uint64_t *tensors, uint32_t n) noexcept nogil:
    cdef uint32_t k
    for k in range(n):
        torch.drop(<void *>tensors[k])


cdef void release(slot *s, uint64_t *stack) noexcept nogil:
    """Releases the arguments, which the callee owns."""
    cdef uint32_t k
    cdef uint64_t word
    for k in range(s.n):
        word = stack[k]
        if s.optional[k]:
            if not word:
                continue
            word = (<uint64_t *>word)[0]
        if s.kinds[k] == c"T":
            torch.drop(<void *>word)
        elif s.kinds[k] == c"s":
            torch.drop_string(<void *>word)
        if s.optional[k]:
            torch.delete_word(<void *>stack[k])


# ---- Python --------------------------------------------------------------------------------------


cdef answer run_in_python(slot *s, uint64_t *stack, uint64_t *outputs) noexcept with gil:
    cdef cuplug_error error
    try:
        results = (<object>s.plain)(*[to_object(s, stack, k) for k in range(s.n)])
        if results is None:
            results = ()
        elif not isinstance(results, (list, tuple)):
            results = (results,)
        take_results(s, results, outputs)
        return DONE
    except BaseException as exception:
        raise_later(exception, &error)
        return RAISED


cdef object to_object(slot *s, uint64_t *stack, uint32_t k):
    cdef uint64_t word = stack[k]
    cdef double number = 0
    cdef const char *text = NULL
    if s.optional[k]:
        if not word:
            return None
        word = (<uint64_t *>word)[0]
    if s.kinds[k] == c"T":
        return owned(torch.wrap(<void *>word))
    if s.kinds[k] == c"i":
        return <int64_t>word
    if s.kinds[k] == c"b":
        return word & 1 != 0
    if s.kinds[k] == c"f":
        memcpy(&number, &word, sizeof(double))
        return number
    torch.string_text(<void *>word, &text)
    return text.decode()


cdef object owned(PyObject *made):
    """Returns a reference that the caller owns."""
    if made == NULL:
        raise MemoryError("a tensor could not be made an object")
    result = <object>made
    Py_DECREF(result)
    return result


cdef int take_results(slot *s, object results, uint64_t *outputs) except -1:
    cdef uint32_t k = 0
    cdef void *copy = NULL
    if len(results) != s.n_outputs:
        raise RuntimeError(f"got {len(results)} outputs, expected {s.n_outputs}")
    for result in results:
        if not isinstance(result, Tensor):
            drop_all(outputs, k)
            raise TypeError(f"got {type(result).__name__}, expected a tensor")
        torch.copy_handle(<char *><PyObject *>result + place_in_object, &copy)
        outputs[k] = <uint64_t>copy
        k += 1
    return 0


cdef void wait_to_raise(cuplug_error *error) noexcept with gil:
    try:
        raise_error(error)
    except BaseException as exception:
        raise_later(exception, error)


# ---- Registering ---------------------------------------------------------------------------------


def implement(
    str name, str key, Operator operator, str kinds, list optional: list[bool], uint32_t n_outputs,
    plain: Callable[..., Any],
) -> bool:
    """Register a kernel for an overload under a dispatch key.

    Parameters
    ----------
    name : str
        "relu", "gather.row2".
    key : str
        "CPU", "AutogradCPU" ...
    kinds : str
        A letter for each argument: tensor, int, bool, float, string.
    optional : list of bool
        For each argument, whether it may be None.
    n_outputs : int
    plain : callable
        Called with all arguments if the kernel declines.

    Returns
    -------
    bool
        False if no slot is free.
    """
    global n_slots
    cdef slot *s
    cdef void *library = library_of(key)
    cdef bytes name_text = name.encode()
    if n_slots == N_SLOTS or library == NULL or len(kinds) > 64:
        return False
    s = &slots[n_slots]
    s.op = &operator.op
    s.plain = <PyObject *>plain
    kept.append((operator, plain, name_text))
    s.n, s.n_outputs, s.is_front = len(kinds), n_outputs, key.startswith("Autograd")
    for k, letter in enumerate(kinds):
        s.kinds[k] = ord(letter)
        s.optional[k] = optional[k]
    n_slots += 1
    return torch.impl_of_library(library, name_text, cuplug_boxed_functions[n_slots - 1],
                              torch.version()) == 0


cdef void *library_of(str key):
    cdef void *library = NULL
    cdef bytes key_text = key.encode()
    if key not in libraries:
        if torch.init_of_library(b"cuplug", key_text, b"boxed.pyx", 1, &library):
            return NULL
        libraries[key] = <size_t>library
    return <void *><size_t>libraries[key]

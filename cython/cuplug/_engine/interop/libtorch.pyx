# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors, through the C functions of libtorch, in a fraction of its DLPack's time.

`torch/csrc/inductor/aoti_torch/c/shim.h` promises them to be stable. They take the address of an
`at::Tensor`, which a Python tensor holds, at an offset that is found by the address in `_cdata`.
The numbers of dtypes and devices are not promised, and are learned from DLPack. A dtype is read
here only after both readings of one tensor of that dtype were equal. A process with few calls does
not use this.

`MANGLED` has all C++ names that cuplug calls in PyTorch. This module also contains the engine's
uses of private Python names. None is promised, so the functions are first called with tensors whose
results are known. Without them, cuplug uses DLPack and PyTorch's public functions in Python.
"""

import sys

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint16_t

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_ARGUMENT_OTHER,
    CUPLUG_CPU,
    cuplug_argument,
    cuplug_dtype,
    cuplug_tensor,
)

cdef extern from "dlfcn.h":
    const int RTLD_LAZY, RTLD_NOLOAD
    void *dlopen(const char *path, int flags)
    void *dlsym(void *library, const char *symbol)

cdef extern from *:
    """
    #define cuplug_load_type(slot) __atomic_load_n((slot), __ATOMIC_ACQUIRE)
    #define cuplug_store_type(slot, type) __atomic_store_n((slot), (type), __ATOMIC_RELEASE)
    """
    int32_t load_type "cuplug_load_type"(int32_t *slot) noexcept
    void store_type "cuplug_store_type"(int32_t *slot, int32_t type) noexcept

cdef enum:
    N_EXPORTED = 16  # tensors that DLPack reads first: the search is as slow as many reads
    N_DTYPES = 64
    N_DEVICE_TYPES = 32

MANGLED = {
    b"TensorImpl::has_storage": b"_ZNK3c1010TensorImpl11has_storageEv",
    b"TensorImpl::requires_grad": b"_ZNK3c1010TensorImpl13requires_gradEv",
    b"TensorImpl::_fw_grad": b"_ZNK3c1010TensorImpl8_fw_gradEmRKN2at10TensorBaseE",
    b"at::_ops::alias": b"_ZN2at4_ops5alias4callERKNS_6TensorE",
    b"autograd::version_counter": b"_ZN5torch8autograd4impl15version_counterERKN2at6TensorE",
    b"autograd::bump_version": b"_ZN5torch8autograd4impl12bump_versionERKN2at6TensorE",
    b"tls_is_dispatch_key_included":
        b"_ZN3c104impl28tls_is_dispatch_key_includedENS_11DispatchKeyE",
    b"tls_is_dispatch_key_excluded":
        b"_ZN3c104impl28tls_is_dispatch_key_excludedENS_11DispatchKeyE",
    b"operator delete": b"_ZdlPv",  # these two are from libstdc++, and stable
    b"std::__throw_runtime_error": b"_ZSt21__throw_runtime_errorPKc",
    b"THPVariable_Wrap": b"_Z16THPVariable_WrapRKN2at10TensorBaseE",
}

KEY_FUNCTIONS = (b"tls_is_dispatch_key_included", b"tls_is_dispatch_key_excluded")

# They return 0, or an error.
ctypedef int (*get_number)(void **tensor, int32_t *number) noexcept
ctypedef int (*get_size)(void **tensor, int64_t *size) noexcept
ctypedef int (*get_sizes)(void **tensor, int64_t **sizes) noexcept
ctypedef int (*get_pointer)(void **tensor, void **pointer) noexcept
# Methods of c10::TensorImpl, which at::Tensor points to. The type is as wide as C++'s bool.
ctypedef unsigned char (*predicate)(const void *impl) noexcept
ctypedef unsigned char (*predicate_of_key)(uint16_t key) noexcept  # of the calling thread

ctypedef struct functions:
    get_number dtype
    get_number device_type
    get_number device_index
    get_size dim
    get_sizes sizes
    get_sizes strides
    get_pointer data_ptr
    get_size storage_offset
    predicate has_storage
    predicate requires_grad

ctypedef struct functions_of_keys:
    predicate_of_key is_included
    predicate_of_key is_excluded

# DLPack's dtype and device for PyTorch's numbers.
ctypedef struct meaning:
    cuplug_dtype dtype
    int32_t device_type  # written last; 0: not learned

MAX_FREED = <size_t>1 << 40

cdef functions torch
cdef int n_exported = 0
cdef bint is_ready = False  # all functions were found and return correct results
cdef functions_of_keys of_keys
cdef uint16_t tracer  # the number of the dispatch key
cdef bint is_searched = False  # for the functions that report traces
cdef bint tells_traces = False
cdef meaning known[N_DEVICE_TYPES][N_DTYPES]


cdef size_t find_tensor(object obj, object cls):
    cdef size_t place, impl
    module = sys.modules.get("torch")
    parameter = getattr(getattr(module, "nn", None), "Parameter", None)
    if cls is not getattr(module, "Tensor", None) and cls is not parameter:
        return 0
    impl = getattr(obj, "_cdata", 0)
    for place in range(sizeof(PyObject), <size_t>cls.__basicsize__, sizeof(void *)):
        if impl and (<size_t *>(<char *><PyObject *>obj + place))[0] == impl:
            return place
    return 0


cdef bint find_all(object module):
    try:
        return find_functions() and are_predicates(module)
    except Exception:
        return False


cdef bint find_functions():
    names = (
        b"aoti_torch_get_dtype",
        b"aoti_torch_get_device_type",
        b"aoti_torch_get_device_index",
        b"aoti_torch_get_dim",
        b"aoti_torch_get_sizes",
        b"aoti_torch_get_strides",
        b"aoti_torch_get_data_ptr",
        b"aoti_torch_get_storage_offset",
        b"TensorImpl::has_storage",  # no C functions report these two
        b"TensorImpl::requires_grad",
    )
    return find_symbols((b"libtorch_cpu.so",), names, <void **>&torch)


cdef bint find_symbols(tuple libraries, tuple names, void **to) except -1:
    cdef void *opened
    for k, name in enumerate(names):
        symbol = MANGLED.get(name, name)
        to[k] = NULL
        for library in libraries:
            opened = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)
            if opened != NULL and to[k] == NULL:
                to[k] = dlsym(opened, symbol)
        if to[k] == NULL:
            return False
    return True


def is_of_transform(tensor, name: str) -> bool:
    """Call a predicate of `torch._C._functorch`, if there is one."""
    functorch = getattr(getattr(sys.modules.get("torch"), "_C", None), "_functorch", None)
    predicate = getattr(functorch, name, None)
    return predicate is not None and predicate(tensor) is True


cdef bint are_predicates(object module):
    """Return whether the methods return correct results: their C++ names are not promised."""
    cdef size_t impl
    dense, sparse = module.strided, module.sparse_coo
    for layout, requires_grad in ((dense, False), (dense, True), (sparse, False)):
        x = module.empty(0, layout=layout, device="cpu", requires_grad=requires_grad)
        impl = x._cdata
        if torch.has_storage(<void *>impl) != (layout is dense):
            return False
        if torch.requires_grad(<void *>impl) != requires_grad:
            return False
    return True


cdef bint read_tensor(PyObject *obj, size_t place, cuplug_argument *a) noexcept:
    cdef void **tensor = <void **>(<char *>obj + place)
    cdef cuplug_tensor *x = &a.tensor
    cdef int64_t ndim = 0
    cdef meaning *means
    a.kind = CUPLUG_ARGUMENT_OTHER
    if not is_ready:
        return False
    if not torch.has_storage(tensor[0]) or torch.requires_grad(tensor[0]):
        return False
    if torch.dim(tensor, &ndim) or torch.sizes(tensor, &x.shape):
        return False
    means = meaning_of(tensor)
    if means == NULL or torch.strides(tensor, &x.strides) or torch.data_ptr(tensor, &x.data):
        return False
    x.device.type = load_type(&means.device_type)
    x.device.id = 0
    if x.device.type != CUPLUG_CPU and torch.device_index(tensor, &x.device.id):
        return False
    if <size_t>x.data < MAX_FREED and is_freed(tensor, x.data, item_bytes(means.dtype)):
        return False
    a.kind = CUPLUG_ARGUMENT_ARRAY
    a.flags = 0
    x.device.id = max(x.device.id, 0)  # the host's is -1
    x.ndim = <int32_t>ndim
    x.dtype = means.dtype
    x.byte_offset = 0
    return x.device.type != 0 and x.data != NULL  # no memory: the tensor is empty or traced


cdef bint is_traced() noexcept:
    return tells_traces and of_keys.is_included(tracer) and not of_keys.is_excluded(tracer)


cdef int learn_traces() except -1:
    """Use libtorch's functions, if they and PyTorch's Python functions return the same results."""
    global is_searched, tells_traces, tracer
    if is_searched:
        return 0
    is_searched = True
    if not find_symbols((b"libc10.so",), KEY_FUNCTIONS, <void **>&of_keys):
        return 0
    try:
        private = sys.modules["torch"]._C
        key = private._parse_dispatch_key("Tracer")
        tracer = <uint16_t>int(key)
        tells_traces = answers_right(private, key)
        with private._IncludeDispatchKeyGuard(key):
            tells_traces = tells_traces and answers_right(private, key)
    except Exception:  # this PyTorch lacks some of them
        tells_traces = False
    return 0


cdef bint answers_right(object private, object key) except -1:
    cdef bint included = of_keys.is_included(tracer), excluded = of_keys.is_excluded(tracer)
    if included != private._dispatch_tls_is_dispatch_key_included(key):
        return False
    return excluded == private._dispatch_tls_is_dispatch_key_excluded(key)


def is_tracing() -> bool:
    """Return whether this thread is in `torch.jit.trace`."""
    learn_traces()
    return is_traced()


cdef inline int64_t item_bytes(cuplug_dtype dtype) noexcept:
    return dtype.bits * dtype.lanes >> 3


cdef bint is_freed(void **tensor, void *data, int64_t item_bytes) noexcept:
    """Return whether an address is only an offset: the storage was resized to 0 bytes."""
    cdef int64_t offset = 0
    return torch.storage_offset(tensor, &offset) != 0 or <int64_t>data == offset * item_bytes


cdef inline meaning *meaning_of(void **tensor) noexcept:
    cdef int32_t dtype = 0, device_type = 0
    if torch.dtype(tensor, &dtype) or not 0 <= dtype < N_DTYPES:
        return NULL
    if torch.device_type(tensor, &device_type) or not 0 <= device_type < N_DEVICE_TYPES:
        return NULL
    return &known[device_type][dtype]


cdef int learn_tensor(PyObject *obj, size_t place, const cuplug_tensor *x) except -1:
    global n_exported, is_ready
    cdef cuplug_argument mine
    cdef meaning *means
    if not is_ready:
        if n_exported <= N_EXPORTED:
            n_exported += 1
        if n_exported != N_EXPORTED or not find_all(sys.modules["torch"]):
            return 0
        is_ready = True
    if read_tensor(obj, place, &mine) or mine.kind != CUPLUG_ARGUMENT_ARRAY:
        return 0
    if is_same(&mine.tensor, x) and (<object>obj).requires_grad is False:
        means = meaning_of(<void **>(<char *>obj + place))
        means.dtype = x.dtype
        store_type(&means.device_type, x.device.type)
    return 0


cdef bint is_same(const cuplug_tensor *mine, const cuplug_tensor *x) noexcept:
    cdef int k
    cdef int64_t stride = 1  # if x has none: it is C-contiguous
    if mine.data != <char *>x.data + x.byte_offset or mine.device.id != x.device.id:
        return False
    if mine.ndim != x.ndim:
        return False
    for k in range(x.ndim - 1, -1, -1):
        if mine.shape[k] != x.shape[k]:
            return False
        if x.strides != NULL:
            stride = x.strides[k]
        if x.shape[k] > 1 and mine.strides[k] != stride:
            return False
        stride *= x.shape[k]
    return True

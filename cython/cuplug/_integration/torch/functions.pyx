# SPDX-License-Identifier: Apache-2.0
"""The libtorch functions that kernels use, found in the process, and PyTorch's numbers.

Most belong to PyTorch's stable C interface. The others are C++ functions whose names may change, so
all their results are compared with Python's for tensors of each kind.
"""

import sys

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memset

from cuplug._engine.base.core cimport (
    CUPLUG_ARGUMENT_ARRAY,
    CUPLUG_CPU,
    CUPLUG_CUDA,
    CUPLUG_MAX_NDIM,
    cuplug_argument,
    cuplug_tensor,
)
from cuplug._engine.base.status cimport raise_pending
from cuplug._engine.interop.libtorch cimport MAX_FREED, drop_strides, find_symbols, find_tensor

from cuplug._engine.base.dtypes import DTYPES
from cuplug._engine.interop import torch_private

ctypedef int32_t (*get_number)() noexcept nogil

cdef enum:
    N_KEYS = 8
    MOST_TENSOR_BYTES = 256  # size of an at::Tensor's target in which the set of keys is searched

cdef tuple NAMES = (  # in the order of the structure
    b"aoti_torch_library_init_impl",
    b"torch_library_impl",
    b"aoti_torch_abi_version",
    b"aoti_torch_get_dtype",
    b"aoti_torch_get_device_type",
    b"aoti_torch_get_device_index",
    b"aoti_torch_get_dim",
    b"aoti_torch_get_sizes",
    b"aoti_torch_get_strides",
    b"aoti_torch_get_data_ptr",
    b"aoti_torch_get_storage_offset",
    b"aoti_torch_empty_strided",
    b"aoti_torch_new_tensor_handle",
    b"aoti_torch_delete_tensor_object",
    b"torch_string_c_str",
    b"torch_delete_string",
    b"aoti_torch_grad_mode_is_enabled",
    b"at::_ops::alias",
    b"TensorImpl::requires_grad",
    b"TensorImpl::_fw_grad",
    b"tls_is_dispatch_key_included",
    b"operator delete",  # for optional arguments
    b"std::__throw_runtime_error",
    b"THPVariable_Wrap",
)
LIBRARIES = (b"libtorch_cpu.so", b"libtorch_python.so", b"libc10.so", b"libstdc++.so.6")
CUDA_LIBRARIES = (b"libtorch_cuda.so",)

cdef size_t place_of_keys  # offset of the set of keys in a c10::TensorImpl
cdef uint64_t plain_keys[2]  # for tensors on the CPU, on a GPU
cdef void *undefined  # the forward gradient of a tensor that has none
cdef uint32_t tracing_keys[N_KEYS]
cdef int n_tracing_keys = 0
cdef object raiser  # a tensor whose operations raise the pending exception
cdef void *raising_tensor
cdef object is_ready = None  # not yet determined


cdef bint is_untraced() noexcept nogil:
    cdef int k
    for k in range(n_tracing_keys):
        if torch.is_included(tracing_keys[k]):
            return False
    return True


cdef bint is_plain_tensor(void *tensor, bint records) noexcept nogil:
    cdef char *impl = (<char **>tensor)[0]
    cdef uint64_t keys = (<uint64_t *>(impl + place_of_keys))[0]
    if keys != plain_keys[0] and keys != plain_keys[1]:
        return False
    if records and torch.requires_grad(impl):
        return False
    return torch.forward_gradient(impl, 0, tensor)[0] == undefined


cdef bint read_tensor(
    void *tensor, cuplug_argument *a, int32_t *device_type, int32_t *device_index
) noexcept nogil:
    cdef cuplug_tensor *x = &a.tensor
    cdef int64_t ndim = 0
    cdef int32_t number = 0, kind = 0, index = 0
    if torch.dim(tensor, &ndim) or torch.sizes(tensor, &x.shape):
        return False
    if torch.strides(tensor, &x.strides) or torch.data_ptr(tensor, &x.data):
        return False
    if torch.dtype(tensor, &number) or not 0 <= number < N_NUMBERS or not dtypes[number].bits:
        return False
    if torch.device_type(tensor, &kind) or torch.device_index(tensor, &index):
        return False
    if kind != cpu and kind != cuda:
        return False
    device_type[0] = kind
    device_index[0] = index
    if <size_t>x.data < MAX_FREED and may_be_freed(
        tensor, x.data, dtypes[number].bits * dtypes[number].lanes >> 3
    ):
        return False
    a.kind = CUPLUG_ARGUMENT_ARRAY
    x.ndim = <int32_t>ndim
    x.dtype = dtypes[number]
    x.byte_offset = 0
    x.device.type = <int32_t>(CUPLUG_CUDA if kind == cuda else CUPLUG_CPU)
    x.device.id = index if index > 0 else 0  # the host's is -1
    drop_strides(x)
    return True


cdef bint may_be_freed(void *tensor, void *data, int64_t item_bytes) noexcept nogil:
    """Returns whether the address has no storage, or the tensor has no elements."""
    cdef int64_t offset = 0
    return torch.storage_offset(tensor, &offset) != 0 or <int64_t>data == offset * item_bytes


cdef void *new_tensor(
    cuplug_tensor *x, int32_t device_type, int32_t device_index
) noexcept nogil:
    cdef void *tensor = NULL
    cdef int64_t in_order[CUPLUG_MAX_NDIM]
    cdef int64_t *strides = x.strides
    cdef int64_t stride = 1
    cdef int32_t number
    cdef int d
    for d in range(x.ndim - 1, -1, -1):
        if x.shape[d] < 0:
            return NULL
        in_order[d] = stride
        stride *= x.shape[d] if x.shape[d] else 1
    if strides == NULL:
        strides = in_order
    for number in range(N_NUMBERS):
        if dtypes[number].bits == x.dtype.bits and dtypes[number].code == x.dtype.code:
            break
    else:
        return NULL
    if torch.empty(x.ndim, x.shape, strides, number, device_type, device_index, &tensor):
        return NULL
    if torch.data_ptr(tensor, &x.data):
        torch.drop(tensor)
        return NULL
    return tensor


cdef void throw_pending() noexcept nogil:
    """Has PyTorch throw the exception.

    It is unwound through C functions. Their debug tables suffice for the unwinder, and they have no
    cleanup to do.
    """
    cdef void *made = NULL
    torch.alias(&made, raising_tensor)
    torch.throw_error(b"cuplug: an exception was lost, as PyTorch's dispatch to Python is off")


def raise_waiting(*_args, **_keywords):
    """Raise the pending exception of this thread."""
    raise_pending()


# ---- Setting up ----------------------------------------------------------------------------------


def is_available() -> bool:
    """Return whether PyTorch has everything that these kernels need; determined once."""
    global is_ready
    if is_ready is None:
        is_ready = find_all(sys.modules["torch"])
    return is_ready


cdef bint find_all(object module):
    try:
        return find_functions() and learn(module)
    except Exception:
        return False


cdef bint find_functions():
    if not find_symbols(LIBRARIES, NAMES, <void **>&torch):
        return False
    find_symbols(CUDA_LIBRARIES, (b"aoti_torch_get_current_cuda_stream",), <void **>&cuda_stream)
    return True


cdef bint learn(object module):
    """Determine numbers and offsets.

    They may change, so they are tested on tensors of each kind.
    """
    global place_in_object, undefined, raiser, raising_tensor
    plain = module.empty(0, device="cpu")
    place_in_object = find_tensor(plain, module.Tensor)
    if not place_in_object or not learn_numbers() or not learn_keys(module, plain):
        return False
    undefined = forward_gradient_of(plain)
    if forward_gradient_of(module.empty(2, device="cpu", requires_grad=True)) != undefined:
        return False
    raiser = new_raiser(module.Tensor)
    raising_tensor = <char *><PyObject *>raiser + place_in_object
    return are_methods(module, plain)


cdef char *impl_of(object x):
    return (<char **>(<char *><PyObject *>x + place_in_object))[0]


cdef void *forward_gradient_of(object x):
    return torch.forward_gradient(impl_of(x), 0, <char *><PyObject *>x + place_in_object)[0]


cdef bint learn_numbers():
    global cpu, cuda
    cdef get_number number = NULL
    memset(dtypes, 0, sizeof(dtypes))
    found = {}
    for name in ("device_type_cpu", "device_type_cuda", *[f"dtype_{name}" for name in DTYPES]):
        symbol = f"aoti_torch_{name}".encode()
        if find_symbols(LIBRARIES, (symbol,), <void **>&number):  # if this version has it
            found[name] = number()
    if "device_type_cpu" not in found or "device_type_cuda" not in found:
        return False
    cpu, cuda = found["device_type_cpu"], found["device_type_cuda"]
    for name, dtype in DTYPES.items():
        at = found.get(f"dtype_{name}", N_NUMBERS)
        if not 0 <= at < N_NUMBERS:
            continue
        dtypes[at].code, dtypes[at].bits = dtype.code, dtype.id >> 16 & 0xFF
        dtypes[at].lanes = dtype.n_packed
    return True


cdef bint learn_keys(object module, object plain):
    """Find a tensor's set of keys, the sets of plain tensors, and the keys that trace."""
    global place_of_keys, n_tracing_keys
    z = module.zeros(2, dtype=module.complex64, device="cpu")
    samples = [plain, z.conj(), z.conj().imag, module.eye(2).to_sparse()]
    samples.append(module.empty(2, device="meta"))
    wanted = [torch_private.keys_of(x) for x in samples]
    places = [
        place
        for place in range(0, MOST_TENSOR_BYTES, sizeof(uint64_t))
        if [(<uint64_t *>(impl_of(x) + <size_t>place))[0] for x in samples] == wanted
    ]
    if len(set(wanted)) != len(wanted) or len(places) != 1:
        return False
    place_of_keys = places[0]
    for k, name in enumerate(("CPU", "CUDA")):
        others = (f"Autograd{name}", f"Autocast{name}", "ADInplaceOrView")
        plain_keys[k] = torch_private.set_of((name, *others))
    names = ("Python", "Functionalize", "FuncTorchDynamicLayerBackMode", "PythonDispatcher")
    for name in names:
        tracing_keys[n_tracing_keys] = torch_private.number_of(name)
        n_tracing_keys += 1
    return plain_keys[0] == wanted[0]


cdef bint are_methods(object module, object plain):
    """Return whether the C++ methods return correct results."""
    with module.enable_grad():
        leaf = module.empty(2, device="cpu", requires_grad=True)
        if not torch.requires_grad(impl_of(leaf)) or torch.requires_grad(impl_of(plain)):
            return False
    with torch_private.dual_number(module.zeros(2, device="cpu"), plain.new_zeros(2)) as x:
        if forward_gradient_of(x) == undefined:
            return False
    if torch.is_included(tracing_keys[1]):
        return False
    with torch_private.key_included("Functionalize"):
        return torch.is_included(tracing_keys[1])


cdef object new_raiser(object Tensor):
    """Return a tensor on which each operation raises the pending exception."""
    members = {"__torch_dispatch__": classmethod(lambda cls, *args: raise_waiting())}
    cls = type("Raiser", (Tensor,), members)
    return torch_private.wrapper(cls)

# SPDX-License-Identifier: Apache-2.0
"""The runtime library of the installed package tvm-ffi: errors, streams, memory."""

import ctypes
import os

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_SetName
from libc.string cimport strlen

from cuplug._engine.array.array cimport Array, empty_like_tensor
from cuplug._engine.base.core cimport CUPLUG_CUDA, cuplug_tensor

from cuplug.errors import PluginError

LIBRARY = "libtvm_ffi.so"
VERSION = (0, 1)  # whose layouts abi.pxd declares

cdef object loaded = None  # never closed


cdef size_t address_of(str name) except 0:
    return ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value


def find_runtime() -> str:
    """Return the path of the installed package's library; only its name without a package."""
    from importlib.util import find_spec  # nothing else needs it

    try:
        spec = find_spec("tvm_ffi")
    except (ImportError, ValueError):
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = os.path.join(folder, "lib", LIBRARY)
        if os.path.exists(path):
            return path
    return LIBRARY


def load_runtime(path: str):
    """Load the library that a module needs; `path` is the module's path.

    Raises
    ------
    PluginError
        It is not installed, or its version has other layouts.
    """
    global loaded
    if loaded is not None:
        return
    try:
        found = ctypes.CDLL(find_runtime(), mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise PluginError(
            f"{path}: got a tvm-ffi module that needs {LIBRARY}, expected it to be installed; "
            f"pip install apache-tvm-ffi\n  {error}"
        ) from None
    version = (ctypes.c_uint32 * 3)()
    found.TVMFFIGetVersion(version)
    if tuple(version)[:2] != VERSION:
        raise PluginError(
            f"{path}: got tvm-ffi {'.'.join(map(str, version))}, expected 0.1; install "
            "apache-tvm-ffi 0.1"
        )
    loaded = found
    runtime.move_error = <move_error_function>address_of("TVMFFIErrorMoveFromRaised")
    runtime.find_global = <find_global_function>address_of("TVMFFIFunctionGetGlobal")
    runtime.set_allocator = <set_allocator_function>address_of(
        "TVMFFIEnvSetDLPackManagedTensorAllocator"
    )
    runtime.set_stream = <set_stream_function>address_of("TVMFFIEnvSetStream")


cdef int load_exports(str name) except -1:
    load_runtime(name)
    runtime.raise_error = <raise_error_function>address_of("TVMFFIErrorSetRaisedFromCStr")
    runtime.create_function = <create_function_function>address_of("TVMFFIFunctionCreate")
    runtime.set_global = <set_global_function>address_of("TVMFFIFunctionSetGlobal")
    return 0


cdef int allocate(
    const cuplug_tensor *prototype, void **made, void *context,
    void (*set_error)(void *context, const char *kind, const char *message) noexcept
) noexcept with gil:
    """Allocate memory for a tensor that a module creates."""
    cdef cuplug_tensor wanted = prototype[0]
    wanted.data = NULL
    wanted.strides = NULL
    wanted.byte_offset = 0
    try:
        capsule = empty_like_tensor(&wanted).__dlpack__(max_version=(1, 0))
        made[0] = PyCapsule_GetPointer(capsule, b"dltensor_versioned")
        PyCapsule_SetName(capsule, b"used_dltensor_versioned")
        return 0
    except BaseException as error:
        text = str(error).encode("utf-8", "replace")
        set_error(context, b"MemoryError", text)
        return -1


cdef int run_function(
    void *self, tvm_call *call, const tvm_any *args, int32_t n, int32_t device, void *stream,
    tvm_any *result
) noexcept nogil:
    cdef void *stream_before = NULL
    cdef void *allocator_before = NULL
    cdef int status
    result.type = 0
    result.n_small = 0
    result.value.i = 0
    if runtime.set_stream == NULL:
        return call(self, args, n, result)
    runtime.set_allocator(<void *>allocate, 0, &allocator_before)
    if device >= 0:
        runtime.set_stream(CUPLUG_CUDA, device, stream, &stream_before)
    status = call(self, args, n, result)
    if device >= 0:
        runtime.set_stream(CUPLUG_CUDA, device, stream_before, NULL)
    runtime.set_allocator(allocator_before, 0, NULL)
    return status


cdef void *find_global(const char *name) except NULL:
    cdef tvm_bytes text
    cdef void *function = NULL
    text.data = name
    text.n = strlen(name)
    if runtime.find_global == NULL or runtime.find_global(&text, &function) or function == NULL:
        raise PluginError(f"got no function {name.decode()} of tvm-ffi, expected version 0.1")
    return function

# SPDX-License-Identifier: Apache-2.0
"""Modules with their own context, as compilers write them. tvm-ffi's library loads these."""

from libc.stdint cimport int32_t
from libc.string cimport memset

from cuplug._engine.modules.abi cimport (
    TVM_BOOL,
    TVM_NONE,
    TVM_RAW_TEXT,
    tvm_any,
    tvm_callable,
)
from cuplug._engine.modules.values cimport call_global


def open_with_context(path: str, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Load a module; return the object and the address of each function. They are never freed.

    Parameters
    ----------
    path : str
    names : sequence of str
    """
    cdef tvm_any args[3]
    cdef tvm_any function
    memset(args, 0, sizeof(args))
    encoded = path.encode()
    args[1].type = TVM_RAW_TEXT
    args[1].value.p = <const char *>encoded
    call_global(b"ffi.ModuleLoadFromFile", &args[1], 1, &args[0])
    args[2].type = TVM_BOOL
    found = {}
    for name in names:
        encoded = name.encode()
        args[1].value.p = <const char *>encoded
        call_global(b"ffi.ModuleGetFunction", args, 3, &function)
        if function.type != TVM_NONE:
            call = (<const tvm_callable *>function.value.p).call
            found[name] = <size_t>function.value.p, <size_t>call
    return found

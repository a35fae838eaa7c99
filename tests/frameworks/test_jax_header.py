# SPDX-License-Identifier: Apache-2.0
"""The declarations of XLA's interface equal the header in JAX."""

import re

from builds import COMPILER, compile_library
from jax_devices import jax
from places import ROOT

HEADER = ROOT / "runtime/jax/xla.h"
# Our names, XLA's names, and fields by both names.
PAIRS = [
    ("extension", "Metadata_Extension", {"metadata": "metadata"}),
    ("metadata", "Metadata", {"version": "api_version", "traits": "traits"}),
    ("error_args", "Error_Create_Args", {"message": "message", "code": "errc"}),
    ("span", "ByteSpan", {"text": "ptr", "n": "len"}),
    ("type_info", "TypeInfo", {"destroy": "deleter"}),
    ("type_args", "Type_Register_Args", {"name": "name", "type": "type_id", "info": "type_info"}),
    (
        "state_args",
        "State_Get_Args",
        {"context": "ctx", "stage": "stage", "type": "type_id", "state": "state"},
    ),
    (
        "state_args",
        "State_Set_Args",
        {"context": "ctx", "stage": "stage", "type": "type_id", "state": "state"},
    ),
    ("stream_args", "Stream_Get_Args", {"context": "ctx", "stream": "stream"}),
    ("device_args", "DeviceOrdinal_Get_Args", {"context": "ctx", "device": "device_ordinal"}),
    (
        "api",
        "Api",
        {
            "version": "api_version",
            "create_error": "XLA_FFI_Error_Create",
            "get_stream": "XLA_FFI_Stream_Get",
            "register_type": "XLA_FFI_Type_Register",
            "set_state": "XLA_FFI_State_Set",
            "get_state": "XLA_FFI_State_Get",
            "get_device": "XLA_FFI_DeviceOrdinal_Get",
        },
    ),
    ("buffer", "Buffer", {"dtype": "dtype", "data": "data", "ndim": "rank", "shape": "dims"}),
    ("buffers", "Args", {"n": "size", "kinds": "types", "buffers": "args"}),
    ("buffers", "Rets", {"n": "size", "kinds": "types", "buffers": "rets"}),
    ("scalar", "Scalar", {"dtype": "dtype", "value": "value"}),
    ("array", "Array", {"dtype": "dtype", "n": "size", "values": "data"}),
    ("attributes", "Attrs", {"n": "size", "kinds": "types", "names": "names", "values": "attrs"}),
    (
        "call",
        "CallFrame",
        {
            "api": "api",
            "context": "ctx",
            "stage": "stage",
            "operands": "args",
            "results": "rets",
            "attributes": "attrs",
        },
    ),
]
CODES = ["INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED", "OUT_OF_RANGE", "INTERNAL"]
KINDS = ["ARRAY", "SCALAR", "STRING"]
# XLA's names of dtypes, in the order of cuplug's table.
DTYPES = ["PRED", "S8", "S16", "S32", "S64", "U8", "U16", "U32", "U64", "F16", "BF16", "F32", "F64"]
DTYPES += ["C64", "C128", "F8E4M3FN", "F8E5M2", "F8E4M3FNUZ", "F8E5M2FNUZ", "F8E8M0FNU"]


def offsets():
    """Yield assertions for each structure: equal offsets and sizes of fields."""
    for ours, theirs, fields in PAIRS:
        for mine, other in fields.items():
            a, b = f"cuplug__xla_{ours}, {mine}", f"XLA_FFI_{theirs}, {other}"
            yield f"offsetof({a}) == offsetof({b})"
            yield f"SIZE({a}) == SIZE({b})"


def numbers():
    """Yield assertions for named numbers."""
    for name in CODES:
        yield f"CUPLUG__XLA_{name} == (int)XLA_FFI_Error_Code_{name}"
    for name in KINDS:
        yield f"CUPLUG__XLA_{name} == (int)XLA_FFI_AttrType_{name}"
    yield "CUPLUG__XLA_CAN_BE_REPLAYED == XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE"
    yield "CUPLUG__XLA_ASKS_METADATA == (int)XLA_FFI_Extension_Metadata"
    yield "CUPLUG__XLA_MAJOR == XLA_FFI_API_MAJOR && CUPLUG__XLA_MINOR <= XLA_FFI_API_MINOR"
    rows = re.findall(r"X\((\d+), CUPLUG_\w+\)", HEADER.read_text())
    for row, name in zip(rows, DTYPES, strict=True):
        yield f"{row} == (int)XLA_FFI_DataType_{name}"


def test_structures_and_numbers(tmp_path):
    lines = [
        "#include <xla/ffi/api/c_api.h>",
        f'#include "{HEADER}"',
        "#define SIZE(type, field) sizeof(((type *)0)->field)",
        *(f'_Static_assert({x}, "");' for x in (*offsets(), *numbers())),
    ]
    source = tmp_path / "same.c"
    source.write_text("\n".join(lines))
    include = [f"-I{jax.ffi.include_dir()}", f"-I{ROOT / 'include'}"]
    compile_library([*COMPILER, "-std=c11", "-fsyntax-only", *include, str(source)])

# SPDX-License-Identifier: Apache-2.0
"""The runtime's compiler and linker for Python: finds and calls NVRTC."""

import os

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport int32_t, uint32_t, uint64_t

from cuplug._engine.base.core cimport (
    CUPLUG_ERROR_COMPILE,
    cuplug_device_info,
    cuplug_error,
    cuplug_query_device,
)
from cuplug._engine.base.runtime cimport (
    cuplug_binary,
    cuplug_compile_program,
    cuplug_find_compiler,
    cuplug_free_binary,
    cuplug_link_program,
    cuplug_linking,
    cuplug_program,
)
from cuplug._engine.base.status cimport raise_error

from cuplug.errors import CompileError


def find_compiler(directories: Sequence[str]) -> str:
    """Return the path of NVRTC. Searches these directories after CUDA_HOME and CUDA_PATH."""
    cdef char[4096] path
    cdef cuplug_error error
    encoded = os.fsencode(":".join(directories))
    if cuplug_find_compiler(encoded, path, &error):
        raise_error(&error)
    return os.fsdecode(<bytes>path)


def architecture_of(int32_t device) -> str:
    """Return the architecture of a GPU in NVRTC's form: "90" for 9.0."""
    cdef cuplug_device_info info
    info.struct_bytes = sizeof(info)
    cdef cuplug_error error
    if cuplug_query_device(device, &info, &error):
        raise_error(&error)
    return str(info.compute_capability)


cdef const char **strings(list texts) except NULL:
    """The strings are borrowed from the list. The caller frees the array."""
    cdef const char **array = <const char **>PyMem_Malloc((len(texts) + 1) * sizeof(char *))
    cdef Py_ssize_t k
    if array == NULL:
        raise MemoryError()
    for k in range(len(texts)):
        array[k] = <const char *>(<bytes>texts[k])
    return array


def compile_program(
    path: str, text: str, name: str, architecture: str, options: Sequence[str],
    names: Sequence[str], headers: Mapping[str, str], try_minimal: bool, is_part=False,
) -> tuple[bytes, list[str], bool, str]:
    """Compile without the GIL.

    Parameters
    ----------
    path : str
        Of NVRTC.
    text, name, architecture : str
    options, names : sequence of str
    headers : mapping of str to str
    try_minimal : bool
    is_part : bool
        True if the image is a part for `link_program`.

    Returns
    -------
    tuple
        The image as bytes, the lowered names as a list, whether it is PTX, the log.
    """
    cdef list all_options = [option.encode() for option in options]
    cdef list all_names = [each.encode() for each in names]
    cdef list header_names = [each.encode() for each in headers]
    cdef list header_texts = [each.encode() for each in headers.values()]
    cdef bytes encoded_path = os.fsencode(path)
    cdef bytes encoded_text = text.encode(), encoded_name = name.encode()
    cdef bytes encoded_architecture = architecture.encode()
    cdef const char *path_string = encoded_path
    cdef cuplug_program program
    cdef cuplug_binary *binary = NULL
    cdef cuplug_error error
    cdef int status
    program.text = encoded_text
    program.name = encoded_name
    program.architecture = encoded_architecture
    program.n_options = <uint32_t>len(all_options)
    program.n_names = <uint32_t>len(all_names)
    program.n_headers = <uint32_t>len(header_names)
    program.try_minimal = bool(try_minimal)
    program.is_part = bool(is_part)
    program.options = program.names = program.header_names = program.header_texts = NULL
    try:
        program.options = strings(all_options)
        program.names = strings(all_names)
        program.header_names = strings(header_names)
        program.header_texts = strings(header_texts)
        with nogil:
            status = cuplug_compile_program(path_string, &program, &binary, &error)
        if status:
            raise_failure(binary, &error)
        return as_tuple(binary)
    finally:
        cuplug_free_binary(binary)
        PyMem_Free(<void *>program.options)
        PyMem_Free(<void *>program.names)
        PyMem_Free(<void *>program.header_names)
        PyMem_Free(<void *>program.header_texts)


def link_program(
    path: str, name: str, parts: Mapping[str, bytes], options: Sequence[str], is_ptx: bool
) -> bytes:
    """Link compiled parts without the GIL.

    Parameters
    ----------
    path : str
        Of nvJitLink.
    name : str
    parts : mapping of str to bytes
    options : sequence of str
    is_ptx : bool
        True if the image is PTX.

    Returns
    -------
    bytes
        The image.
    """
    cdef list all_options = [option.encode() for option in options]
    cdef list part_names = [each.encode() for each in parts]
    cdef list codes = list(parts.values())
    cdef list sizes = [len(code) for code in codes]
    cdef bytes encoded_path = os.fsencode(path)
    cdef bytes encoded_name = name.encode()
    cdef bytes lengths = b"".join([size.to_bytes(8, "little") for size in sizes])
    cdef const char *path_string = encoded_path
    cdef cuplug_linking linking
    cdef cuplug_binary *binary = NULL
    cdef cuplug_error error
    cdef int status
    linking.name = encoded_name
    linking.part_bytes = <const uint64_t *><const char *>lengths
    linking.n_parts, linking.n_options = <uint32_t>len(codes), <uint32_t>len(all_options)
    linking.is_ptx = bool(is_ptx)
    linking.parts = NULL
    linking.part_names = linking.options = NULL
    try:
        linking.parts = <const void *const *>strings(codes)
        linking.part_names = strings(part_names)
        linking.options = strings(all_options)
        with nogil:
            status = cuplug_link_program(path_string, &linking, &binary, &error)
        if status:
            raise_failure(binary, &error)
        return PyBytes_FromStringAndSize(<const char *>binary.image, binary.image_bytes)
    finally:
        cuplug_free_binary(binary)
        PyMem_Free(<void *>linking.parts)
        PyMem_Free(<void *>linking.part_names)
        PyMem_Free(<void *>linking.options)


cdef int raise_failure(const cuplug_binary *binary, cuplug_error *error) except -1:
    """Includes the log of the compiler."""
    if error.status == CUPLUG_ERROR_COMPILE and binary != NULL and binary.log != NULL:
        message = (<const char *>error.message).decode("utf-8", "replace")
        raise CompileError(message, binary.log.decode("utf-8", "replace"))
    return raise_error(error)


cdef tuple as_tuple(const cuplug_binary *binary):
    image = PyBytes_FromStringAndSize(<const char *>binary.image, binary.image_bytes)
    lowered = [binary.lowered[k].decode() for k in range(binary.n_names)]
    log = binary.log.decode("utf-8", "replace") if binary.log != NULL else ""
    return image, lowered, binary.is_ptx != 0, log.strip("\n\0 ")

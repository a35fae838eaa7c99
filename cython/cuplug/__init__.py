# SPDX-License-Identifier: Apache-2.0
"""Drop a CUDA operator in a folder, call it from Python.

    from cuplug.ops import gather

    y = gather(x, idx)  # NumPy, PyTorch, CuPy or cuplug arrays

Operators are in shared libraries on a search path; `cuplug.plugins()` lists them and `help(gather)`
describes one.

Operators of plugins
    ops                  all operators on the search path: `from cuplug.ops import gather`
    find                 find an operator by its name
    load                 register the plugin in one file
    adopt                operators of a library that was not written for cuplug
    plugins              list the libraries on the search path
    search_path          list the directories that are searched
    prepare              do ahead of time the work of the first call of operators
    reload               reload files that were replaced
    last_call            describe this thread's last call
    Operator             an operator, called like a function of arrays
    Plugin               the result of `load`: its operators are attributes
    Handle               an object of a plugin that operators take: close it, or use it in `with`

Operators and kernels from source
    elementwise          an element-wise operator from an expression
    reduction            a reduction from expressions
    scan                 a scan from expressions: running sums and the like
    operator             an operator from a kernel, a function or both
    fuse                 a Python function of arrays as one operator
    Fused                the result of `fuse`
    compile              compile CUDA C++
    load_image           load compiled kernels: PTX, cubin, fatbin
    Module               the result of these two: kernels by name
    Kernel               a kernel to launch: `kernel[grid, block](...)`
    In, Out, InOut       NumPy arrays as arguments of a kernel

Arrays
    Array                an array on the host or on a GPU
    asarray, empty, from_pointer  create one
    empty_pinned         a NumPy array in pinned memory
    empty_managed        an array that the host and a GPU can access
    Texture              an array for texture and surface functions of kernels
    array_api            the functions of the Python array API standard
    random               random numbers, the same on the CPU and on GPUs

GPUs
    Device               the device of an array, or in a `with` block of host arrays' calls
    devices              list the GPUs
    is_available         whether there is a GPU that can be used
    synchronize          wait for all work on a GPU
    Stream, stream       work concurrent with other work, in a `with` block
    Event                a point in a stream's work: wait for it, measure time
    Graph                the work of a `with` block, launched many times
    memory_info          the GPU memory that cuplug holds
    trim                 release memory
    progress             show the progress of long transfers, in a `with` block

For authors of plugins, and C programs
    build                compile a plugin
    get_include          the directory of the headers
    get_pkg_config_path  the directory of cuplug.pc
    get_cmake_path       the directory of cuplug-config.cmake

Errors
    Error                the base class of the others
    NotFoundError        no plugin or operator has that name
    PluginError          a plugin is broken or is rejected
    BuildError           a plugin cannot be built
    CompileError         a compiler rejected a source
    CancelledError       an operator ended early, because it was cancelled
    UnsupportedError     an operator does not support these arguments, or this device
    SignatureError       the text of a signature is ill-formed
    CudaError            the CUDA driver reported an error

Shapes and dtypes without arrays
    ArraySpec            an array without elements: `operator.infer(ArraySpec("float32", (3, 4)))`
    Inferred             the result of `Operator.infer`

Records
    PluginFile           of `plugins`
    Directory            of `search_path`
    LastCall             of `last_call`
    named_outputs        several outputs, in their pickled form
    PickledOperator      an operator that was unpickled without its plugin
    MemoryInfo           of `memory_info`
    KernelAttributes     the resources of a kernel on a GPU
"""

import os as _os

from cuplug import _engine

try:
    from cuplug._engine.base.strings import version as _version
except ImportError as _error:
    if not _os.path.isdir(__path__[0]):
        raise ImportError(
            f"cuplug: got {__path__[0]}, which is in an archive, expected a folder (libraries "
            "cannot be loaded from archives); install cuplug, or make the archive with a tool "
            "that unpacks it, such as shiv or PEX"
        ) from None
    if not str(_error).startswith("Interpreter change detected"):
        raise
    raise ImportError(
        "cuplug: got a second interpreter of this process, expected the one that imported cuplug "
        "first; import it first in the interpreter that uses it, or start another process"
    ) from None

__version__ = _version()

# Modules of other wings that the engine uses.
_engine.PROVIDERS |= {
    "array_api": "cuplug.array_api",
    "array methods": "cuplug.array_api.methods",
    "host compiler": "cuplug._source.compilers.host_compiler",
    "dask types": "cuplug._integration.dask.block",
    **{library: f"cuplug.{library}" for library in ("dask", "jax", "torch", "xarray")},
}

# Module -> its public names. It is imported when one of them is first used.
_MODULES = {
    "_engine.adoption.adopt": "adopt",
    "_engine.arguments.handle": "Handle",
    "_engine.array.array": "Array",
    "_engine.array.make": "empty from_pointer",
    "_engine.array.pinned": "empty_managed empty_pinned",
    "_engine.array.texture": "Texture",
    "_engine.base.flags": "get_cmake_path get_include get_pkg_config_path",
    "_engine.call.last_call": "LastCall last_call",
    "_engine.call.output_tuples": "named_outputs",
    "_engine.call.operator": "Operator",
    "_engine.call.pickled": "PickledOperator",
    "_engine.cuda.devices": "devices is_available synchronize",
    "_engine.cuda.events": "Event Stream stream",
    "_engine.cuda.graphs": "Graph",
    "_engine.cuda.memory": "MemoryInfo memory_info trim",
    "_engine.cuda.placement": "Device",
    "_engine.host.progress": "progress",
    "_engine.lookup.find": "find load plugins",
    "_engine.lookup.listing": "search_path",
    "_engine.lookup.prepare": "prepare",
    "_engine.lookup.records": "Directory Plugin PluginFile",
    "_engine.lookup.reload": "reload",
    "_engine.signature.spec": "ArraySpec Inferred",
    "_integration.author.build": "build",
    "_integration.author.sources": "BuildError",
    "_source.expressions.element_wise": "elementwise",
    "_source.expressions.kernel_operator": "operator",
    "_source.expressions.reductions": "reduction",
    "_source.expressions.scans": "scan",
    "_source.fusion.fuse": "Fused fuse",
    "_source.kernels.function": "KernelAttributes",
    "_source.kernels.kernel": "Kernel",
    "_source.kernels.make": "compile load_image",
    "_source.kernels.module": "Module",
    "_source.kernels.host_arguments": "In InOut Out",
    "array_api": "array_api",
    "array_api.conversion": "asarray",
    "errors": "CancelledError CompileError CudaError Error NotFoundError PluginError "
    "SignatureError UnsupportedError",
    "ops": "ops",
    "random": "random",
}
_WITHOUT_NUMPY = (
    "_integration.author.build",
    "_integration.author.sources",
    "_engine.base.flags",
    "errors",
)
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        elsewhere = "functions of arrays are in cuplug.array_api, operators in cuplug.ops"
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: {elsewhere}")
    if _HOMES[name] not in _WITHOUT_NUMPY:
        # Imported first. From deeper in the stack of other modules, its import crossed the end of a
        # chunk of CPython's stack about 800 times, and each crossing mapped and unmapped one.
        import numpy  # noqa: F401

    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
    is_module = name in ("array_api", "ops", "random")
    globals()[name] = value = module if is_module else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if _os.environ.get("CUPLUG_DEVICE"):
    # The import reports an invalid value of the variable.
    from cuplug._engine.cuda import placement as _placement  # noqa: F401

# SPDX-License-Identifier: Apache-2.0
"""Drop a CUDA operator in a folder, call it from Python.

    from cuplug.ops import gather

    y = gather(x, idx)  # NumPy, PyTorch, CuPy or cuplug arrays

Operators are shared libraries found on a search path; `cuplug.plugins()` lists them and
`help(gather)` says what one does.

Operators of plugins
    ops                  all operators on the search path: `from cuplug.ops import gather`
    find                 find an operator by its name
    load                 take the plugin in one file
    adopt                operators of a library that knows nothing of cuplug
    plugins              list the libraries on the search path
    search_path          list the directories that are searched
    prepare              do ahead what the first call of operators does
    reload               load files anew that were replaced
    last_call            what this thread's last call did
    Operator             an operator; called as a function on arrays
    Plugin               what `load` returns: its operators are attributes
    Handle               an object of a plugin that operators take: close it, or use it in `with`

Operators and kernels from source
    elementwise          an element-wise operator of an expression
    reduction            a reduction of expressions
    scan                 a scan of expressions: running sums and the like
    operator             an operator of a kernel, a function or both
    fuse                 a Python function of arrays as one operator
    Fused                what `fuse` returns
    compile              compile CUDA C++
    load_image           load kernels that were compiled elsewhere: PTX, cubin, fatbin
    Module               what these two return: kernels by their names
    Kernel               a kernel to launch: `kernel[grid, block](...)`
    In, Out, InOut       NumPy arrays as arguments of a kernel

Arrays
    Array                an array on the host or on a GPU
    asarray, empty, from_pointer  make one
    empty_pinned         a NumPy array in pinned memory
    empty_managed        an array that the host and a GPU see
    Texture              an array for texture and surface functions of kernels
    array_api            the functions of the Python array API standard
    random               random numbers, the same on the CPU and on GPUs

GPUs
    Device               where an array is; in a `with` block, where host arrays run
    devices              list the GPUs
    is_available         whether there is a GPU that can be used
    synchronize          wait for all work on a GPU
    Stream, stream       work beside other work, in a `with` block
    Event                a point in a stream's work: wait for it, measure time
    Graph                the work of a `with` block, launched again and again
    memory_info          what cuplug holds of a GPU's memory
    trim                 give memory back
    progress             show how far long transfers are, in a `with` block

For authors of plugins, and C programs
    build                compile a plugin
    get_include          the directory of the headers
    get_pkg_config_path  the directory of cuplug.pc
    get_cmake_path       the directory of cuplug-config.cmake

Errors
    Error                what the others derive from
    NotFoundError        there is no plugin or operator of that name
    PluginError          a plugin is broken or is refused
    BuildError           a plugin cannot be built
    CompileError         a compiler refused a source
    CancelledError       an operator ended early, as somebody asked it to
    UnsupportedError     an operator does not support these arguments, or this device
    SignatureError       the text of a signature is ill-formed
    CudaError            the CUDA driver reported an error

Shapes and dtypes without arrays
    ArraySpec            an array without elements: `operator.infer(ArraySpec("float32", (3, 4)))`
    Inferred             what `Operator.infer` returns

Records
    PluginFile           by `plugins`
    Directory            by `search_path`
    LastCall             by `last_call`
    named_outputs        several outputs, as which they are pickled
    PickledOperator      an operator that was unpickled where its plugin is missing
    MemoryInfo           by `memory_info`
    KernelAttributes     what a kernel takes on a GPU
"""

import os as _os

from cuplug import _engine
from cuplug._engine.base.strings import version as _version

__version__ = _version()

# Modules of other wings that the engine uses.
_engine.PROVIDERS |= {
    "array_api": "cuplug.array_api",
    "array methods": "cuplug.array_api.methods",
    "host compiler": "cuplug._source.compilers.host_compiler",
    "dask types": "cuplug._integration.frameworks.dask_block",
    **{library: f"cuplug.{library}" for library in ("dask", "jax", "torch", "xarray")},
}

# Module -> its public names. It is imported when one of them is first used. __init__.pyi says the
# same to type checkers.
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
        # First, though others import it: called from their depth, its import crossed the end of a
        # piece of CPython's stack some 800 times, and each time one was mapped and unmapped.
        import numpy  # noqa: F401

    module = __import__(f"{__name__}.{_HOMES[name]}", fromlist=[name])
    is_module = name in ("array_api", "ops", "random")
    globals()[name] = value = module if is_module else getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


if _os.environ.get("CUPLUG_DEVICE"):
    # It says what is wrong with the variable.
    from cuplug._engine.cuda import placement as _placement  # noqa: F401

# SPDX-License-Identifier: Apache-2.0
"""Translate Cython modules that changed to C: translate.py BUILD N_PROCESSES [-Werror] [MODULE...]

Without names, it translates all. cython/cuplug/x.pyx becomes BUILD/cython/cuplug/x.c, and x.c.dep
lists its sources. Cython's own functions are in each module, but those that it can
share, which are in one more.
"""

import gc
import multiprocessing
import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from itertools import compress
from multiprocessing import Process
from multiprocessing.connection import wait
from pathlib import Path

import Cython
from Cython.Build import Dependencies, SharedModule
from Cython.Compiler import Errors, ExprNodes, Main, Options

SHARED = "cuplug._cython"
KNOWN = "3.3."  # the version whose parts read_declarations puts together; others read all each time
COMMON = {"freethreading_compatible": True, "annotation_typing": False}
# Annotations are for stubs.py. Modules would make a dict of them for each function.
ExprNodes.PyCFunctionNode.annotations_dict = property(lambda _: None, lambda _, made: None)
# Cython before 3.3.1 warns of annotations with names that only stubs import.
ExprNodes.AnnotationNode._warn_on_unknown_annotation = lambda *_: None


def share(build: Path) -> None:
    """Write the C of what the modules share, unless it is of this Cython."""
    path = build / "cython" / SHARED.replace(".", "/")
    made, sources = path.with_suffix(".c"), (__file__, Cython.__file__)
    if made.exists() and made.stat().st_mtime > max(os.stat(source).st_mtime for source in sources):
        return
    known = Options.default_options
    # No module has typed memoryviews, whose code is the largest; Cython before 3.3 shares no other.
    left_out = {"shared_utility_features_disabled": ["MemoryView"]}
    options = {key: value for key, value in left_out.items() if key in known}
    options |= {"shared_c_file_path": str(made), "module_name": SHARED}
    options["compiler_directives"] = dict(COMMON)
    made.parent.mkdir(parents=True, exist_ok=True)
    SharedModule.generate_shared_module(Options.CompilationOptions(known, **options))


def is_current(made: Path) -> bool:
    """Return whether a C file is newer than all that it was made of."""
    try:
        listed = made.with_suffix(".c.dep").read_text().partition(":")[2]
        sources = [*shlex.split(listed.replace("\\\n", " ")), __file__, Cython.__file__]
        return made.stat().st_mtime > max(os.stat(source).st_mtime for source in sources)
    except FileNotFoundError:
        return False


def read_declarations(modules: list[str], options: dict) -> Callable:
    """Read the .pxd files that several modules use; return a function that translates a module.

    Call it once in a process: what it does to these declarations is for one module.
    """
    context = Main.Context.from_options(Options.CompilationOptions(**options))
    tree = Dependencies.create_dependency_tree(context, quiet=True)
    uses = {module: tree.all_dependencies(module) for module in modules}
    users = Counter(path for paths in uses.values() for path in paths if path.endswith(".pxd"))
    Errors.init_thread()
    for path in sorted(path for path, n in users.items() if n > 1 and not os.path.isabs(path)):
        parts = Path(path).with_suffix("").parts  # Cython's own are absolute
        context.find_module(".".join(parts[parts.index("cuplug") :]))
    if Errors.get_errors_count():
        raise Errors.CompileError
    translate_one = Dependencies.cythonize_one

    def begin(options: Options.CompilationOptions) -> Main.Context:
        context.options = options
        return context

    def translate_module(module: str, *task) -> None:
        # Functions in these files become parts of a module.
        ends = [f"/{name.replace('.', '/')}.pxd" for name in context.pxds]
        used = [any(path.endswith(end) for path in uses[module]) for end in ends]
        context.pxds = dict(compress(context.pxds.items(), used))
        Main.Context.from_options = begin
        try:
            translate_one(module, *task)
        except Errors.CompileError:
            sys.exit(1)  # Cython has said why

    return translate_module


def translate(modules: list[str], build: Path, n_processes: int) -> None:
    """Translate modules; their C appears when all of it is whole."""
    options = {
        "include_path": ["cython", str(build / "python")],  # declarations.py writes there
        "language_level": 3,
        "compiler_directives": {**COMMON, **Options.extra_warnings},
        "shared_utility_qualified_name": SHARED,
    }
    reads_once = Cython.__version__.startswith(KNOWN)
    begun: list[Process] = []

    def begin(*task) -> None:
        running = [process.sentinel for process in begun if process.is_alive()]
        if len(running) >= n_processes:
            wait(running)
        begun.append(Process(target=translate_module, args=task))
        begun[-1].start()

    if reads_once:
        translate_module = read_declarations(modules, options)
        gc.freeze()  # else each process would copy what its collections visit
        gc.set_threshold(50_000)
        Dependencies.cythonize_one = begin
    with tempfile.TemporaryDirectory(dir=build) as folder:
        n = 0 if reads_once else n_processes
        more = {"depfile": True, "force": True, "quiet": True}
        Dependencies.cythonize(modules, build_dir=folder, nthreads=n, **more, **options)
        for process in begun:
            process.join()
        if any(process.exitcode for process in begun):
            raise Errors.CompileError
        for file in Path(folder).rglob("*.c*"):
            target = build / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


def main() -> None:
    """Translate what is not current."""
    build, n_processes = Path(sys.argv[1]), int(sys.argv[2])
    Options.warning_errors = "-Werror" in sys.argv
    multiprocessing.set_start_method("fork")  # so that the processes have all of this
    named = [Path(argument) for argument in sys.argv[3:] if argument.endswith(".pyx")]
    modules = sorted(named or Path("cython").rglob("*.pyx"))
    stale = [str(path) for path in modules if not is_current(build / path.with_suffix(".c"))]
    try:
        share(build)
        translate(stale, build, n_processes)
    except Errors.CompileError:
        sys.exit(1)  # Cython has said why


if __name__ == "__main__":
    main()

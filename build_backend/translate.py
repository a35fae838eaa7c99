# SPDX-License-Identifier: Apache-2.0
"""Translate the Cython modules that changed to C: translate.py BUILD N_PROCESSES [-Werror]

cython/cuplug/x.pyx becomes BUILD/cython/cuplug/x.c, and x.c.dep lists its sources.
Cython's own functions are in each module, but those that it can share, which are in one more.
"""

import multiprocessing
import os
import shlex
import sys
import tempfile
from pathlib import Path

import Cython
from Cython.Build import SharedModule, cythonize
from Cython.Compiler import Errors, ExprNodes, Options

SHARED = "cuplug._cython"
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


def translate(modules: list[str], build: Path, n_processes: int) -> None:
    """Translate modules; their C appears when all of it is whole."""
    with tempfile.TemporaryDirectory(dir=build) as folder:
        cythonize(
            modules,
            build_dir=folder,
            nthreads=n_processes,
            include_path=[str(build / "python")],  # declarations.py writes there
            depfile=True,
            force=True,
            quiet=True,
            language_level=3,
            compiler_directives={**COMMON, **Options.extra_warnings},
            shared_utility_qualified_name=SHARED,
        )
        for file in Path(folder).rglob("*.c*"):
            target = build / file.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


def main() -> None:
    """Translate what is not current."""
    build, n_processes = Path(sys.argv[1]), int(sys.argv[2])
    Options.warning_errors = "-Werror" in sys.argv
    multiprocessing.set_start_method("fork")  # so that the processes have this setting
    modules = sorted(Path("cython").rglob("*.pyx"))
    stale = [str(path) for path in modules if not is_current(build / path.with_suffix(".c"))]
    try:
        share(build)
        translate(stale, build, n_processes)
    except Errors.CompileError:
        sys.exit(1)  # Cython has said why


if __name__ == "__main__":
    main()

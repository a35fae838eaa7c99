# SPDX-License-Identifier: Apache-2.0
"""Builds a Cython package that calls operators without Python objects in between.

First: cuplug bind libhalf.so -o .        (writes half_typed.pxd)
Then:  python setup.py build_ext --inplace (needs Cython and setuptools), or python -m build
MANIFEST.in puts both files into source archives, which are built without the plugin.
"""

import cuplug
from Cython.Build import cythonize
from setuptools import Extension, setup

parallel = ["-fopenmp"]  # of GCC and Clang, for prange in signals.pyx
options = {"extra_compile_args": parallel, "extra_link_args": parallel}
modules = [
    Extension(name, [f"{name}.pyx"], include_dirs=[cuplug.get_include()], **options)
    for name in ("blend", "callbacks", "signals", "wrapper")
]
setup(ext_modules=cythonize(modules, language_level=3))

# SPDX-License-Identifier: Apache-2.0
"""Builds a Cython package that calls operators without Python objects in between.

First: cuplug bind libhalf.so -o .        (writes half_typed.pxd and half_typed.pyx)
Then:  python setup.py build_ext --inplace
"""

import cuplug
from Cython.Build import cythonize
from setuptools import Extension, setup

modules = [
    Extension(name, [f"{name}.pyx"], include_dirs=[cuplug.get_include()])
    for name in ("half_typed", "blend")
]
setup(ext_modules=cythonize(modules, language_level=3))

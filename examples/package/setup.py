# SPDX-License-Identifier: Apache-2.0
"""The Cython module, which setuptools translates after cuplug has written blend_typed.pxd."""

import cuplug
from setuptools import Extension, setup

rows = Extension("blending.rows", ["src/blending/rows.pyx"], include_dirs=[cuplug.get_include()])
setup(ext_modules=[rows])

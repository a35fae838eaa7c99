# SPDX-License-Identifier: Apache-2.0
"""Print what the Makefile asks of a Python: extension suffix, then include directories."""

import sysconfig

import numpy

paths = sysconfig.get_paths()
print(sysconfig.get_config_var("EXT_SUFFIX"), paths["include"], numpy.get_include())

# SPDX-License-Identifier: Apache-2.0
"""Print the flags by which C finds the headers of this Python and of its NumPy."""

import sysconfig

import numpy

for folder in (sysconfig.get_path("include"), numpy.get_include()):
    print(f'"-I{folder}"')

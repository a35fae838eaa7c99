# SPDX-License-Identifier: Apache-2.0
"""Print the flags by which C finds the headers of this Python and of its NumPy.

NumPy's are reached by a link in the build folder with NumPy's version in its name: pip builds in an
environment that it removes, and the next one is in another folder.
"""

import sys
import sysconfig
from pathlib import Path

import numpy

link = Path(sys.argv[1]).absolute() / f"numpy-{numpy.__version__}"
link.parent.mkdir(parents=True, exist_ok=True)
link.unlink(missing_ok=True)
link.symlink_to(numpy.get_include())
for folder in (sysconfig.get_path("include"), link):
    print(f'"-I{folder}"')

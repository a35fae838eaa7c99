# SPDX-License-Identifier: Apache-2.0
"""Takes the place of each Cython module that `make demo` does not build."""

problem = "not built, since `make demo` builds only what the demo imports; run `make`"
raise ImportError(f"{__name__}: {problem}", name=__name__)

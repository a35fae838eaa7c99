# SPDX-License-Identifier: Apache-2.0
from cuplug.typed cimport gather, view


def gathered(float[:] source, int[:] index, float[:] out):
    with nogil:
        gather(view(source), view(index), view(out))

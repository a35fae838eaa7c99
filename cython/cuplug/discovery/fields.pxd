# SPDX-License-Identifier: Apache-2.0
from cuplug.base cimport core

cdef dict properties_of(const core.cuplug_row *row)

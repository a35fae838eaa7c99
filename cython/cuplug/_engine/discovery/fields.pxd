# SPDX-License-Identifier: Apache-2.0
cimport cuplug._engine.base.core as core

cdef dict properties_of(const core.cuplug_overload *row)

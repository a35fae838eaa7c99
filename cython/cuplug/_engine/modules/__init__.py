# SPDX-License-Identifier: Apache-2.0
"""Functions of tvm-ffi modules, called by that ABI, which is declared here; none of its code."""

# SPDX-License-Identifier: Apache-2.0
"""Functions of tvm-ffi modules. Its ABI is declared here, and none of its code is included."""

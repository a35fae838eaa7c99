# SPDX-License-Identifier: Apache-2.0
"""The GPUs: which one is meant, their memory, their streams, cuplug's own arrays there. Knows no
operator.
"""

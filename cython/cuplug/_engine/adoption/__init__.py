# SPDX-License-Identifier: Apache-2.0
"""Functions of libraries without cuplug tables, as operators."""

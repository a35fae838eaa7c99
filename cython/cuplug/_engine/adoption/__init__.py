# SPDX-License-Identifier: Apache-2.0
"""Functions of libraries that know nothing of cuplug, as operators."""

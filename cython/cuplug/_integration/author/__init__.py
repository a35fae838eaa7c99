# SPDX-License-Identifier: Apache-2.0
"""Tools for plugin authors: building, checking, stubs and typed functions from tables."""

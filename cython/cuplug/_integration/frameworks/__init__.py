# SPDX-License-Identifier: Apache-2.0
"""Shared parts of operators in other libraries: calls without elements, and batches of calls.

Modules for libraries that need no room of their own are also here. None depends on a particular
operator.
"""

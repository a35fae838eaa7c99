# SPDX-License-Identifier: Apache-2.0
"""What operators inside other libraries share: calls without elements, and batches of calls.

Modules for one library that need no room of their own are here, too. Nothing here knows an
operator.
"""

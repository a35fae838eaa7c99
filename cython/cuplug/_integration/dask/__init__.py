# SPDX-License-Identifier: Apache-2.0
"""Operators on dask arrays: tasks for blocks, reductions as trees, and plugins for workers.

No module here depends on a particular operator. `import cuplug` does not import Dask.
"""

# SPDX-License-Identifier: Apache-2.0
"""cuplug's own array, on the host or a GPU: memory, layout, views, exports. Computes nothing."""

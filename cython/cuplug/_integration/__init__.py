# SPDX-License-Identifier: Apache-2.0
"""Other libraries, tools for authors of plugins, the command `cuplug`. It imports any wing."""

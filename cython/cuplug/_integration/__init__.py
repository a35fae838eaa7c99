# SPDX-License-Identifier: Apache-2.0
"""The integration wing: other libraries, authors' tools, the command. Imports any wing."""

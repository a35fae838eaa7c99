# SPDX-License-Identifier: Apache-2.0
"""Memory of the host for large outputs, and how far a long copy is."""

# SPDX-License-Identifier: Apache-2.0
"""Parsed signatures, and their rules about arguments. Uses no files and no arrays."""

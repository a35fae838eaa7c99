# SPDX-License-Identifier: Apache-2.0
"""The engine: arrays and operators, found, checked and called. Imports no other wing."""

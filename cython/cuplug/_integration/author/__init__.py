# SPDX-License-Identifier: Apache-2.0
"""What those who write plugins use: building, checking, stubs and typed functions from tables."""

# SPDX-License-Identifier: Apache-2.0
"""Locations and tables of plugins. None of their code runs, and no operator is created."""

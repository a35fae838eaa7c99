# SPDX-License-Identifier: Apache-2.0
"""Python objects -> arguments of the core, and arrays made for a call."""

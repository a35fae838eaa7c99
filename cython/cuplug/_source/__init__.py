# SPDX-License-Identifier: Apache-2.0
"""The source wing: what is compiled at run time. Imports the engine alone."""

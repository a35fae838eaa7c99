# SPDX-License-Identifier: Apache-2.0
"""The command `cuplug`: nothing else in the package imports what is here."""

# SPDX-License-Identifier: Apache-2.0
"""The command `cuplug`, which uses the package. No other module imports it."""

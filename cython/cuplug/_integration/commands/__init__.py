# SPDX-License-Identifier: Apache-2.0
"""The command `cuplug`, which is a user of the package: nothing else imports it."""

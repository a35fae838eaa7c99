# SPDX-License-Identifier: Apache-2.0
"""`python -m cuplug` is the command `cuplug`."""

from cuplug.commands.cli import main

main(prog_name="cuplug")

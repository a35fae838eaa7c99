# SPDX-License-Identifier: Apache-2.0
"""Paths of the project's folders."""

from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FIXTURES = TESTS / "fixtures"

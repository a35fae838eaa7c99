# SPDX-License-Identifier: Apache-2.0
"""How the workers of xdist divide the tests among them."""

import pytest

# Rooms whose tests run compilers and commands, each for seconds: they fill the end of a run.
ONE_BY_ONE = tuple(f"tests/{room}/" for room in ("author", "commands", "house"))


def unit_of(nodeid: str) -> str:
    """Return the name of the unit of work that a test belongs to: its file, or itself."""
    return nodeid if nodeid.startswith(ONE_BY_ONE) else nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """Give each worker whole files, the largest first, and then single tests.

    Tests of a file use the same fixtures and the same compiled code: two workers would build them
    twice, or wait for each other. With a message for each test, the process that distributes them
    would need more time than many tests.
    """
    if config.getvalue("dist") != "loadgroup":
        return None
    from xdist.scheduler import LoadGroupScheduling

    class FileScheduling(LoadGroupScheduling):
        def _split_scope(self, nodeid: str) -> str:
            scope = super()._split_scope(nodeid)  # the name of its group, or the test itself
            return unit_of(nodeid) if scope == nodeid else scope

    return FileScheduling(config, log)

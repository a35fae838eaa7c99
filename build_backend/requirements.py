# SPDX-License-Identifier: Apache-2.0
"""Print the packages that pyproject.toml names: to build, to run, and of the given extras."""

import sys
import tomllib


def packages(*names: str) -> list[str]:
    """Return the packages of extras and of groups, which are extras that no user asks for."""
    with open("pyproject.toml", "rb") as file:
        settings = tomllib.load(file)
    known = settings["project"]["optional-dependencies"] | settings["dependency-groups"]
    known["build"] = settings["build-system"]["requires"] + settings["project"]["dependencies"]
    return [package for name in names for package in known[name]]


if __name__ == "__main__":
    print(*packages("build", *sys.argv[1:]), sep="\n")

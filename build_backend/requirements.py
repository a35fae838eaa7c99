# SPDX-License-Identifier: Apache-2.0
"""Print the packages that pyproject.toml names: to build, to run, and those of the extras given."""

import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
extras = [project["optional-dependencies"][name] for name in sys.argv[1:]]
print(*settings["build-system"]["requires"], *project["dependencies"], *sum(extras, []), sep="\n")

# SPDX-License-Identifier: Apache-2.0
"""Print the packages that pyproject.toml names: to build, to run, and those of the extras given."""

import sys
import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
packages = settings["build-system"]["requires"] + project["dependencies"]
for extra in sys.argv[1:]:
    packages += project["optional-dependencies"][extra]
print(*packages, sep="\n")

# SPDX-License-Identifier: Apache-2.0
"""Print the packages that pyproject.toml names: to build, to run and to develop."""

import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
packages = settings["build-system"]["requires"] + project["dependencies"]
print(*packages, *project["optional-dependencies"]["dev"], sep="\n")

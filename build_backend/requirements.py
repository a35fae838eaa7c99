# SPDX-License-Identifier: Apache-2.0
"""Print the packages that pyproject.toml names: to build, to run, to write plugins, to develop."""

import tomllib

with open("pyproject.toml", "rb") as file:
    settings = tomllib.load(file)
project = settings["project"]
packages = settings["build-system"]["requires"] + project["dependencies"]
extras = project["optional-dependencies"]
print(*packages, *extras["author"], *extras["dev"], sep="\n")

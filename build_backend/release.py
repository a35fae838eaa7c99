# SPDX-License-Identifier: Apache-2.0
"""Check that everything names one version, and that the changelog tells of it: release.py [TAG]

With a tag, as v0.1.0, the version must be the tag's, and must have a date in the changelog; and the
project must have an address.
"""

import re
import sys
import tomllib
from pathlib import Path

from link import read_version

# Copies of the version, in files that cannot read it from include/cuplug/host.h.
COPIES = {
    "core/cuplug.pc": r"^Version: (.+)$",
    "core/cuplug-config-version.cmake": r'PACKAGE_VERSION "(.+?)"',
    "packaging/conda/recipe.yaml": r'^  version: "([^"]+)"$',
    "packaging/spack/package.py": r'^    version\("(\d[^"]*)"',
}
VERSION = r"\d+\.\d+\.\d+((a|b|rc)\d+)?"


def abi() -> str:
    """Return the ABI of plugins."""
    text = Path("include/cuplug/abi.h").read_text()
    return ".".join(
        re.search(rf"#define CUPLUG_ABI_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR")
    )


def faults_of_changelog(version: str, dated: bool) -> list[str]:
    """Return the errors in the newest section of the changelog."""
    text = Path("CHANGELOG.md").read_text()
    section = re.search(r"^## \[(.+?)\] - (\S+)\n(.*?)(?=^## \[|\Z)", text, re.M | re.S)
    if section is None:
        return ["CHANGELOG.md: expected a section as `## [0.1.0] - 2026-01-31`"]
    named, date, body = section.groups()
    faults = []
    if named != version:
        faults.append(f"CHANGELOG.md: the newest section is {named}, expected {version}")
    if not re.fullmatch(r"\d{4}-\d\d-\d\d", date) and (dated or date != "unreleased"):
        faults.append(f"CHANGELOG.md: the section {named} has {date!r}, expected a date")
    if not re.search(r"^- ", body, re.M):
        faults.append(f"CHANGELOG.md: the section {named} lists no changes")
    if f"Plugin ABI {abi()}" not in body:
        faults.append(f"CHANGELOG.md: the section {named} does not say: Plugin ABI {abi()}")
    return faults


def faults_of_addresses() -> list[str]:
    """Return the errors in the addresses that the pages of package registries show."""
    urls = tomllib.loads(Path("pyproject.toml").read_text())["project"].get("urls", {})
    found = [
        f"pyproject.toml: [project.urls] has {name} = {url!r}, expected https://..."
        for name, url in urls.items()
        if not url.startswith("https://")
    ]
    if not {"source", "repository"} & {name.lower() for name in urls}:
        found.append(
            "pyproject.toml: [project.urls] has no Source, expected the public address of the"
            " repository: who installs a release must find its source, and where to report faults"
        )
    return found


def faults(tag: str | None) -> list[str]:
    """Return all reasons against a release."""
    version = read_version()
    found = faults_of_changelog(version, dated=tag is not None)
    if not re.fullmatch(VERSION, version):
        found.append(f"include/cuplug/host.h: got {version}, expected one as 1.2.3 or 1.2.3rc1")
    if tag is not None:
        found += faults_of_addresses()
        if tag != f"v{version}":
            found.append(f"the tag is {tag}, expected v{version}")
    for path, pattern in COPIES.items():
        seen = re.search(pattern, Path(path).read_text(), re.M)
        if seen is None or seen.group(1) != version:
            found.append(f"{path}: got {seen and seen.group(1)}, expected {version}")
    return found


def main() -> None:
    """Print the faults, or that none were found."""
    found = faults(*(sys.argv[1:] or [None]))
    if found:
        sys.exit("\n".join(found))
    print(f"cuplug {read_version()}, plugin ABI {abi()}: the versions agree")


if __name__ == "__main__":
    main()

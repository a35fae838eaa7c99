# SPDX-License-Identifier: Apache-2.0
"""Releases: one version everywhere, the changelog, recipes, workflows, and the source archive."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from pathlib import Path

import pytest
from places import ROOT

BACKEND = ROOT / "build_backend"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def bounds() -> dict[str, set[str]]:
    """Return the oldest versions that pyproject.toml permits, by packages: of a run and a build."""
    project = PROJECT["project"]
    listed = [*PROJECT["build-system"]["requires"], *project["dependencies"]]
    listed += [x for extra in project["optional-dependencies"].values() for x in extra]
    found: dict[str, set[str]] = {"Python": {project["requires-python"].removeprefix(">=")}}
    names = {"numpy": "NumPy", "cython": "Cython", "torch": "PyTorch", "jax": "JAX", "dask": "Dask"}
    for package in listed:
        name, _, version = package.partition(">=")
        found.setdefault(names.get(name.partition("[")[0], name), set()).add(version)
    return found


def test_the_page_of_versions_is_that_of_the_settings():
    page = (ROOT / "docs" / "compatibility.md").read_text()
    rows = {
        x[0]: x[1:] for x in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.*?) ?\|$", page, re.M)
    }
    tested = PROJECT["tool"]["tested-versions"]
    assert len(tested) == 6
    for name, versions in tested.items():
        oldest, listed, notes = rows[name]
        assert listed == ", ".join(versions)
        assert versions == sorted(versions, key=lambda x: [int(part) for part in x.split(".")])
        named = {oldest, *re.findall(r"(\d+\.\d+) to build", notes)}
        assert named >= bounds()[name], name


def test_the_workflow_tests_the_listed_pythons():
    text = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    (matrix,) = re.findall(r"^ +python: \[(.+)\]$", text, re.M)
    assert re.findall(r'"(.+?)"', matrix) == PROJECT["tool"]["tested-versions"]["Python"]
    wheels = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    (built,) = re.findall(r"^PYTHONS \?= (.+)$", (ROOT / "Makefile").read_text(), re.M)
    listed = re.findall(r"^ +(3\.\d+t?)$", wheels, re.M)
    assert sorted(built.replace("python", "").split()) == sorted(listed)


@pytest.fixture
def copy(tmp_path) -> Path:
    """Return a copy of the files that the checks of a release read."""
    for name in ("core", "include", "packaging"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for name in ("CHANGELOG.md", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def check(folder: Path, *tag: str) -> tuple[int, str]:
    command = [sys.executable, str(BACKEND / "release.py"), *tag]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def version() -> str:
    header = (ROOT / "include" / "cuplug" / "host.h").read_text()
    return re.search(r'#define CUPLUG_VERSION "(.+)"', header).group(1)


def test_the_versions_agree():
    status, said = check(ROOT)
    assert (status, said.endswith(": the versions agree\n")) == (0, True), said


@pytest.mark.parametrize(
    ("file", "new", "said"),
    [
        (
            "packaging/conda/recipe.yaml",
            "9.0.0",
            "packaging/conda/recipe.yaml: got 9.0.0, expected",
        ),
        ("packaging/spack/package.py", "9.0.0", "packaging/spack/package.py: got 9.0.0, expected"),
        ("CHANGELOG.md", "9.0.0", "the newest section is 9.0.0, expected"),
        ("include/cuplug/host.h", "nine", "got nine, expected one as 1.2.3"),
    ],
)
def test_a_version_that_differs_is_named(copy, file, new, said):
    place = {"CHANGELOG.md": f"[{version()}]"}.get(file, f'"{version()}"')
    change(copy / file, place, place.replace(version(), new))
    status, text = check(copy)
    assert status == 1
    assert said in text


def set_addresses(folder: Path, *lines: str) -> None:
    """Give the project these addresses, and no other."""
    text = (folder / "pyproject.toml").read_text()
    text = re.sub(r"^\[project\.urls\]\n(.+\n)*", "", text, flags=re.M)
    text += "\n".join(["", "[project.urls]", *lines, ""])
    (folder / "pyproject.toml").write_text(text)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('Documentation = "https://example.org/docs"', "[project.urls] has no Source, expected"),
        (
            'Source = "git@example.org:cuplug"',
            "has Source = 'git@example.org:cuplug', expected http",
        ),
        ('Repository = "https://example.org/cuplug"', ""),
    ],
)
def test_a_release_wants_a_public_address(copy, line, said):
    set_addresses(copy, line)
    assert check(copy)[0] == 0
    seen = [text for text in check(copy, f"v{version()}")[1].split("\n") if "pyproject" in text]
    assert len(seen) == bool(said)
    assert said in "".join(seen)


def test_a_tag_wants_a_date(copy):
    set_addresses(copy, 'Source = "https://example.org/cuplug"')
    changelog = (copy / "CHANGELOG.md").read_text()
    head = re.search(r"^## \[.*$", changelog, re.M).group()
    change(copy / "CHANGELOG.md", head, f"## [{version()}] - unreleased")
    assert check(copy)[0] == 0
    assert "has 'unreleased', expected a date" in check(copy, f"v{version()}")[1]
    change(copy / "CHANGELOG.md", "] - unreleased", "] - 2026-01-31")
    assert check(copy, f"v{version()}")[0] == 0
    assert f"the tag is v0.0.1, expected v{version()}" in check(copy, "v0.0.1")[1]


def test_the_changelog_names_the_abi_and_lists_changes(copy):
    change(copy / "include" / "cuplug" / "abi.h", "CUPLUG_ABI_MINOR ", "CUPLUG_ABI_MINOR 7")
    assert "does not say: Plugin ABI 2.7" in check(copy)[1]
    (copy / "CHANGELOG.md").write_text(f"## [{version()}] - 2026-01-31\n\nNothing.\n")
    assert "lists no changes" in check(copy)[1]
    (copy / "CHANGELOG.md").write_text("# Changelog\n")
    assert "expected a section as" in check(copy)[1]


def needs(package: str) -> str:
    """Return the name of a requirement in other package managers."""
    return re.split(r"[<>=]", package)[0].replace("_", "-")


@pytest.mark.parametrize("file", ["conda/recipe.yaml", "nix/package.nix", "spack/package.py"])
def test_recipes_name_what_the_package_needs(file):
    text = (ROOT / "packaging" / file).read_text().replace("_", "-")
    for package in [*PROJECT["build-system"]["requires"], *PROJECT["project"]["dependencies"]]:
        assert needs(package) in text
        if file != "nix/package.nix":
            bound = package.split(">=")[1]
            assert re.search(rf"{needs(package)}( >=|@){re.escape(bound)}\b", text), package


def test_the_nix_expression_reads_the_version():
    if shutil.which("nix-instantiate") is None:
        pytest.skip("needs nix-instantiate")
    code = f"""
let lib = {{ cleanSource = x: x; optionals = c: x: []; licenses.asl20 = 1; platforms.linux = 1; }};
in (import {ROOT}/packaging/nix/package.nix {{
  inherit lib; buildPythonPackage = x: x; config = {{ }}; pythonOlder = x: false; setuptools = 1;
  cython = 1; numpy = 1; ml-dtypes = 1; click = 1; rich = 1; pyelftools = 1;
}}).version"""
    command = ["nix-instantiate", "--eval", "--expr", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout == f'"{version()}"\n', done.stderr


def test_the_conda_recipe_renders():
    rattler = pytest.importorskip("rattler_build")
    text = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text()
    assert rattler.Stage0Recipe.from_yaml(text) is not None


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_ask_for_targets_that_there_are(path):
    yaml = pytest.importorskip("yaml")
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M))
    targets |= set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split())
    jobs = yaml.safe_load(path.read_text())["jobs"]
    asked = []
    for job in jobs.values():
        for step in job["steps"]:
            assert "uses" not in step or re.search(r"@[0-9a-f]{40}$", step["uses"])
            if (run := step.get("run", "")).startswith("make"):
                asked += [word for word in run.split()[1:] if "=" not in word]
    assert set(asked) <= targets
    assert asked


def pack(source: Path, out: Path) -> Path:
    """Build the source archive like pip, in an environment with the build requirements."""
    code = "import sys; sys.path.insert(0, 'build_backend'); import backend; "
    code += f"print(backend.build_sdist({str(out)!r}))"
    out.mkdir()
    variables = {key: value for key, value in os.environ.items() if key != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=source, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.split()[-1]


@pytest.mark.slow
def test_source_archives_have_all_files_and_the_same_bytes(tmp_path):
    pytest.importorskip("setuptools", "77.0.3")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("needs a checkout")
    files = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    archives = []
    for name in ("one", "other"):
        for file in files:
            copied = tmp_path / name / file
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, copied)
            os.utime(copied, (time.time(), 1e9 if name == "one" else 1.1e9))
            copied.chmod(0o644 if name == "one" else 0o664)
        archives.append(pack(tmp_path / name, tmp_path / f"{name}.out"))
    with tarfile.open(archives[0]) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
    assert set(files) - names == {".gitignore"}
    assert archives[0].name == f"cuplug-{version()}.tar.gz"
    assert archives[0].read_bytes() == archives[1].read_bytes()

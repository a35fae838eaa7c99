# SPDX-License-Identifier: Apache-2.0
"""The command `cuplug`: installed plugins, their directories, and problems."""

from __future__ import annotations

import math
import sys
from typing import Any

import click

from cuplug import __version__
from cuplug._engine.base import flags
from cuplug._integration.commands.generating import adopt, bind, json_option, stubs
from cuplug._source.compilers import aliases
from cuplug.errors import CudaError, NotFoundError, PluginError

EXIT_FINE = 0
EXIT_PROBLEM = 1
REFUSALS = (NotFoundError, PluginError, CudaError, ImportError, OSError, ValueError)

set_option = click.option(
    "--set", "said", multiple=True, metavar="NAME=VALUE", help="A scalar, choice or size."
)


class Commands(click.Group):
    """Commands that report rejected input in one sentence."""

    def invoke(self, context: click.Context) -> Any:
        """Turn an error into one sentence and exit status 1."""
        try:
            return super().invoke(context)
        except BrokenPipeError:
            raise
        except REFUSALS as error:
            click.echo(f"cuplug: {error}", err=True)
            sys.exit(EXIT_PROBLEM)


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="cuplug", message="%(prog)s %(version)s")
@click.option("--cflags", is_flag=True, help="Print the flags that compile a plugin.")
@click.option("--nvcc", is_flag=True, help="With --cflags: spell them for nvcc.")
@click.option("--libs", is_flag=True, help="Print the flags that link a C program.")
@click.option("--cmake", is_flag=True, help="Print the directory for CMake's cuplug_DIR.")
@click.pass_context
def main(context: click.Context, cflags: bool, nvcc: bool, libs: bool, cmake: bool) -> None:
    """CUDA operators from shared libraries.

    \b
    Compile and use a plugin:
      gcc $(cuplug --cflags) half.c -o libhalf.so
      nvcc $(cuplug --cflags --nvcc) half.cu -o libhalf.so
      LD_LIBRARY_CUPLUG_PATH=$PWD cuplug list

    `cuplug help` has the documents.
    """
    if nvcc and not cflags:
        raise click.UsageError("--nvcc goes with --cflags")
    options = flags.plugin_flags(nvcc) if cflags else []
    options += flags.host_flags() if libs else []
    parts = [aliases.command_line(options)] if options else []
    parts += [flags.get_cmake_path()] if cmake else []
    if parts:
        click.echo(" ".join(parts))
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (adopt, bind, stubs):
    main.add_command(command)


@main.command("list")
@click.option(
    "--all", "everything", is_flag=True, help="Also list libraries without a symbol table."
)
@click.option(
    "--locked",
    is_flag=False,
    flag_value="cuplug.lock",
    type=click.Path(),
    metavar="[FILE]",
    help="Compare with FILE, or cuplug.lock, as `cuplug lock` wrote it.",
)
@json_option
def list_command(everything: bool, locked: str | None, as_json: bool) -> None:
    """List the plugins on the search path, and those that are not used, with the reason."""
    from cuplug._integration.commands import report

    if locked is None:
        report.show_plugins(everything, as_json)
    elif not report.show_locked(locked, as_json):
        sys.exit(EXIT_PROBLEM)


@main.command()
@click.argument("operators", nargs=-1)
@click.option(
    "-o",
    "output",
    type=click.Path(dir_okay=False),
    default="cuplug.lock",
    show_default=True,
    help="The file to write.",
)
@json_option
def lock(operators: tuple[str, ...], output: str, as_json: bool) -> None:
    """Write digests of the plugins of OPERATORS, or of all, and of the libraries they link.

    `cuplug list --locked` compares later; as CUPLUG_ALLOW_LIST, the file keeps other plugins out.
    """
    from cuplug._integration.commands import report

    report.show_lock(operators, output, as_json)


@main.command()
@click.argument("operator")
@json_option
def info(operator: str, as_json: bool) -> None:
    """Show all about one OPERATOR ("gather" or "plugin.gather")."""
    from cuplug._integration.commands import report

    report.show_operator(operator, as_json)


@main.command()
@json_option
def path(as_json: bool) -> None:
    """Show the directories that are searched for plugins, in order."""
    from cuplug._integration.commands import report

    report.show_search_path(as_json)


@main.command()
@click.argument("file", type=click.Path())
@json_option
def check(file: str, as_json: bool) -> None:
    """Check the build contract of a plugin FILE, or those in a folder, without running them."""
    from cuplug._integration.commands import report

    sys.exit(EXIT_FINE if report.show_checked(file, as_json) else EXIT_PROBLEM)


@main.command()
@click.argument("file", type=click.Path())
@click.option("--to", "folder", type=click.Path(), help="The folder to put it into.")
@json_option
def install(file: str, folder: str | None, as_json: bool) -> None:
    """Check a plugin FILE, or the one in a folder, and put it where plugins are found.

    That is the first folder of LD_LIBRARY_CUPLUG_PATH that you may write, else your own.
    """
    from cuplug._integration.commands import install as installing

    installing.show_installed(installing.install(file, folder), as_json)


@main.command()
@click.argument("name")
@json_option
def uninstall(name: str, as_json: bool) -> None:
    """Remove the plugin NAME from the first folder of yours that has it."""
    from cuplug._integration.commands import install as installing

    installing.show_uninstalled(installing.uninstall(name), as_json)


@main.command()
@json_option
def doctor(as_json: bool) -> None:
    """Examine this machine: driver, GPUs, toolkit, plugins, permissions, settings."""
    from cuplug._integration.commands import doctor as doctors
    from cuplug._integration.commands import output

    findings = doctors.examine()
    failed = any(finding.level == doctors.PROBLEM for finding in findings)
    if as_json:
        listed = [finding.as_dict() for finding in findings]
        output.print_json({"ok": not failed, "findings": listed})
    else:
        output.print_findings((f.level, f.topic, f.text, f.advice) for f in findings)
    sys.exit(EXIT_PROBLEM if failed else EXIT_FINE)


@main.command("help")
@click.argument("topic", required=False)
@click.pass_context
def help_command(context: click.Context, topic: str | None) -> None:
    """Show a page of the documents, or a part of one; without TOPIC, what there is."""
    from cuplug._integration.commands import report

    command = main.commands.get(topic or "")
    if command:
        with click.Context(command, parent=context.find_root(), info_name=topic) as inner:
            click.echo(command.get_help(inner))
    elif topic:
        report.show_topic(topic, list(main.commands))
    else:
        report.show_topics()


@main.command("cache")
@click.argument("what", type=click.Choice(["show", "clear", "path"]), default="show")
@json_option
def cache_command(what: str, as_json: bool) -> None:
    """Show the cache of code compiled at run time, clear it, or print its directory."""
    from cuplug._integration.commands import report

    report.show_cache(what, as_json)


@main.command()
@click.argument("name")
@click.argument("operator", required=False)
@click.option("--package", is_flag=True, help="A Python package with the plugin, to be installed.")
@click.option(
    "--build-backend",
    "back_end",
    type=click.Choice(["setuptools", "scikit-build-core"]),
    default="setuptools",
    show_default=True,
    help="The build backend of the package.",
)
@click.option(
    "--language",
    type=click.Choice(["cuda", "c"]),
    default="cuda",
    show_default=True,
    help="CUDA and C++, or C for only the CPU.",
)
def new(name: str, operator: str | None, package: bool, back_end: str, language: str) -> None:
    """Write the folder NAME with a plugin, ready to build and to edit, and a test.

    The plugin of a package is called OPERATOR, or as the package is.
    """
    from cuplug._integration.commands import authoring, scaffold

    if operator and not package:
        raise click.UsageError("OPERATOR goes with --package")
    try:
        if package:
            files = scaffold.write_package(name, operator or name, back_end, ".", language)
        else:
            files = scaffold.write_plugin(name, ".", language)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    authoring.show_new(name, files, package)


@main.command()
@click.argument("source", type=click.Path())
@click.argument("options", nargs=-1)
@click.option("-o", "output", type=click.Path(), help="The library, or the folder for it.")
@click.option(
    "--arch",
    default="native",
    envvar="CUPLUG_ARCH",
    help='"native", "all", or numbers: "80,90"; default: $CUPLUG_ARCH.',
)
@click.option("--watch", is_flag=True, help="Build again when a source changes.")
def build(
    source: str, options: tuple[str, ...], output: str | None, arch: str, watch: bool
) -> None:
    """Compile SOURCE, a .cu, .c or .cpp file or a folder of them, to lib<plugin>.so.

    OPTIONS after -- are passed to the compilers.
    """
    from cuplug._integration.author.sources import BuildError
    from cuplug._integration.commands import authoring

    if watch:
        authoring.check_watching()
    try:
        for built in authoring.build_and_show(source, output, arch, options):
            authoring.show_next(built)
    except BuildError as error:
        if not watch:
            raise
        click.echo(f"cuplug: {error}", err=True)
    if watch:
        authoring.watch(source, output, arch, options)


@main.command()
@click.argument("what", metavar="FILE.so|FOLDER|OPERATOR")
@click.option(
    "--examples",
    default=30,
    show_default=True,
    type=click.IntRange(1),
    help="Random calls for each property.",
)
@click.option("--seed", default=0, help="Chooses the random calls.")
@click.option("--budget", default=math.inf, help="Seconds for all checks.")
@click.option("--fixture", default="", help="A Python file with functions that make arguments.")
@set_option
@json_option
def test(
    what: str, examples: int, seed: int, said: tuple[str, ...], as_json: bool, **how: Any
) -> None:
    """Run property tests, derived from the signatures, on a plugin or an operator.

    It runs the plugin's code, in separate processes. --set k=3, or a range as in --set k=0..8,
    sets k in all calls. A fixture makes indices, addresses and handles.
    """
    from cuplug._integration.commands import authoring, output, overrides, property_runner

    with authoring.progress(f"test {what}"):
        pins = overrides.split("--set", said)
        results = property_runner.try_all(what, examples, seed, pins, **how)
    failed = any(not result.ok for result in results)
    if as_json:
        listed = [result.as_dict() for result in results]
        output.print_json({"ok": not failed, "results": listed})
    else:
        authoring.show_results(results, how["budget"])
    sys.exit(EXIT_PROBLEM if failed else EXIT_FINE)


@main.command()
@click.argument("what", metavar="FILE.so|FOLDER|OPERATOR")
@click.option("--dtype", help="The dtype of arrays that may have it; default: float32 if allowed.")
@click.option(
    "--shape", "shapes", multiple=True, metavar="NAME=SIZES", help="Of an array: x=1024,1024."
)
@set_option
@click.option("-o", "picture", type=click.Path(), help="Draw a picture: FILE.svg or FILE.png.")
@json_option
def bench(
    what: str,
    dtype: str | None,
    shapes: tuple[str, ...],
    said: tuple[str, ...],
    picture: str | None,
    as_json: bool,
) -> None:
    """Measure the bandwidth of an operator over sizes, compared with a copy.

    It runs the plugin's code. Of a plugin that is the operator of its name, or its first one.
    """
    from cuplug._integration.commands import (
        authoring,
        bandwidth,
        output,
        overrides,
        property_runner,
    )

    found = bandwidth.find_operator(what)
    try:
        if picture:
            bandwidth.check_picture(picture)
        given = overrides.split("--shape", shapes), overrides.split("--set", said)
        with authoring.progress(f"measure {found.name}"):
            measured = bandwidth.measure(found, dtype, *given)
        if picture:
            bandwidth.draw(found.name, measured, picture)
    except (TypeError, ValueError) as error:
        raise click.BadParameter(str(error)) from None
    if as_json:
        output.print_json({"operator": found.name, "measurements": [x.as_dict() for x in measured]})
    else:
        authoring.show_bandwidth(measured)
        if set(found.sides) - {row.side for row in measured}:
            click.echo(f"not measured on cuda: {property_runner.NO_GPU}", err=True)

# SPDX-License-Identifier: Apache-2.0
"""The command `cuplug`: installed plugins, their directories, and problems."""

from __future__ import annotations

import math
import sys
from typing import Any

import click

from cuplug import __version__
from cuplug._engine.base import flags
from cuplug._integration.commands.generating import (
    adopt,
    bind,
    build,
    complete_files,
    complete_operators,
    complete_plugins,
    json_option,
    lock,
    new,
    stubs,
)
from cuplug._source.compilers import cache
from cuplug.errors import CudaError, NotFoundError, PluginError

EXIT_FINE = 0
EXIT_PROBLEM = 1
REFUSALS = (NotFoundError, PluginError, CudaError, ImportError, OSError, ValueError)

set_option = click.option(
    "--set", "said", multiple=True, metavar="NAME=VALUE", help="A scalar, choice or size."
)


class Commands(click.Group):
    """Commands that report rejected input in one message."""

    def invoke(self, context: click.Context) -> Any:
        """Convert an error to a message and exit status 1."""
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
    parts = [*map(cache.without_spaces, options)]
    parts += [flags.get_cmake_path()] if cmake else []
    if parts:
        click.echo(" ".join(parts))
    elif context.invoked_subcommand is None:
        click.echo(context.get_help())


for command in (adopt, bind, build, lock, new, stubs):
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
@click.option(
    "--signers",
    type=click.Path(),
    metavar="FILE",
    help="With --locked: require a signature of a key in FILE, an allowed_signers file of OpenSSH.",
)
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write a page for a browser: plugins, operators to search, and kernels.",
)
@json_option
def list_command(
    everything: bool, locked: str | None, signers: str | None, page: str | None, as_json: bool
) -> None:
    """List the plugins on the search path, and those that are not used, with the reason."""
    from cuplug._integration.commands import listing

    if signers is not None and locked is None:
        raise click.UsageError("--signers goes with --locked")
    if page is not None:
        listing.write_page(page)
    elif locked is None:
        listing.show_plugins(everything, as_json)
    elif not listing.show_locked(locked, signers, as_json):
        sys.exit(EXIT_PROBLEM)


@main.command()
@click.argument("operator", shell_complete=complete_operators)
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
@click.argument("name", shell_complete=complete_plugins)
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


@main.command()
@json_option
def env(as_json: bool) -> None:
    """Show the variables of the environment: values in effect, their sources, and defaults."""
    from cuplug._integration.commands import doctor as doctors
    from cuplug._integration.commands import output

    found = doctors.variables()
    if as_json:
        output.print_json({"variables": [x.as_dict() for x in found]})
    else:
        columns = ("variable", "value", "source", "default")
        others = [x for x in found if x.source == "unknown"]
        output.print_table(columns, ((x.name, x.value, x.source, x.default) for x in found))
        output.print_lines(f"{x.name} is not a variable of cuplug; {x.meaning}" for x in others)


@main.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script for SHELL that completes commands, operators, plugins and topics.

    \b
      eval "$(cuplug completion bash)"
    """
    from click.shell_completion import get_completion_class

    if kind := get_completion_class(shell):
        click.echo(kind(main, {}, "cuplug", "_CUPLUG_COMPLETE").source())


def _complete_topics(context: click.Context, parameter: click.Parameter, text: str) -> list[str]:
    from cuplug._integration.author import doc_pages

    pages = doc_pages.read_pages()
    topics = [*(x.name for x in pages), *main.commands]
    topics += [part for page in pages for part in page.sections()] if text else []
    return sorted({x for x in topics if x.startswith(text)})


@main.command("help")
@click.argument("topic", required=False, shell_complete=_complete_topics)
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


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("folder", type=click.Path(file_okay=False, writable=True))
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED)
def warm(folder: str, program: tuple[str, ...]) -> None:
    """Run PROGRAM, and copy the code that it compiles, or has from the cache, to FOLDER.

    Ship the folder with an application, and set CUPLUG_WARM_PATH to it. The application then needs
    no compilers on machines with the same processor instructions and GPU architectures.

    Example: cuplug warm compiled python application.py
    """
    from cuplug._integration.commands import report

    sys.exit(report.show_warm(folder, program))


@main.command("cache")
@click.argument("what", type=click.Choice(["show", "clear", "path"]), default="show")
@json_option
def cache_command(what: str, as_json: bool) -> None:
    """Show the cache of code compiled at run time, clear it, or print its directory."""
    from cuplug._integration.commands import report

    report.show_cache(what, as_json)


@main.command()
@click.argument("what", metavar="FILE.so|FOLDER|OPERATOR", shell_complete=complete_files)
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

    pins = overrides.split("--set", said)
    with authoring.progress(f"test {what}") as line:

        def report(number: int, n: int, name: str) -> None:
            line.update(f"test {what}: signature {number} of {n}, {name}")

        results = property_runner.try_all(what, examples, seed, pins, report=report, **how)
    failed = any(not result.ok for result in results)
    if as_json:
        listed = [result.as_dict() for result in results]
        output.print_json({"ok": not failed, "results": listed})
    else:
        authoring.show_results(results, how["budget"])
    sys.exit(EXIT_PROBLEM if failed else EXIT_FINE)


@main.command()
@click.argument("what", metavar="FILE.so|FOLDER|OPERATOR", shell_complete=complete_files)
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
        if set(found.device_types) - {row.device_type for row in measured}:
            click.echo(f"not measured on cuda: {property_runner.NO_GPU}", err=True)

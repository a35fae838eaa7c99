# SPDX-License-Identifier: Apache-2.0
"""Commands that write files: descriptions, typed functions, stubs, locks, new plugins, builds."""

from __future__ import annotations

import json

import click
from click.shell_completion import CompletionItem

json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


def complete_operators(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Return the operators that begin with a text or, after "plugin.", that a plugin has."""
    import cuplug

    used = [x for x in cuplug.plugins() if x.state == "ok"]
    if "." in text:
        names = {f"{x.name}.{operator}" for x in used for operator in x.operators}
    else:
        names = {operator for x in used for operator in x.operators}
    return [CompletionItem(x) for x in sorted(names) if x.startswith(text)]


def complete_plugins(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Return the plugins that begin with a text."""
    import cuplug

    names = {x.name for x in cuplug.plugins() if x.state == "ok"}
    return [CompletionItem(x) for x in sorted(names) if x.startswith(text)]


def complete_files(
    context: click.Context, parameter: click.Parameter, text: str
) -> list[CompletionItem]:
    """Return operators and, from the shell, files and folders."""
    return [CompletionItem(text, type="file"), *complete_operators(context, parameter, text)]


@click.command()
@click.argument("header")
@click.argument("functions", nargs=-1)
@click.option("-I", "folders", multiple=True, help="A folder with headers; may be given again.")
@json_option
def adopt(header: str, functions: tuple[str, ...], folders: tuple[str, ...], as_json: bool) -> None:
    """Write a description of a library, with operators for FUNCTIONS of its HEADER.

    The operators are guesses. Without FUNCTIONS, list the header's, each with the signature
    of its operator, or the reason for none.

    Example: cuplug adopt math.h hypot
    """
    from cuplug._engine.adoption.header_functions import describe, read_header
    from cuplug._integration.commands.output import print_json, print_lines, print_table

    found = read_header(header, tuple(f"-I{x}" for x in folders))
    own = [x for x in found if found[x].is_own]
    described = describe(found, functions or own)
    if as_json:
        print_json({"prototypes": described.prototypes, **described.operators})
    elif not functions:
        said = {x: told["signature"] for x, told in described.operators.items()}
        said |= {x: f"none: {why}" for x, why in described.refused.items()}
        print_table(("function", "operator"), [(x, said[x]) for x in own])
    else:
        print_lines(
            [
                f"# Guessed from the prototypes of {header}. Check which arrays a function writes,",
                "# how many elements they have, and what it returns.",
                f"prototypes = '''\n{described.prototypes}\n'''",
            ]
        )
        for name, told in described.operators.items():
            print_lines([f"\n[{name}]", *(f"{x} = {json.dumps(y)}" for x, y in told.items())])
        print_lines(f"# {name}: {why}" for name, why in described.refused.items())


@click.command()
@click.argument("file", type=click.Path())
@click.option(
    "-o",
    "directory",
    default=".",
    type=click.Path(file_okay=False),
    help="The directory for the output.",
)
@click.option("--name", help="The module's name; default: <plugin>_typed.")
@click.option("--only", multiple=True, help="An operator; may be repeated. Default: all.")
@json_option
def bind(file: str, directory: str, name: str | None, only: tuple[str, ...], as_json: bool) -> None:
    """Write typed functions for Cython code from the table of a plugin FILE.

    Of a folder with several plugins, a module for each.
    """
    from cuplug._integration.commands import report

    report.show_bound(file, directory, name, only, as_json)


@click.command()
@click.argument("files", metavar="FILE.so|FOLDER...", nargs=-1, required=True)
@click.option(
    "-o",
    "directory",
    default=".",
    type=click.Path(file_okay=False),
    help="The directory for the output.",
)
@click.option("--name", help="The module's name; default: that of the first plugin.")
@json_option
def stubs(files: tuple[str, ...], directory: str, name: str | None, as_json: bool) -> None:
    """Write type stubs, NAME.pyi, for a module that has the operators of plugins."""
    from cuplug._integration.commands import report

    report.show_stubs(files, directory, name, as_json)


@click.command()
@click.argument("operators", nargs=-1, shell_complete=complete_operators)
@click.option(
    "-o",
    "output",
    type=click.Path(dir_okay=False),
    default="cuplug.lock",
    show_default=True,
    help="The file to write.",
)
@click.option(
    "--sign",
    "key",
    type=click.Path(dir_okay=False),
    metavar="KEY",
    help="Sign the file with an SSH key; for a public one, the agent signs.",
)
@json_option
def lock(operators: tuple[str, ...], output: str, key: str | None, as_json: bool) -> None:
    """Write digests of the plugins of OPERATORS, or of all, and of the libraries they link.

    `cuplug list --locked` compares later; as CUPLUG_ALLOW_LIST, the file keeps other plugins out.
    """
    from cuplug._integration.commands import listing

    listing.show_lock(operators, output, key, as_json)


@click.command()
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


@click.command()
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

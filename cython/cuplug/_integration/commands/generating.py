# SPDX-License-Identifier: Apache-2.0
"""Commands that write what others read: descriptions of libraries, typed functions, stubs."""

from __future__ import annotations

import json

import click

json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


@click.command()
@click.argument("header")
@click.argument("functions", nargs=-1)
@click.option("-I", "folders", multiple=True, help="A folder with headers; may be given again.")
@json_option
def adopt(header: str, functions: tuple[str, ...], folders: tuple[str, ...], as_json: bool) -> None:
    """Write a description of a library, with operators for FUNCTIONS of its HEADER.

    The operators are guesses. Without FUNCTIONS, list those of the header, each with the signature
    of its operator, or why there is none.
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

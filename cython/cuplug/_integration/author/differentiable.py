# SPDX-License-Identifier: Apache-2.0
"""Checks of a table's gradient properties against its signatures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuplug._engine.discovery.table import Row, Table
from cuplug._engine.signature.gradient import (
    has_gradients,
    linear_in,
    linear_names,
    match_gradient,
)
from cuplug._engine.signature.signature import Signature, SignatureError, parse

__all__ = ["wrong_gradients"]

NAME = re.compile(r"([A-Za-z_]\w*\.)?[A-Za-z_]\w*", re.ASCII)


def wrong_gradients(table: Table) -> Iterator[tuple[str, str]]:
    """Yield the errors in the properties `gradient` and `linear`, each with its remedy."""
    signatures = {row.signature: _parsed(row) for row in table.rows}
    for row in table.rows:
        signature = signatures[row.signature]
        if signature is not None:
            yield from _wrong_linear(row, signature)
            yield from _wrong_gradient(table, signatures, row, signature)


def _parsed(row: Row) -> Signature | None:
    try:
        return parse(row.signature)
    except SignatureError:
        return None


def _wrong_linear(row: Row, signature: Signature) -> Iterator[tuple[str, str]]:
    arrays = [x.name for x in signature.parameters if has_gradients(signature, x)]
    for name in linear_names(row.properties.get("linear")):
        if name not in arrays:
            wanted = f"one of {', '.join(arrays)}" if arrays else "nothing: there is none"
            yield (
                f"{row.operator} is linear in {name}, which is no array of floating or complex "
                f"numbers, expected {wanted}",
                "name arrays in CUPLUG_LINEAR(...)",
            )


def _wrong_gradient(
    table: Table, signatures: dict[str, Signature | None], row: Row, signature: Signature
) -> Iterator[tuple[str, str]]:
    name = row.properties.get("gradient")
    if "gradient" not in row.properties:
        return
    if not NAME.fullmatch(name or ""):
        yield (
            f'{row.operator} names the gradient "{name or ""}", expected '
            "operator or plugin.operator",
            "write CUPLUG_GRADIENT(operator)",
        )
        return
    plugin, _, operator = (name or "").rpartition(".")
    if plugin not in ("", table.name):
        return
    rows = [other for other in table.rows if other.operator == operator]
    if not rows:
        yield (
            f"{row.operator} names the gradient {name}, which is no operator of this plugin",
            "add it, or write plugin.operator for one of another plugin",
        )
        return
    parsed = [other for other in (signatures[x.signature] for x in rows) if other]
    try:
        if len(parsed) == len(rows):
            match_gradient(signature, parsed, linear_in(x.properties for x in rows))
    except ValueError as error:
        yield f"the gradient of {row.operator} does not fit: {error}", "see `cuplug help gradients`"

# SPDX-License-Identifier: Apache-2.0
"""The generated enums for choices of typed functions."""

import pytest
from cuplug._engine.signature.signature import parse
from cuplug._integration.author.memoryviews import Module, add_plugin, write


def enums_of(*signatures):
    module = Module()
    add_plugin(module, "plugin", [parse(text) for text in signatures])
    lines = write(module, "").splitlines()
    return [
        x for x in lines if x.startswith(("cdef enum", "    f_", "    if value", "        ret"))
    ]


def test_choices_are_enums():
    lines = enums_of("f(x: int8[n], m: 'a' | '0-b')", 'f(m: "0-b" | "it\'s")')
    assert lines == [
        "cdef enum f_m:",
        "    f_m_a",
        "    f_m_0_b",
        "    f_m_it_s",
        "    if value == f_m_a:",
        "        return b'a'",
        "    if value == f_m_0_b:",
        "        return b'0-b'",
        "    if value == f_m_it_s:",
        '        return b"it\'s"',
    ]


@pytest.mark.parametrize(
    "signatures",
    [
        ["f(x: int8[n], m: 'a-b' | 'a b')"],  # one name for both
        ["f(x: int8[n], m: 'a' | 'b')", "f_m(x: int8[n])"],  # the name of an operator
        ["f(x: int8[n], m: 'a' | 'b')", "f_m_b(x: int8[n])"],
    ],
)
def test_choices_without_names_of_their_own_have_no_enum(signatures):
    assert not [x for x in enums_of(*signatures) if "enum" in x]

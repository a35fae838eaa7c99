# SPDX-License-Identifier: Apache-2.0
"""Files and tables that are rejected: one message for each, and no code is run."""

import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path

import cuplug
import numpy
import pytest
from builds import COMPILER, compile_library
from places import ROOT
from raw_plugins import assert_refused, compile_fixture, listed, named_plugin, quoted

pytestmark = pytest.mark.usefixtures("place")


# ---- Files that are no plugins -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "got an empty file, expected a shared object"),
        (
            b"#!/bin/sh\n",
            'got a file that begins with "#!/bin/sh.", expected an ELF shared object',
        ),
        (b"\x7fEL", "truncated: the file ends in its ELF header"),
        (b"\x7fELF\x02\x01\x01".ljust(63, b"\0"), "truncated: the file ends in its ELF header"),
        (
            b"\x7fELF\x01\x01\x01".ljust(99, b"\0"),
            "got a 32-bit object, expected a 64-bit shared object",
        ),
        (b"\x7fELF\x07\x01\x01".ljust(99, b"\0"), "got ELF class 7, expected class 2 (64-bit)"),
    ],
)
def test_content_that_is_no_library(place, content, reason):
    path = place / "libx.so"
    path.write_bytes(content)
    assert_refused(path, reason)


def elf_patched(image, offset, layout, value):
    """Return an ELF image with one field replaced."""
    patched = bytearray(image)
    struct.pack_into(layout, patched, offset, value)
    return bytes(patched)


@pytest.mark.parametrize(
    ("offset", "layout", "value", "reason"),
    [
        (5, "B", 2, "got an object of the other byte order, expected this machine's"),
        (18, "<H", 8, "got code for MIPS (ELF machine 8), expected {this}"),
        (18, "<H", 9999, "got code for unknown (ELF machine 9999), expected {this}"),
        (
            16,
            "<H",
            1,
            "got an object file, as compilers write with -c, expected a shared object; "
            "link it with -shared",
        ),
        (16, "<H", 2, "got ELF type 2 (executable), expected a shared object (type 3)"),
        (16, "<H", 77, "got ELF type 77 (unknown), expected a shared object (type 3)"),
        (56, "<H", 0, "got 0 program headers of 56 bytes, expected 1 to 128 of 56"),
        (54, "<H", 55, "got {n} program headers of 55 bytes, expected 1 to 128 of 56"),
    ],
)
def test_elf_header(place, good_file, offset, layout, value, reason):
    image = good_file.read_bytes()
    machine = struct.unpack_from("<H", image, 18)[0]
    this = {62: "x86-64 (62)", 183: "AArch64 (183)"}[machine]
    (n,) = struct.unpack_from("<H", image, 56)
    path = place / "libraw.so"
    path.write_bytes(elf_patched(image, offset, layout, value))
    assert_refused(path, reason.format(this=this, n=n))


def program_headers(image):
    """Return (offset in the image, type, offset in the file) of each program header."""
    (start,) = struct.unpack_from("<Q", image, 32)
    (n,) = struct.unpack_from("<H", image, 56)
    places = [start + 56 * k for k in range(n)]
    return [
        (at, *struct.unpack_from("<I", image, at), *struct.unpack_from("<Q", image, at + 8))
        for at in places
    ]


def test_program_headers_past_the_end(place, good_file):
    path = place / "libraw.so"
    image = good_file.read_bytes()
    path.write_bytes(elf_patched(image, 32, "<Q", 2**64 - 8))
    assert listed(path).reason.startswith("truncated: ")


def test_offset_that_would_wrap_around(place, good_file):
    image = good_file.read_bytes()
    for at, kind, _ in program_headers(image):
        if kind == 4:
            image = elf_patched(image, at + 8, "<Q", 2**64 - 4)
    path = place / "libraw.so"
    path.write_bytes(image)
    assert listed(path).reason.startswith("truncated: segment ")


def test_truncated_anywhere(place, good_file):
    """Every shorter file is rejected, with a reason; none is loaded."""
    image = good_file.read_bytes()
    path = place / "libraw.so"
    for size in [*range(0, 4096, 97), *range(4096, len(image), 1009), len(image) - 1]:
        path.write_bytes(image[:size])
        record = listed(path)
        assert record.state == "rejected"
        assert record.reason.startswith(("got an empty", "truncated"))


def test_flipped_bytes_of_the_table(place, good_file):
    """A table with a flipped byte is rejected or valid; listings survive both."""
    image = bytearray(good_file.read_bytes())
    begin, end = image.index(b"cuplug\0\0") - 12, image.rindex(b"Of float64.")
    path = place / "libraw.so"
    seen = set()
    for at in range(begin, end, 3):
        image[at] ^= 0xA5
        path.write_bytes(image)
        image[at] ^= 0xA5
        record = listed(path)
        assert (record.reason == "") == (record.state == "ok")
        seen.add(record.state)
    assert seen == {"ok", "rejected", "no plugin"}


def test_library_without_a_table(place):
    path = compile_fixture("no_table.c", place / "libplain.so")
    assert_refused(path, "no symbol table (no ELF note of owner cuplug)", state="no plugin")


def test_directory(place):
    (place / "libfolder.so").mkdir()
    assert_refused(place / "libfolder.so", "got a directory, expected a regular file")


def test_fifo(place):
    os.mkfifo(place / "libpipe.so")
    assert_refused(place / "libpipe.so", "got a FIFO, expected a regular file")


def test_socket(place, monkeypatch):
    monkeypatch.chdir(place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("libsocket.so")
        assert listed(place / "libsocket.so").reason.startswith("cannot be opened: ")


def test_dangling_link(place):
    (place / "libgone.so").symlink_to(place / "nothing")
    assert_refused(place / "libgone.so", "dangling link: its target does not exist")


def test_link_to_itself(place):
    (place / "libloop.so").symlink_to(place / "libloop.so")
    assert listed(place / "libloop.so").reason.startswith("cannot be opened: ")


def test_unreadable(good_file):
    """In a child process, which drops root's right to read everything."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        path = Path(shutil.copy(good_file, Path(directory) / "libraw.so"))
        path.chmod(0)
        child = os.fork()
        if not child:
            seen = ""
            try:
                os.setuid(os.geteuid() or 65534)
                cuplug.load(str(path))
            except Exception as error:
                seen = str(error)
            finally:
                os._exit(seen != f"{path}: cannot be opened: Permission denied")
        assert os.waitpid(child, 0)[1] == 0


def test_one_bad_file_stops_nothing(place, good_file):
    for name, content in [("a", b""), ("b", b"text"), ("z", b"\x7fELF")]:
        (place / f"lib{name}.so").write_bytes(content)
    shutil.copy(good_file, place / "libraw.so")
    states = [record.state for record in cuplug.plugins() if Path(record.path).parent == place]
    assert states == ["rejected", "rejected", "ok", "rejected"]
    assert cuplug.find("raw.raw").plugin == "raw"


# ---- Tables with false fields ------------------------------------------------------------------

LIES = {
    "too old: compiled for ABI 1.0, this core has ABI 2.0; compile the plugin with this core's "
    "header": {"PLUGIN_KIND": "0x70756331u"},
    "too old: compiled for ABI 1.9, this core has ABI 2.0; compile the plugin with this core's "
    "header": {"ABI": quoted("1.9")},
    "too new: compiled for ABI 3.1, this core has ABI 2.0; update cuplug": {"ABI": quoted("3.1")},
    'abi: got "2", expected a version such as 2.0': {"ABI": quoted("2")},
    'abi: got "two", expected a version such as 2.0': {"ABI": quoted("two")},
    'abi: got "2.0.1", expected a version such as 2.0': {"ABI": quoted("2.0.1")},
    'abi: got "99999.0", expected a version such as 2.0': {"ABI": quoted("99999.0")},
    "abi: got none, expected a version such as 2.0": {"PLUGIN_TEXT": '"name=raw"'},
    "its text does not end with a zero": {"PLUGIN_BYTES": 10},
    "got no note of the plugin, expected CUPLUG_PLUGIN": {"WITHOUT_PLUGIN": 1},
    "got two plugins in one file, expected one": {"TWO_PLUGINS": 1},
    "no operator": {"WITHOUT_OPERATORS": 1},
    'name: got "", expected an identifier of at most 63 characters': {"NAME": quoted("")},
    'name: got "a-b", expected an identifier of at most 63 characters': {"NAME": quoted("a-b")},
    'name: got "../x", expected an identifier of at most 63 characters': {"NAME": quoted("../x")},
    f'name: got "{"n" * 64}", expected an identifier of at most 63 characters': {
        "NAME": quoted("n" * 64)
    },
    "name: occurs twice": {"PLUGIN_TEXT": '"abi=2.0\\0name=raw\\0name=other"'},
    "version: occurs twice": {"PLUGIN_TEXT": '"abi=2.0\\0name=raw\\0version=\\0version=1"'},
    "abi: occurs twice": {"PLUGIN_TEXT": '"abi=2.0\\0name=raw\\0abi=2.1"'},
    "operator raw: host: occurs twice": {"HOST_ENTRY": quoted(""), "EXTRA": '"\\0host=raw_host"'},
    "version: got byte 0x1b at 1, expected one line of UTF-8": {"VERSION": '"1\\033[31m"'},
    "shape: got a required property that this core does not know; update cuplug": {
        "PLUGIN_TEXT": '"abi=2.0\\0name=raw\\0!shape=round"'
    },
    'operator raw: host: got "a b", expected an identifier': {"HOST_ENTRY": quoted("a b")},
    'operator raw: cuda: got "1", expected an identifier': {"CUDA_ENTRY": quoted("1")},
    "operator raw: got no entry, expected a CUDA or a host entry": {"HOST_ENTRY": quoted("")},
    "operator ?: its text does not end with a zero ": {"ROW_BYTES": "sizeof(ROW) - 1"},
    "operator ?: its text does not end with a zero": {"ROW_BYTES": 0},
    "operator raw: doc: got byte 0x0a at 3, expected one line of UTF-8": {"DOC": '"one\\ntwo"'},
    "operator raw: doc: got byte 0xff at 0, expected one line of UTF-8": {"DOC": '"\\377"'},
    "operator raw: doc: got byte 0xe2 at 0, expected one line of UTF-8": {"DOC": '"\\342\\202"'},
    "operator raw: doc: got byte 0xed at 0, expected one line of UTF-8": {
        "DOC": '"\\355\\240\\200"'
    },
    "operator raw: signature: occurs twice": {"EXTRA": '"\\0signature=raw()"'},
    'operator raw: got the key "Key=1", expected a to z, 0 to 9, _ and .': {"EXTRA": '"\\0Key=1"'},
    'operator raw: got the key "=1", expected a to z, 0 to 9, _ and .': {"EXTRA": '"\\0=1"'},
    'operator raw: got the key "!", expected a to z, 0 to 9, _ and .': {"EXTRA": '"\\0!"'},
    "operator raw: sideways: got a required property that this core does not know; update cuplug": {
        "EXTRA": '"\\0!sideways"'
    },
    "operator raw: upwards: got a required property that this core does not know; update cuplug": {
        "ROW": '"!upwards\\0host=raw_host\\0signature=raw(x: float32[n])"'
    },
    'operator raw: no_split: got "n", expected no value': {"EXTRA": '"\\0!no_split=n"'},
    'operator raw: state: got "", expected an identifier': {"EXTRA": '"\\0!state="'},
    'operator raw: exclusive_state: got "a b", expected an identifier': {
        "EXTRA": '"\\0!exclusive_state=a b"'
    },
    "operator raw: exclusive_state: occurs twice": {
        "EXTRA": '"\\0!state=make\\0!exclusive_state=make"'
    },
    'operator raw: order: got "first", expected at most 9 digits': {"EXTRA": '"\\0order=first"'},
    'operator raw: order: got "-1", expected at most 9 digits': {"EXTRA": '"\\0order=-1"'},
    'operator raw: order: got "1234567890", expected at most 9 digits': {
        "EXTRA": '"\\0order=1234567890"'
    },
    "operator raw: got no entry, expected a CUDA or a host entry ": {
        "ROW": '"entry.10=\\0signature=raw(x: float32[n])"'
    },
}


@pytest.mark.parametrize("reason", LIES)
def test_table_that_lies(place, reason):
    path = compile_fixture("raw_table.c", place / "libraw.so", **LIES[reason])
    assert_refused(path, f"symbol table: {reason.strip()}")


def test_what_this_core_does_not_know_is_skipped(place):
    """Newer plugins: minor version, keys, kinds of notes."""
    fields = {
        "ABI": quoted("2.7"),
        "EXTRA": '"\\0\\0gradient=other\\0entry.10=raw_rocm\\0colour"',
    }
    path = named_plugin(place / "libforward.so", "forward", **fields)
    assert (listed(path).state, listed(path).abi) == ("ok", "2.7")
    assert cuplug.find("forward")(numpy.float32([1])).shape == (1,)
    path = named_plugin(place / "libpartly.so", "partly", OPERATOR_KIND="7u")
    assert cuplug.find("partly").signatures == ("partly(x: float64[...]) -> float64[...]",)


def test_operators_of_other_devices_are_found_and_refused_at_the_call(place):
    """Only a core that supports the device runs them; here, the plugin's other operators work."""
    row = '"entry.10=elsewhere_rocm\\0signature=elsewhere(x: float32[n]) -> float32[n]"'
    path = named_plugin(place / "libelsewhere.so", "elsewhere", ROW=row)
    assert (listed(path).state, listed(path).device_types) == ("ok", ("cpu",))
    elsewhere = cuplug.load(path).elsewhere
    assert elsewhere(numpy.float64([1])).shape == (1,)
    with pytest.raises(ValueError, match=r"^elsewhere: device: got .*\(no .* entry in .*\)$"):
        elsewhere(numpy.float32([1]), device="cpu")
    with pytest.raises((ValueError, cuplug.CudaError)):
        elsewhere(numpy.float32([1]))


def test_note_longer_than_its_segment(place):
    path = compile_fixture("raw_table.c", place / "libraw.so", ROW_BYTES="5000")
    assert listed(path).reason.startswith("symbol table: note of 5000 bytes, its segment has ")


@pytest.mark.parametrize("n", [1023, 3000])
def test_many_notes_of_others(place, tmp_path, n):
    others = tmp_path / "others.s"
    note = '.long 4, 0, 1\n.asciz "abc"\n'
    stack = '.section .note.GNU-stack, "", @progbits\n'
    others.write_text(f'{stack}.section .note.aaa, "a", @note\n.rept {n}\n{note}.endr\n')
    path = named_plugin(place / "libcrowd.so", "crowd", others)
    assert listed(path).state == "ok"


def test_notes_too_long(place, good_file):
    image = good_file.read_bytes()
    for at, kind, _ in program_headers(image):
        if kind == 4:
            image = elf_patched(image, at + 8, "<Q", 0)
            image = elf_patched(image, at + 32, "<Q", 5 << 20)
    path = place / "libraw.so"
    path.write_bytes(image + bytes(8 << 20))
    assert listed(path).reason.startswith("got notes of ")
    assert listed(path).reason.endswith(" bytes, expected at most 4194304")


def test_signature_that_is_ill_formed(place):
    path = compile_fixture("raw_table.c", place / "libraw.so", SECOND_SIGNATURE=quoted("f(x: T[n)"))
    reason = listed(path).reason
    assert reason.startswith("symbol table: operator f: signature: ")
    assert "byte 8" in reason


def test_rows_stand_as_in_their_source(place, build_plugin):
    """Compilers emit notes in any order; the first matching overload is used."""
    rows = "".join(
        f'CUPLUG_HOST_OPERATOR(f{k}_host, "{name}(x: float32[{k}]) -> float32[1]", "");\n'
        f"CUPLUG_ENTRY int f{k}_host(const cuplug_call *c) {{ return !c; }}\n"
        for k, name in enumerate("abacab")
    )
    entries = "".join(f"CUPLUG_ENTRY int f{k}_host(const cuplug_call *c);\n" for k in range(6))
    text = f'#include <cuplug/plugin.h>\n{entries}{rows}CUPLUG_PLUGIN(numbered, "1");\n'
    plugin = cuplug.load(build_plugin(text, "numbered"))
    assert [operator.name for operator in plugin.operators] == ["a", "b", "c"]
    assert [s.partition("[")[2][0] for s in plugin.a.signatures] == ["0", "2", "4"]


def test_operators_of_several_files_of_one_plugin(place, tmp_path):
    part = "#include <cuplug/plugin.h>\nCUPLUG_ENTRY int {0}_host(const cuplug_call *c) "
    part += '{{ return !c; }}\nCUPLUG_HOST_OPERATOR({0}_host, "{0}()", "");\n'
    (tmp_path / "one.c").write_text(part.format("one"))
    (tmp_path / "two.c").write_text(part.format("two") + 'CUPLUG_PLUGIN(parts, "1");\n')
    library = place / "libparts.so"
    for more in ([], ["-flto"], ["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"]):
        options = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-I{ROOT / 'include'}", *more]
        files = [str(tmp_path / name) for name in ("one.c", "two.c")]
        compile_library([*COMPILER, *options, *files, "-o", str(library)])
        names = {operator.name for operator in cuplug.load(library).operators}
        assert names == {"one", "two"}
        library.unlink()

# SPDX-License-Identifier: Apache-2.0
"""Files and tables that are refused: one sentence for each, and no code is run."""

import os
import shutil
import socket
import struct
import tempfile
from pathlib import Path

import cuplug
import pytest
from raw_plugins import assert_refused, compile_fixture, listed, quoted

pytestmark = pytest.mark.usefixtures("place")


# ---- Files that are no plugins -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file, a shared object is wanted"),
        (b"#!/bin/sh\n", 'not an ELF file: it begins with "#!/bin/sh.", a shared object is wanted'),
        (b"\x7fEL", "truncated: the file ends in its ELF header"),
        (b"\x7fELF\x02\x01\x01".ljust(63, b"\0"), "truncated: the file ends in its ELF header"),
        (
            b"\x7fELF\x01\x01\x01".ljust(99, b"\0"),
            "32-bit object, a 64-bit shared object is wanted",
        ),
        (b"\x7fELF\x07\x01\x01".ljust(99, b"\0"), "ELF class 7, class 2 (64-bit) is wanted"),
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
        (5, "B", 2, "object of the other byte order, this machine's is wanted"),
        (18, "<H", 8, "compiled for MIPS (ELF machine 8), {this} is wanted"),
        (18, "<H", 9999, "compiled for unknown (ELF machine 9999), {this} is wanted"),
        (16, "<H", 1, "ELF type 1 (relocatable object (.o)), a shared object (type 3) is wanted"),
        (16, "<H", 2, "ELF type 2 (executable), a shared object (type 3) is wanted"),
        (16, "<H", 77, "ELF type 77 (unknown), a shared object (type 3) is wanted"),
        (56, "<H", 0, "0 program headers of 56 bytes, 1 to 1024 of 56 are wanted"),
        (54, "<H", 55, "{n} program headers of 55 bytes, 1 to 1024 of 56 are wanted"),
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
    """Every shorter file is refused, with a reason; none is loaded."""
    image = good_file.read_bytes()
    path = place / "libraw.so"
    for size in [*range(0, 4096, 97), *range(4096, len(image), 1009), len(image) - 1]:
        path.write_bytes(image[:size])
        record = listed(path)
        assert record.state == "rejected"
        assert record.reason.startswith(("empty", "truncated"))


def test_flipped_bytes_of_the_table(place, good_file):
    """A table with a byte flipped is refused or still a table; listing survives both."""
    image = bytearray(good_file.read_bytes())
    begin = image.index(b"cuplug\0\0CUPLUGT\0") - 12
    path = place / "libraw.so"
    seen = set()
    for at in [*range(begin, begin + 60), *range(begin + 60, begin + 308 + 1024, 41)]:
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
    assert_refused(place / "libfolder.so", "a directory, a regular file is wanted")


def test_fifo(place):
    os.mkfifo(place / "libpipe.so")
    assert_refused(place / "libpipe.so", "a FIFO, a regular file is wanted")


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
    """In a child process, which gives up root's right to read everything."""
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


# ---- Tables that lie ---------------------------------------------------------------------------

LIES = {
    "too old: compiled for ABI 0.9, this core has ABI 1.0; compile the plugin with this core's "
    "header": {"ABI": "9u"},
    "too new: compiled for ABI 2.3, this core has ABI 1.0; update cuplug": {"ABI": "0x20003u"},
    "magic: not CUPLUGT": {"MAGIC": quoted("CUPLUGX")},
    "header_bytes: 304, a multiple of 4 of at least 308 is wanted": {"HEADER_BYTES": 304},
    "header_bytes: 310, a multiple of 4 of at least 308 is wanted": {"HEADER_BYTES": 310},
    "row_bytes: 1020, a multiple of 4 of at least 1024 is wanted": {"ROW_BYTES": 1020},
    "row_bytes: 0, a multiple of 4 of at least 1024 is wanted": {"ROW_BYTES": 0},
    "call_bytes: 84, a multiple of 4 of at least 88 is wanted": {"CALL_BYTES": 84},
    "tensor_bytes: 56, 48 is wanted": {"TENSOR_BYTES": 56},
    "n_rows: 0, no operator": {"N_ROWS": 0},
    "n_rows: 3 rows of 1024 bytes end at byte 3380, the table has 2356": {"N_ROWS": 3},
    "n_rows: 4294967295 rows of 1024 bytes end at byte 4398046510388, the table has 2356": {
        "N_ROWS": "0xffffffffu"
    },
    "n_rows: 2 rows of 4294967292 bytes end at byte 8589934892, the table has 2356": {
        "ROW_BYTES": "0xfffffffcu"
    },
    "n_rows: 2 rows of 1024 bytes end at byte 4294969340, the table has 2356": {
        "HEADER_BYTES": "0xfffffffcu"
    },
    "300 bytes, at least 308 are wanted": {"DESC_BYTES": 280},
    "name: not zero-terminated within its 64 bytes": {"NAME": quoted("n" * 64)},
    'name: "", an identifier is wanted': {"NAME": quoted("")},
    'name: "a-b", an identifier is wanted': {"NAME": quoted("a-b")},
    'name: "../x", an identifier is wanted': {"NAME": quoted("../x")},
    "version: not zero-terminated within its 32 bytes": {"VERSION": quoted("1" * 32)},
    "version: byte 0x1b at 1, one line of UTF-8 is wanted": {"VERSION": '"1\\033[31m"'},
    "architectures: not zero-terminated within its 128 bytes": {"ARCHITECTURES": quoted("9" * 128)},
    "row 0: host_entry: not zero-terminated within its 96 bytes": {"HOST_ENTRY": quoted("h" * 96)},
    "row 0: cuda_entry: not zero-terminated within its 96 bytes": {"CUDA_ENTRY": quoted("c" * 96)},
    'row 0: host_entry: "a b", an identifier is wanted': {"HOST_ENTRY": quoted("a b")},
    "row 0: no entry, a CUDA or a host entry is wanted": {"HOST_ENTRY": quoted("")},
    "row 0: signature: not zero-terminated within its 512 bytes": {"SIGNATURE": quoted("s" * 512)},
    "row 0: doc: not zero-terminated within its 256 bytes": {"DOC": quoted("d" * 256)},
    "row 0: doc: byte 0x0a at 3, one line of UTF-8 is wanted": {"DOC": '"one\\ntwo"'},
    "row 0: doc: byte 0xff at 0, one line of UTF-8 is wanted": {"DOC": '"\\377"'},
    "row 0: doc: byte 0xe2 at 0, one line of UTF-8 is wanted": {"DOC": '"\\342\\202"'},
    "row 0: doc: byte 0xed at 0, one line of UTF-8 is wanted": {"DOC": '"\\355\\240\\200"'},
}


@pytest.mark.parametrize("reason", LIES)
def test_table_that_lies(place, reason):
    path = compile_fixture("raw_table.c", place / "libraw.so", **LIES[reason])
    assert_refused(path, f"symbol table: {reason}")


def test_table_longer_than_its_segment(place):
    path = compile_fixture("raw_table.c", place / "libraw.so", DESC_BYTES="5000")
    assert listed(path).reason.startswith("symbol table of 5020 bytes, its note segment has ")


def test_table_too_long(place):
    path = compile_fixture("raw_table.c", place / "libraw.so", DESC_BYTES="0xfffffff0u")
    assert_refused(path, "symbol table of 4294967300 bytes, at most 4194304 are wanted")


def test_signature_that_is_ill_formed(place):
    path = compile_fixture("raw_table.c", place / "libraw.so", SECOND_SIGNATURE=quoted("f(x: T[n)"))
    reason = listed(path).reason
    assert reason.startswith("symbol table: row 1: signature: ")
    assert "at byte 8" in reason


def test_note_of_another_owner(place):
    path = compile_fixture("raw_table.c", place / "libraw.so", NOTE_TYPE="1u")
    assert listed(path).state == "no plugin"

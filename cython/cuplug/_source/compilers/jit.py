# SPDX-License-Identifier: Apache-2.0
"""Compilation of CUDA source to machine code, cached in memory and on disk."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from cuplug._engine.base.validate import as_str_tuple, check_strings, check_text
from cuplug._source.compilers import cache, kernel_types, key_lock, nvrtc, shipped
from cuplug._source.compilers.headers import included_texts, is_self_contained
from cuplug._source.compilers.program import compile_program
from cuplug.errors import CompileError

ANNOUNCE_S = 1.0  # longer compilations are announced


class Binary:
    """Compiled code.

    Attributes
    ----------
    key : str
        The key in the cache.
    image : bytes
        Machine code, or PTX for a GPU newer than NVRTC.
    lowered : dict of str to str
        Name expression -> symbol.
    types : dict of str to tuple of int
        Name expression of a kernel -> the numbers of kernel_types.py.
    log : str
        The compiler's warnings, when it ran.
    """

    def __init__(
        self,
        key: str,
        image: bytes,
        lowered: dict[str, str],
        types: dict[str, tuple[int, ...]],
        log: str = "",
    ) -> None:
        self.key = key
        self.image = image
        self.lowered = lowered
        self.types = types
        self.log = log


_PROBE_KEY = cache.key(kernel_types.PROBE)
_memory: dict[str, Binary] = {}


class Program(NamedTuple):
    """A request to compile; see `compile_to_binary`."""

    source: str
    names: tuple[str, ...]
    options: tuple[str, ...]
    architecture: str
    name: str
    headers: dict[str, str]
    compiler: str
    is_part: bool = False  # True for code that will be linked

    @property
    def found(self) -> Any:
        """Return the compiler, from nvrtc.py or nvcc.py."""
        if self.compiler == "nvrtc":
            return nvrtc.find()
        from cuplug._source.compilers import (
            nvcc,  # imported here, since finding a binary takes less time than importing it
        )

        return nvcc.find()

    def compile(self, text: str, names: Sequence[str]) -> tuple[bytes, list[str], str]:
        """Compile the source and return the image, lowered names and log."""
        if self.compiler != "nvrtc":
            return self.found.compile(
                text,
                self.name,
                self.architecture,
                self.options,
                names,
                self.headers,
                self.is_part,
            )
        try:
            return self._nvrtc(text, names, nvrtc.INCLUDED)
        except CompileError as error:
            if not nvrtc.WITHOUT_STDINT.search(error.log):
                raise
        return self._nvrtc(text, names, nvrtc.INCLUDED, nvrtc.STDINT)

    def _nvrtc(
        self, text: str, names: Sequence[str], *included: str
    ) -> tuple[bytes, list[str], str]:
        compiler = self.found
        paths = [f"-I{directory}" for directory in compiler.include]
        image, lowered, _, log = compile_program(
            compiler.path,
            text,
            self.name,
            self.architecture,
            [*self.options, *paths, *included],
            names,
            self.headers,
            is_self_contained(self.source, self.headers),
            self.is_part,
        )
        return image, lowered, log


def compile_to_binary(
    source: str,
    names: Sequence[str] = (),
    options: Sequence[str] = (),
    architecture: str = "90",
    name: str = "<string>",
    headers: Mapping[str, str] | None = None,
    compiler: str = "nvrtc",
) -> Binary:
    """Compile CUDA C++, unless it was compiled before.

    Parameters
    ----------
    source : str
    names : sequence of str
        Names of kernels and variables, such as "scale<4>". Kernels that are not templates and are
        not in a namespace are found without it.
    options : sequence of str
        Compiler options.
    architecture : str
        The GPU's: "90" for 9.0, "90a"; "compute_90" for PTX.
    name : str
        The source's name in messages and profilers.
    headers : mapping of str to str
        Texts, by the names under which the source includes them.
    compiler : str
        "nvrtc" or "nvcc".

    Raises
    ------
    CompileError
        The source has an error: the message shows its lines. Or no compiler exists.
    """
    program = check(source, names, options, architecture, name, headers, compiler)

    def make() -> Binary:
        key, is_whole = key_of(program)
        return kept(key, is_whole, lambda: compile_source(key, program))

    return shipped_or(request_of(program), make)


def shipped_or(request: str, make: Callable[[], Binary]) -> Binary:
    """Return the shipped code for a request, or the result of `make`, which may be shipped."""
    if not request:
        return make()
    if request not in _memory:
        data = shipped.read(request, "cubin")
        binary = make() if data is None else _unpack(request, data)
        if data is None:
            shipped.add(request, "cubin", _pack(binary))
        _memory.setdefault(request, binary)
    return _memory[request]


def kept(key: str, is_whole: bool, make: Callable[[], Binary]) -> Binary:
    """Return the cached code, or the result of `make`, which is cached if the key determines it."""
    if not is_whole:
        return make()
    binary = _memory.get(key) or _load(key)
    if binary is None:
        with key_lock.held(key):
            binary = _load(key)
            if binary is None:
                binary = make()
                cache.put(key, "cubin", _pack(binary))
    # If two threads have compiled it, the first result is used.
    return _memory.setdefault(key, binary)


def compile_to_ptx(
    source: str,
    names: Sequence[str],
    options: Sequence[str],
    architecture: str,
    name: str,
    headers: Mapping[str, str] | None,
    compiler: str,
) -> str:
    """Return the PTX of the code of `compile_to_binary`, without the probes for types."""
    virtual = f"compute_{number_of(architecture)}"
    program = check(source, names, options, virtual, name, headers, compiler)
    return program.compile(source, program.names)[0].decode().rstrip("\0")


def number_of(architecture: str) -> str:
    """Return the digits of an architecture: "90a" for "sm_90a" and "compute_90a"."""
    return architecture.removeprefix("sm_").removeprefix("compute_")


def check(
    source: str,
    names: Sequence[str],
    options: Sequence[str],
    architecture: str,
    name: str,
    headers: Mapping[str, str] | None,
    compiler: str,
) -> Program:
    """Check the arguments of `compile_to_binary`."""
    headers = dict(headers or {})
    names, options = (
        as_str_tuple("compile", "names", names),
        as_str_tuple("compile", "options", options),
    )
    check_strings("compile", {"source": source, "name": name, "architecture": architecture})
    for k, each in enumerate(names):
        if not each.strip():
            raise ValueError(f"compile: names[{k}]: got {each!r}, expected the name of a kernel")
    for k, (title, text) in enumerate(headers.items()):
        check_text("compile", f"headers: name {k}", title)
        check_text("compile", f"headers[{title!r}]", text)
    if compiler not in ("nvrtc", "nvcc"):
        raise ValueError(f"compile: compiler: got {compiler!r}, expected 'nvrtc' or 'nvcc'")
    architecture = architecture.removeprefix("sm_")
    return Program(source, names, options, architecture, name, headers, compiler)


def key_of(program: Program) -> tuple[str, bool]:
    """Return the key of the program, and whether it covers everything that the code depends on.

    Raises
    ------
    CompileError
        No compiler exists.
    """
    parts, is_whole = _parts_of(program)
    return cache.key("cubin", program.found.identity, *parts), is_whole


def request_of(program: Program) -> str:
    """Return the key of a program for shipped.py; "" if it cannot be shipped."""
    if not shipped.request():
        return ""
    parts, is_whole = _parts_of(program)
    return shipped.request("cubin", *parts) if is_whole else ""


def _parts_of(program: Program) -> tuple[list[str], bool]:
    included = included_texts(program.source, program.name, program.options, program.headers)
    own = [program.architecture, program.name]
    asked = (program.names, program.options, own, [*program.headers, *program.headers.values()])
    parts = [part for group in asked for part in (str(len(group)), *group)]
    files = [part for item in sorted((included or {}).items()) for part in item]
    return [_PROBE_KEY, program.source, *parts, *files], included is not None


def compile_source(key: str, program: Program, perhaps: Sequence[str] = ()) -> Binary:
    """Compile, with the types of the kernels that occur in the source, if they can be determined.

    Parameters
    ----------
    key : str
    program : Program
    perhaps : sequence of str
        Names that the source may define.
    """
    source, names = program.source, program.names
    found = [*perhaps, *kernel_types.kernels_of(source)]
    found = [each for each in dict.fromkeys(found) if each not in names]

    def attempt(names: Sequence[str]) -> Binary:
        probes = [kernel_types.probe_of(each) for each in names]
        text = source + (kernel_types.PROBE if names else "")
        image, lowered, log = program.compile(text, [*names, *probes])
        symbols = dict(zip(names, lowered, strict=False))
        read = map(kernel_types.read_probe, lowered[len(names) :])
        types = {each: codes for each, codes in zip(names, read, strict=True) if codes is not None}
        return Binary(key, image, symbols, types, log)

    def is_good(names: Sequence[str]) -> bool:
        with contextlib.suppress(CompileError):
            return bool(attempt(names))
        return False

    with _announced(program.name, program.architecture):
        try:
            return attempt([*names, *found])
        except CompileError as error:
            failure = error
        with contextlib.suppress(CompileError):
            if found:
                attempt(names)  # the source itself has no error
                return attempt([*names, *(each for each in found if is_good([*names, each]))])
    from cuplug._source.compilers import diagnostics

    message = diagnostics.explain(
        failure, source, program.name, names, program.headers, program.found
    )
    raise CompileError(message, failure.log) from None


@contextlib.contextmanager
def _announced(name: str, architecture: str) -> Iterator[None]:
    """Report the reason of a long wait on a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    import threading

    def announce() -> None:
        print(f"cuplug: compiling {name} for sm_{architecture} ...", file=sys.stderr, flush=True)

    timer = threading.Timer(ANNOUNCE_S, announce)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _pack(binary: Binary) -> bytes:
    """Write the names, symbols and types before the image."""
    texts = []
    for name, symbol in binary.lowered.items():
        codes = binary.types.get(name)
        texts += [name, symbol, "-" if codes is None else " ".join(map(str, codes))]
    head = "\0".join(texts).encode()
    return len(head).to_bytes(8, "little") + head + binary.image


def _load(key: str) -> Binary | None:
    data = cache.get(key, "cubin")
    return None if data is None else _unpack(key, data)


def _unpack(key: str, data: bytes) -> Binary:
    end = 8 + int.from_bytes(data[:8], "little")
    texts = data[8:end].decode().split("\0") if end > 8 else []
    lowered = dict(zip(texts[::3], texts[1::3], strict=True))
    written = dict(zip(texts[::3], texts[2::3], strict=True))
    types = {
        name: tuple(map(int, codes.split())) for name, codes in written.items() if codes != "-"
    }
    return Binary(key, data[end:], lowered, types)

# SPDX-License-Identifier: Apache-2.0
"""Write the declarations of cuplug's own headers for Cython: declarations.py FOLDER COMPILER ...

FOLDER gets a .pxd for each row of FILES. The compiler's preprocessor reads the headers.
"""

import keyword
import re
import subprocess
import sys
from pathlib import Path

INCLUDE = Path("include")
CORE, CALL, RUNTIME = "core.pxd", "core_call.pxd", "runtime.pxd"
FILES = {  # what is included, and the folder whose headers are declared
    CORE: (["cuplug/host.h"], "cuplug"),
    CALL: (["internal/core.h"], "internal"),
    RUNTIME: ([f"runtime/{x.name}" for x in sorted(INCLUDE.glob("runtime/*.h"))], "runtime"),
}
PACKAGE = "cuplug._engine.base"
STDINT = [f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)]
COMMON = [f"from libc.stdint cimport {', '.join(STDINT)}"]
C_TYPES = {"void", "char", "int", "float", "double", "long", "short", "unsigned", "size_t"}
KEYWORDS = {*keyword.kwlist, "nogil", "gil", "cdef", "cpdef", "ctypedef", "cimport", "include"}
SHARED_FUNCTIONS = re.compile(r"\bX\((\w+)\)")


def preprocess(header: str, folder: str, compiler: list[str]) -> tuple[str, set[Path]]:
    """Return what the headers of a folder contain after the preprocessor, and which they are."""
    command = [*compiler, "-E", f"-I{INCLUDE}", "-x", "c", str(INCLUDE / header)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kept, read, is_ours = [], set(), False
    for line in out.splitlines():
        if found := re.match(r'# \d+ "(.*)"', line):
            is_ours = Path(found[1]).parent == INCLUDE / folder
            read |= {Path(found[1])} if is_ours else set()
        elif is_ours:
            kept.append(line)
    text = re.sub(r"\b_Static_assert\s*\(.*?\);", "", "\n".join(kept), flags=re.S)
    text = re.sub(r"__attribute__\s*\(\(\s*visibility\(\"default\"\)\s*\)\)", "CUPLUG_API", text)
    return re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", "", text), read


def statements(text: str) -> list[str]:
    """Split C at its top level; functions lose their bodies."""
    found, start, depth = [], 0, 0
    for match in re.finditer(r"[{};]", text):
        at, mark = match.start(), match[0]
        depth += (mark == "{") - (mark == "}")
        before = text[start:at].rstrip()
        if mark == "{" and depth == 1 and before.endswith(")"):
            found.append(before)
            start = -1  # in a body
        elif mark == "}" and depth == 0 and start < 0:
            start = at + 1
        elif mark == ";" and depth == 0 and start >= 0:
            found.append(text[start:at])
            start = at + 1
    return [" ".join(x.split()) for x in found if x.strip()]


def split(text: str, mark: str = ",") -> list[str]:
    """Split at a mark outside of brackets."""
    parts, depth, last = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == mark and not depth:
            parts.append(text[last:at].strip())
            last = at + 1
    return [x for x in [*parts, text[last:].strip()] if x]


def constants(headers: set[Path]) -> list[str]:
    """Return the macros of headers that are numbers."""
    macro = re.compile(r"^#define (CUPLUG_(?!_)\w+) +(.+?)(?: */[*].*)?$", re.M)
    number = re.compile(r"\(?[-(]*(\(u?int\d+_t\))?\(?(\d|CUPLUG_[A-Z]|UINT)[\w()<>|+*~ -]*")
    texts = [x.read_text() for x in sorted(headers)]
    return [m[1] for text in texts for m in macro.finditer(text) if number.fullmatch(m[2])]


class Declarations:
    """The declarations of one file, and the names of types that are known by then."""

    def __init__(self, shared: set[str], later: set[str]) -> None:
        """Take over the functions of the core's table, and the types that other files declare."""
        self.types = C_TYPES | set(STDINT)
        self.shared = shared
        self.later = later
        self.lines: list[str] = []
        self.names: set[str] = set()
        self.skipped: list[str] = []  # public functions of types that other files declare
        self.typedefs: set[str] = set()
        self.functions: dict[str, tuple[str, str]] = {}  # results and parameters of their types
        self.seen: set[str] = set()

    def is_known(self, text: str) -> bool:
        """Return whether all words of a type are types."""
        words = re.sub(r"\b(const|struct|union|enum)\b", "", text)
        return set(re.findall(r"\w+", words)) <= self.types

    def variable(self, text: str, is_parameter: bool) -> str | None:
        """Return a field or parameter as Cython has it; None if it has a type of others."""
        if pointer := re.fullmatch(r"(.+?)\(\*(\w+)\)\((.*)\)", text):
            parameters = self.parameters(pointer[3])
            if parameters is None or not self.is_known(pointer[1]):
                return None
            return f"{pointer[1].strip()} (*{pointer[2]})({parameters}) noexcept"
        if not (parts := re.fullmatch(r"(.*?[\s*(])(\w+)(\)?)((?:\[[^]]*\])*)", text)):
            return None
        kind, name, closing, sizes = (x.strip() for x in parts.groups())
        if not self.is_known(kind.replace("(*", "")):
            return None
        kind = re.sub(r"\b(struct|union|enum) (\w+)", r"\2", kind)
        named = f"{name}_" if name in KEYWORDS else name
        if is_parameter and sizes and not closing:
            kind, sizes = kind + " *", re.sub(r"^\[[^]]*\]", "", sizes)
        elif name in KEYWORDS and not is_parameter:
            named = f'{named} "{name}"'
        sizes = re.sub(r"\[([^]]*)\]", lambda m: f"[{self.size(m[1])}]", sizes)
        space = "" if kind.endswith(("*", "(*")) else " "
        return f"{kind}{space}{named}{closing}{sizes}"

    @staticmethod
    def size(text: str) -> int:
        """Return the value of an array's size."""
        return int(eval(re.sub(r"(\d)u?l*\b", r"\1", text).replace("/", "//")))

    def parameters(self, text: str) -> str | None:
        """Return the parameters of a function."""
        if text.strip() in ("", "void"):
            return ""
        found = [x if x == "..." else self.variable(x, True) for x in split(text)]
        return None if None in found else ", ".join(found)

    def fields(self, text: str) -> list[str]:
        """Return the fields of a structure, including the fields of its unnamed unions."""
        found: list[str] = []
        for field in split(text, ";"):
            if inner := re.fullmatch(r"(?:union|struct) \{(.*)\}", field):
                found += self.fields(inner[1])
                continue
            first, *others = split(field)
            base = re.sub(r"[\s*]*\w+(\[.*\])*$", "", first)
            more = [f"{base} {other}" for other in others]
            found += [x for part in (first, *more) if (x := self.variable(part, False))]
        return found

    def structure(self, kind: str, name: str, body: str, is_typedef: bool) -> None:
        """Declare a structure or union."""
        prefix = "ctypedef " if is_typedef else ""
        fields = [f"    {x}" for x in self.fields(body)] or ["    pass"]
        self.lines += [f"{prefix}{kind} {name}:", *fields]

    def function(self, result: str, name: str, text: str, is_public: bool) -> None:
        """Declare a function of the library, of the header itself, or of the core's table."""
        parameters = self.parameters(text)
        short = name.removeprefix("cuplug_")
        if name in self.names or (not is_public and short not in self.shared):
            return
        if parameters is None or not self.is_known(result):
            self.skipped.append(f"CUPLUG_API {result} {name} ({text})")
            return
        self.names.add(name)
        entry = f' "cuplug_core->{short}"' if short in self.shared else ""
        space = "" if result.endswith("*") else " "
        self.lines.append(f"{result}{space}{name}{entry}({parameters}) noexcept")

    def add(self, statement: str) -> None:
        """Declare what one statement does."""
        is_public = statement.startswith(("CUPLUG_API", "static inline"))
        statement = re.sub(r"^(CUPLUG_API|static inline|extern)\s+", "", statement)
        if found := re.fullmatch(r"(?:typedef )?enum \w*\s*\{(.*)\}\s*(\w*)", statement):
            members = [x.partition("=")[0].strip() for x in split(found[1])]
            members = [x for x in members if not x.startswith("CUPLUG__")]
            name = f"ctypedef enum {found[2]}:" if found[2] else "enum:"
            self.lines += [name, *(f"    {x}" for x in members)] if members else []
        elif found := re.fullmatch(r"typedef (struct|union) \w* ?\{(.*)\} (\w+)", statement):
            self.structure(found[1], found[3], found[2], True)
        elif found := re.fullmatch(r"(struct|union) (\w+) \{(.*)\}", statement):
            self.structure(found[1], found[2], found[3], found[2] in self.typedefs)
        elif found := re.fullmatch(r"typedef (.+?[\s*])(\w+)\((.*)\)", statement):
            if (parameters := self.parameters(found[3])) is not None:
                self.functions[found[2]] = found[1].strip(), found[3]
                self.lines.append(f"ctypedef {found[1].strip()} {found[2]}({parameters}) noexcept")
        elif found := re.fullmatch(r"(?!typedef)(.+?[\s*])(cuplug_(?!_)\w+) ?\((.*)\)", statement):
            self.function(found[1].strip(), found[2], found[3], is_public)
        elif (found := re.fullmatch(r"(\w+) (\w+)", statement)) and found[1] in self.functions:
            result, parameters = self.functions[found[1]]
            self.function(result, found[2], parameters, is_public)

    def declare(self, text: str) -> None:
        """Declare what headers have after the preprocessor."""
        found = statements(text)
        opaque = set(re.findall(r"typedef (?:struct|union) \w+ (\w+);", text))
        self.types |= {m[1] for x in found if (m := re.search(r"\} (cuplug_\w+)$", x))}
        self.types |= {m[1] for x in found if (m := re.match(r"typedef .+?[\s*](\w+)\(", x))}
        self.types |= defined_in(found)
        for name in sorted(opaque - defined_in(found) - self.later - self.types):
            self.lines += [f"ctypedef struct {name}:", "    pass"]
        self.types |= opaque - self.later
        self.typedefs |= opaque
        for statement in found:
            if statement not in self.seen:
                self.add(statement)
            self.seen.add(statement)


def defined_in(found: list[str]) -> set[str]:
    """Return the structures and unions that statements define."""
    matches = (re.match(r"(?:typedef )?(?:struct|union) (\w+) \{", x) for x in found)
    return {x[1] for x in matches if x}


def main() -> None:
    """Write all files."""
    folder, compiler = Path(sys.argv[1]), sys.argv[2:]
    shared = set(SHARED_FUNCTIONS.findall((INCLUDE / "internal/functions.h").read_text()))
    texts = {
        name: {header: preprocess(header, own, compiler) for header in headers}
        for name, (headers, own) in FILES.items()
    }
    later = defined_in(statements("\n".join(text for text, _ in texts[CALL].values())))
    d = Declarations(shared, later)
    folder.mkdir(parents=True, exist_ok=True)
    above = ""
    for name, files in texts.items():
        lines = ["# The declarations of our headers, by build_backend/declarations.py.", *COMMON]
        lines += [f"from {PACKAGE}.{above} cimport *"] if above else []
        numbers = [f"    {x}" for x in constants({x for _, read in files.values() for x in read})]
        for header, (text, _) in files.items():
            d.lines = ["enum:", *numbers] if numbers else []
            d.lines += ["const char *CUPLUG_VERSION"] if name == CORE else []
            numbers = []
            d.declare(text)
            if name == CALL:
                d.declare(";".join([*d.skipped, ""]))
            lines += ["", f'cdef extern from "{header}" nogil:', *(f"    {x}" for x in d.lines)]
        write(folder / name, "\n".join(lines) + "\n")
        d.later, above = set(), name.removesuffix(".pxd")


def write(path: Path, text: str) -> None:
    """Write a file if its text differs, since Cython translates newer files again."""
    if not path.is_file() or path.is_symlink() or path.read_text() != text:
        path.unlink(missing_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()

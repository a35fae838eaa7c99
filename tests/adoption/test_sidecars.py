# SPDX-License-Identifier: Apache-2.0
"""Adopted libraries on the search path: found, listed, trusted and shadowed like plugins."""

import hashlib
import os
import pickle
import shutil
from pathlib import Path

import cuplug
import numpy as np
import pytest
from cuplug._integration.author.check import check_file
from places import FIXTURES
from processes import NEEDS_ROOT
from raw_plugins import listed, listed_in, named_plugin

pytest.importorskip("cffi")

DESCRIPTION = """
prototypes = "int Gather(float *source, int *index, float *res, int N, int M);"

[pick]
function = "Gather"
signature = "pick(source: float32[m], index: int32[n]) -> result: float32[n]"
arguments = "source, index, result, n, m"
"""
SOURCE, INDEX = np.float32([10, 20, 30]), np.int32([2, 0])


@pytest.fixture
def put(build_plugin):
    """Return a function that puts a library and its description into a directory."""
    library = build_plugin(FIXTURES / "plain.c", "plain", extra=["-fvisibility=default"])

    def put(directory, name="plain", description=DESCRIPTION):
        path = Path(shutil.copy(library, directory / f"lib{name}.so"))
        sidecar = path.with_suffix(".cuplug.toml")
        sidecar.write_text(description)
        for file in (path, sidecar):
            file.chmod(0o644)
        return path

    return put


def test_dropped_into_a_folder(place, put):
    path = put(place)
    from cuplug.ops import pick

    assert pick(SOURCE, INDEX).tolist() == [30, 10]
    assert (pick.plugin, pick.path) == ("plain", str(path))
    assert cuplug.find("plain.pick") is cuplug.ops.pick is pick
    assert pickle.loads(pickle.dumps(pick)) is pick
    assert "pick" in dir(cuplug.ops)
    with pytest.raises(TypeError, match="pick: source: "):
        pick(SOURCE.astype("float64"), INDEX)


def test_listed_without_being_loaded(place, put, run_python):
    path = put(place)
    code = (
        "import cuplug\n"
        f"(x,) = [p for p in cuplug.plugins() if p.path == {str(path)!r}]\n"
        "assert (x.kind, x.name, x.state, x.origin, x.operators, x.device_types, x.loaded) == "
        "('adopted', 'plain', 'ok', 'LD_LIBRARY_CUPLUG_PATH', ('pick',), ('cpu',), False), x\n"
        "cuplug.find('pick')\n"
        f"assert [p.loaded for p in cuplug.plugins() if p.path == {str(path)!r}] == [True]\n"
        "print('done')"
    )
    done = run_python(code)
    assert done.stdout == "done\n", done.stderr


def test_among_the_libraries_of_the_dynamic_linker(place, put, tmp_path, monkeypatch):
    path = put(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    assert listed(path).origin == "LD_LIBRARY_PATH"
    assert cuplug.ops.pick(SOURCE, INDEX).tolist() == [30, 10]


def test_the_first_directory_goes_first(place, put, tmp_path, monkeypatch):
    later = tmp_path / "later"
    later.mkdir(mode=0o755)
    first, second, other = put(place), put(later), put(later, "other")
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{later}")
    assert cuplug.find("pick").path == str(first)
    assert listed(second).state == "shadowed"
    assert listed(second).reason == f"shadowed by {first}"
    assert cuplug.find("other.pick").path == str(other)
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{later}:{place}")
    assert cuplug.find("plain.pick").path == str(second)


def test_a_file_of_the_operators_name_goes_first(place, put):
    put(place, "aaa")
    pick = put(place, "pick")
    assert cuplug.find("pick").path == str(pick)


def test_plugins_go_before(place, put, tmp_path, monkeypatch):
    later = tmp_path / "later"
    later.mkdir(mode=0o755)
    adopted, plugin = put(place), named_plugin(later / "libplain.so", "plain")
    named_plugin(later / "libpick.so", "pick")
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{place}:{later}")
    assert cuplug.find("pick").path == str(later / "libpick.so")
    assert listed(adopted).reason == f"shadowed by {plugin}"
    with pytest.raises(cuplug.NotFoundError, match='plugin "plain" .* has no operator "pick"'):
        cuplug.find("plain.pick")


def test_a_plugin_needs_no_description(place, put):
    put(place)
    named_plugin(place / "libplain.so", "plain")
    assert [(p.name, p.kind) for p in listed_in(place)] == [("plain", "plugin")]


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("prototypes =", "the description cannot be read: "),
        ("[pick]\nsignature = ''", "prototypes: got None, expected C declarations"),
        ("prototypes = 'int Ping(void);'", "its description has no operator"),
        (DESCRIPTION.replace("arguments", "given"), "pick: got function, .*expected signature"),
        (DESCRIPTION.replace("float32[m]", "float32[m"), "expected ',' or ']'"),
    ],
)
def test_what_is_wrong_with_a_description_is_listed(place, put, description, reason):
    path = put(place, description=description)
    record = listed(path)
    assert (record.state, record.kind) == ("rejected", "adopted")
    with pytest.raises(cuplug.NotFoundError, match=f"\n  rejected: {path}: .*{reason}"):
        cuplug.find("pick")
    with pytest.raises(cuplug.PluginError, match=f"^{path}: .*{reason}"):
        cuplug.load(path)


def test_what_does_not_fit_the_prototypes_is_told_when_it_is_found(place, put):
    path = put(place, description=DESCRIPTION.replace("n, m", "n"))
    with pytest.raises(cuplug.PluginError, match=f"^{path}: pick: arguments: got 4, expected 5"):
        cuplug.find("pick")


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        (
            DESCRIPTION.replace("n, m", "n, k"),
            "pick: arguments: got k, expected a parameter, or a di",
        ),
        (DESCRIPTION.replace("n, m", "n"), "pick: arguments: got 4, expected 5"),
        (DESCRIPTION.replace('"Gather"', '"Other"'), "pick: function: got 'Other', expected a fun"),
        (DESCRIPTION.replace("int Gather", "long double Gather"), "pick: got long double"),
        (DESCRIPTION.replace(" float32[n]", " float32[?]"), "got ?, expected sizes that are known"),
        (DESCRIPTION.replace("source: float32[m]", "source: float64[m]"), "got source, expected"),
        (DESCRIPTION + 'returns = "luck"', "pick: returns: got 'luck'"),
        (DESCRIPTION.replace("(float", f"({'(' * 8000}float"), "more than 100 nested brackets"),
        (DESCRIPTION.replace("N, int M", f"N, int M[{'-' * 8000}1]"), "nested too deep"),
        (DESCRIPTION.replace("n, m", f"n, {'(' * 8000}m{')' * 8000}"), "at most 16 nested"),
        (DESCRIPTION.replace("[m]", f"[{'(' * 8000}m{')' * 8000}]"), "signature: "),
    ],
    ids=range(11),
)
def test_a_wrong_description_hides_no_other(place, put, description, reason):
    """A wrong description is listed as rejected, and a correct one of another library is found."""
    wrong = put(place, "aaa", description)
    assert listed(wrong).state == "rejected"
    assert reason in listed(wrong).reason
    with pytest.raises((cuplug.NotFoundError, cuplug.PluginError)) as raised:
        cuplug.find("pick")
    assert reason in str(raised.value)
    put(place, "good")
    assert cuplug.find("pick").plugin == "good"
    assert cuplug.find("pick")(SOURCE, INDEX).tolist() == [30, 10]


def test_check_judges_the_description(place, put):
    good, wrong = put(place), put(place, "aaa", DESCRIPTION.replace("n, m", "n, k"))
    (finding,) = check_file(str(good))
    assert (finding.level, finding.rule) == ("ok", "description")
    assert finding.text == "libplain.cuplug.toml describes pick"
    (finding,) = check_file(str(wrong))
    assert finding.level == "error"
    assert "pick: arguments: got k, expected a parameter" in finding.text
    good.with_suffix(".cuplug.toml").unlink()
    assert "CUPLUG_PLUGIN" in "".join(x.advice for x in check_file(str(good)))


def test_a_library_without_its_function_hides_no_other(place, put):
    wrong = put(place, "aaa", DESCRIPTION.replace("Gather", "Nothing"))
    assert listed(wrong).state == "ok"
    with pytest.raises(cuplug.PluginError, match="pick: Nothing: "):
        cuplug.find("pick")
    put(place, "good")
    assert cuplug.find("pick").plugin == "good"


def test_a_description_without_its_library(place, put):
    path = put(place)
    path.unlink()
    assert listed(path).reason == "no such file"
    with pytest.raises(cuplug.NotFoundError, match=f"\n  rejected: {path}: no such file"):
        cuplug.find("pick")


ODD = {
    "nested brackets": ("a = " + "[" * 20_000, "the description cannot be read"),
    "a deep key": ("a" + ".a" * 20_000 + " = 1", "line 1: got 20000 dots, expected at most 100"),
    "many keys": ("\n".join(f"a.b{k} = 1" for k in range(20_000)), "got 65537 bytes or more"),
    "no text": (b"\xff\xfe", "the description cannot be read"),
    "a line break in a name": (DESCRIPTION.replace("[pick]", '["a\\nb"]'), r"got the key 'a\nb'"),
    "a dot in a name": (DESCRIPTION.replace("[pick]", '["a.b"]'), "got the key 'a.b'"),
    "a long name": (DESCRIPTION.replace("[pick]", f"[{'a' * 64}]"), "at most 63 ASCII characters"),
    "another name": (
        DESCRIPTION.replace("[pick]", "[other]"),
        "signature: got pick, expected other",
    ),
    "two lines of doc": (DESCRIPTION + 'doc = "a\\nb"', r"doc: got 'a\nb', expected one line"),
    "a date": ("prototypes = 1979-05-27", "expected C declarations"),
}


@pytest.mark.parametrize(("content", "reason"), ODD.values(), ids=ODD)
def test_an_odd_description_ends_no_listing(place, put, content, reason):
    put(place)
    odd = put(place, name="odd")
    data = content if isinstance(content, bytes) else content.encode()
    odd.with_suffix(".cuplug.toml").write_bytes(data)
    record = listed(odd)
    assert record.state == "rejected"
    assert reason in record.reason
    assert record.operators == ()
    assert len(record.reason.splitlines()) == 1
    assert cuplug.find("pick").plugin == "plain"


def test_a_huge_description_ends_no_listing(place, put):
    odd = put(place, name="odd")
    os.truncate(odd.with_suffix(".cuplug.toml"), 1 << 40)
    assert listed(odd).reason.endswith("got 65537 bytes or more, expected at most 65536")


@pytest.mark.parametrize("suffix", [".so", ".cuplug.toml"])
def test_neither_file_may_be_written_by_anyone(place, put, suffix, monkeypatch):
    path = put(place)
    path.with_suffix(suffix).chmod(0o646)
    assert "anyone may write it (mode 646)" in listed(path).reason
    ways = (lambda: cuplug.find("pick"), lambda: cuplug.load(path), lambda: cuplug.adopt(path))
    for look in ways:
        with pytest.raises((cuplug.NotFoundError, cuplug.PluginError), match="anyone may write"):
            look()
    monkeypatch.setenv("CUPLUG_ALLOW_UNSAFE", "1")
    assert cuplug.find("pick")(SOURCE, INDEX).tolist() == [30, 10]


def test_a_name_without_a_folder_has_no_description_in_the_current_directory(
    put, place, monkeypatch
):
    path = put(place)
    monkeypatch.chdir(place)
    with pytest.raises(ValueError, match=rf"{path.name} without a folder and no description, exp"):
        cuplug.adopt(path.name)
    assert cuplug.adopt(f"./{path.name}").pick(SOURCE, INDEX).tolist() == [30, 10]


@NEEDS_ROOT
@pytest.mark.parametrize("suffix", [".so", ".cuplug.toml"])
def test_neither_file_may_belong_to_another_user(place, put, suffix):
    path = put(place)
    os.chown(path.with_suffix(suffix), 12345, -1)
    assert "owned by user 12345" in listed(path).reason


def test_refused_directories_are_not_looked_in(place, put):
    put(place)
    place.chmod(0o777)
    with pytest.raises(cuplug.NotFoundError, match="not searched: .*anyone may write it"):
        cuplug.find("pick")


def test_both_files_must_be_on_the_allow_list(place, put, tmp_path, monkeypatch):
    path = put(place)
    digests = [
        hashlib.sha256(path.with_suffix(suffix).read_bytes()).hexdigest()
        for suffix in (".so", ".cuplug.toml")
    ]
    allowed = tmp_path / "allowed"
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", str(allowed))
    for some in ([], digests[:1], digests[1:]):
        allowed.write_text("".join(f"{digest}\n" for digest in some))
        assert "not on the allow-list" in listed(path).reason
    allowed.write_text("".join(f"{digest}\n" for digest in digests))
    assert listed(path).state == "ok"


def test_load(place, put, tmp_path, run_python):
    path = put(tmp_path)
    code = (
        "import cuplug, numpy as np\n"
        f"plain = cuplug.load({str(path)!r})\n"
        "found = plain.pick(np.float32([10, 20]), np.int32([1]))\n"
        "assert found.tolist() == [20]\n"
        "assert cuplug.ops.pick is plain.pick\n"
        "assert [p.origin for p in cuplug.plugins() if p.kind == 'adopted'] == ['loaded']\n"
        "print('done')"
    )
    done = run_python(code)
    assert done.stdout == "done\n", done.stderr
    path.with_suffix(".cuplug.toml").unlink()
    with pytest.raises(cuplug.PluginError, match="no symbol table"):
        cuplug.load(path)

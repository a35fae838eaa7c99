# SPDX-License-Identifier: Apache-2.0
"""Operators pickled in one process and used in another, which must have the same code."""

import hashlib
import pickle
import pickletools

import cuplug
import pytest
from raw_plugins import named_plugin, quoted


@pytest.fixture
def library(place):
    """Return a plugin on the search path."""
    return named_plugin(place / "libsent.so", "sent", VERSION=quoted("1.0"))


def received(data, run_python, folder):
    """Return the output of a process with plugins in a folder for pickled data."""
    code = (
        "import cuplug, pickle\n"
        "try:\n"
        f"    print(pickle.loads({data!r}).version)\n"
        "except cuplug.PluginError as error:\n"
        "    print(error)\n"
    )
    return run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(folder)}).stdout


def digest(file):
    """Return the SHA-256 of a file, as digits."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_same_file_elsewhere(library, tmp_path, run_python):
    data = pickle.dumps(cuplug.find("sent"))
    other = tmp_path / "other"
    other.mkdir()
    named_plugin(other / "libsent.so", "sent", VERSION=quoted("1.0"))
    (other / "libsent.so").write_bytes(library.read_bytes())
    assert received(data, run_python, other) == "1.0\n"
    assert pickle.loads(data) == cuplug.find("sent")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_another_file_is_refused(library, tmp_path, run_python, version):
    data = pickle.dumps(cuplug.find("sent"))
    other = tmp_path / "other"
    other.mkdir()
    file = named_plugin(other / "libsent.so", "sent", VERSION=quoted(version), DOC=quoted("New."))
    assert received(data, run_python, other) == (
        f"sent.sent: got version {version} with SHA-256 {digest(file)}, in {file}, "
        f"expected version 1.0 with SHA-256 {digest(library)}\n"
    )


def test_pickles_without_a_digest(library, run_python, place):
    data = b"ccuplug\nfind\n(S'sent.sent'\ntR."
    assert received(data, run_python, place) == "1.0\n"
    assert pickle.loads(data) is not None


def test_a_missing_plugin_is_an_error_of_the_call(library, tmp_path, run_python):
    """Unpickling, whose errors end workers, does not raise. The object can be pickled again."""
    data = pickle.dumps(cuplug.find("sent"))
    code = (
        "import cuplug, pickle, shutil, sys\n"
        f"sent = pickle.loads(pickle.dumps(pickle.loads({data!r})))\n"
        "print(sent.name, type(sent).__name__, hasattr(sent, 'shape'))\n"
        "try:\n"
        "    sent(1)\n"
        "except cuplug.PluginError as error:\n"
        "    print(isinstance(error, cuplug.NotFoundError), str(error).splitlines()[0])\n"
        f"shutil.copy({str(library)!r}, {str(tmp_path)!r})\n"
        "print(sent.version)\n"
    )
    shown = run_python(code, env={"LD_LIBRARY_CUPLUG_PATH": str(tmp_path)}).stdout
    assert shown == (
        "sent PickledOperator False\n"
        "True sent.sent: got no such plugin, expected version 1.0 with SHA-256 "
        f"{digest(library)}; install its file here, or bring it with cuplug.dask.Plugins\n"
        "1.0\n"
    )


@pytest.mark.parametrize("known", [(), ("1.0",)])
def test_a_missing_operator_without_version_and_digest(known):
    missing = cuplug.PickledOperator(cuplug.find, ("no_such_plugin.twice", *known))
    with pytest.raises(cuplug.NotFoundError, match='no plugin "no_such_plugin"'):
        missing(1)


def test_what_is_in_a_pickle(library):
    data = pickle.dumps(cuplug.find("sent"), protocol=2)
    texts = [arg for code, arg, _ in pickletools.genops(data) if code.name == "BINUNICODE"]
    assert texts == ["sent.sent", "1.0", digest(library)]


def test_a_file_that_was_replaced(library, place):
    """The code that ran does not exist any more, and the existing code did not run."""
    operator = cuplug.find("sent")
    operator.load()
    named_plugin(place / "fresh", "sent", VERSION=quoted("2.0")).replace(library)
    with pytest.raises(cuplug.PluginError, match="libsent.so: no longer the file whose table"):
        pickle.dumps(operator)
    cuplug.reload(operator)
    assert pickle.loads(pickle.dumps(operator)).version == "2.0"


def test_what_is_known_stays_known(library, place):
    operator = cuplug.find("sent")
    data = pickle.dumps(operator)
    library.unlink()
    assert pickle.dumps(operator) == data


def test_a_version_and_a_digest_can_be_asked_for(library):
    assert cuplug.find("sent", "1.0", digest(library)) == cuplug.find("sent")
    assert cuplug.find("sent", digest=digest(library)).version == "1.0"
    with pytest.raises(cuplug.PluginError, match=r"got version 1.0, in .*, expected version 2"):
        cuplug.find("sent", version="2")
    with pytest.raises(cuplug.PluginError, match=f"expected SHA-256 {'0' * 64}$"):
        cuplug.find("sent", digest="0" * 64)

# SPDX-License-Identifier: Apache-2.0
"""The plugins of an application, by digests: `cuplug lock` and `cuplug list --locked`."""

import json
import os
import shutil
import signal
import subprocess
import sys

import cuplug
import pytest
from click.testing import CliRunner
from cuplug._integration.commands.cli import main
from raw_plugins import named_plugin, quoted

pytestmark = pytest.mark.usefixtures("place")


def run(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(main, arguments)


@pytest.fixture
def lock(place, tmp_path):
    """Return the lock of a plugin in the first folder, with the libraries that it links."""
    named_plugin(place / "libours.so", "ours")
    named_plugin(place / "libothers.so", "others")
    done = run("lock", "ours", "-o", str(tmp_path / "cuplug.lock"))
    assert done.exit_code == 0, done.output
    assert "1 plugins, " in done.output
    (tmp_path / "cuplug.lock").chmod(0o644)
    return tmp_path / "cuplug.lock"


@pytest.fixture
def keys(tmp_path):
    """Return two keys, and an allowed_signers file that lists the first one."""
    if not shutil.which("ssh-keygen"):
        pytest.skip("no ssh-keygen")
    ours, others, signers = tmp_path / "-ours", tmp_path / "others", tmp_path / "signers"
    for key in (ours, others):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)]
        subprocess.run(command, check=True)
    signers.write_text(f"ada@example.com {ours.with_suffix('.pub').read_text()}")
    return ours, others, signers


def signed(lock, key):
    """Write the lock again, with a signature."""
    done = run("lock", "ours", "-o", str(lock), "--sign", str(key), "--json")
    assert (done.exit_code, json.loads(done.output)["signature"]) == (0, f"{lock}.sig")
    return lock


def states(lock):
    """Return the state of each file, by its name."""
    done = run("list", "--locked", str(lock), "--json")
    told = json.loads(done.output)
    found = {x["file"]: x["state"] for x in told["files"]}
    assert told["ok"] == (set(found.values()) == {"same"}) == (done.exit_code == 0)
    return found


def test_it_is_an_allow_list(lock, monkeypatch):
    assert "# ours " in lock.read_text()
    assert subprocess.run(["sha256sum", "-c", "--quiet", lock], check=False).returncode == 0
    monkeypatch.setenv("CUPLUG_ALLOW_LIST", str(lock))
    assert [p.name for p in cuplug.plugins() if p.state == "ok"] == ["ours"]


def test_what_is_the_same(lock, place, tmp_path):
    assert set(states(lock).values()) == {"same"}
    assert "libours.so" in states(lock)
    assert "libothers.so" not in states(lock)
    assert run("list", "--locked", str(lock)).output.startswith("state  file")


def test_what_has_changed(lock, place):
    named_plugin(place / "libours.so", "ours", VERSION=quoted("9.9"))
    assert states(lock)["libours.so"] == "changed"
    (place / "libours.so").unlink()
    assert states(lock)["libours.so"] == "missing"


def test_a_plugin_that_comes_before(lock, place, tmp_path, monkeypatch):
    before = tmp_path / "before"
    before.mkdir(mode=0o755)
    named_plugin(before / "libours.so", "ours", VERSION=quoted("0.1"))
    monkeypatch.setenv("LD_LIBRARY_CUPLUG_PATH", f"{before}:{place}")
    assert states(lock)["libours.so"] == "changed"


def test_a_library_that_a_plugin_links(place, tmp_path, monkeypatch):
    libraries = tmp_path / "libraries"
    libraries.mkdir(mode=0o755)
    gcc = ["gcc", "-shared", "-fPIC", "-xc", "-"]
    wanted = libraries / "libwanted.so"
    subprocess.run([*gcc, "-o", wanted], input=b"int wanted(void) { return 1; }", check=True)
    source = tmp_path / "user.c"
    source.write_text(
        "#include <cuplug/plugin.h>\nint wanted(void);\n"
        "CUPLUG_ENTRY int user_host(const cuplug_call *c) { (void)c; return wanted() - 1; }\n"
        'CUPLUG_HOST_OPERATOR(user_host, "user()", "Uses another library.");\n'
        'CUPLUG_PLUGIN(user, "1.0");\n'
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", str(libraries))
    options = [f"-L{libraries}", "-lwanted", "-Wl,--no-as-needed"]
    shutil.copy(cuplug.build(source, options=["-Wl,--no-as-needed", *options]), place)
    lock = tmp_path / "own.lock"
    assert run("lock", "user", "-o", str(lock)).exit_code == 0
    assert states(lock)["libwanted.so"] == "same"
    subprocess.run([*gcc, "-o", wanted], input=b"int wanted(void) { return 2; }", check=True)
    assert states(lock)["libwanted.so"] == "changed"
    wanted.unlink()
    done = run("lock", "user", "-o", str(lock))
    assert "missing libraries: libwanted.so" in done.output


def test_an_adopted_library_with_its_description(place, tmp_path):
    pytest.importorskip("cffi")
    plain = place / "libplain.so"
    gcc = ["gcc", "-shared", "-fPIC", "-xc", "-", "-o", plain]
    subprocess.run(gcc, input=b"int zero(void) { return 0; }", check=True)
    plain.chmod(0o755)
    description = place / "libplain.cuplug.toml"
    description.write_text(
        'prototypes = "int zero(void);"\n[zero]\nsignature = "zero()"\narguments = ""\n'
    )
    description.chmod(0o644)
    lock = tmp_path / "own.lock"
    # A separate process, as this one may have loaded plugins from other folders.
    subprocess.run([sys.executable, "-m", "cuplug", "lock", "-o", lock], check=True)
    assert states(lock)["libplain.cuplug.toml"] == "same"
    description.write_text(description.read_text() + "# more\n")
    assert states(lock)["libplain.cuplug.toml"] == "changed"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "no such file: `cuplug lock` writes it"),
        ("sha256 x\n", "line 1: got 'sha256 x', expected a digest and a file"),
    ],
)
def test_what_is_no_lock(text, sentence, tmp_path):
    lock = tmp_path / "cuplug.lock"
    if text:
        lock.write_text(text)
    done = run("list", "--locked", str(lock))
    assert (done.exit_code, sentence in done.output) == (1, True)


def test_the_usual_name(lock, monkeypatch):
    monkeypatch.chdir(lock.parent)
    assert run("list", "--locked").exit_code == 0


@pytest.mark.parametrize("path", ["/dev/zero", "/dev", "FIFO", "LARGE"])
def test_locks_and_plugins_that_have_no_end(path, tmp_path):
    if path == "FIFO":
        path = str(tmp_path / "fifo")
        os.mkfifo(path)
    if path == "LARGE":
        path = str(tmp_path / "large")
        with open(path, "wb") as file:
            file.truncate(1 << 40)
    for arguments in (["list", "--locked", path], ["install", path, "--to", str(tmp_path)]):
        if arguments[0] == "install" and path.endswith("large"):
            continue
        done = run(*arguments)
        assert done.exit_code == 1, done.output
        assert "Traceback" not in done.output


def test_a_signed_lock(lock, keys, monkeypatch, place):
    ours, _, signers = keys
    monkeypatch.chdir(ours.parent)
    signed(lock, ours.name)  # a name that begins with "-"
    done = run("list", "--locked", str(lock), "--signers", str(signers))
    assert done.exit_code == 0
    assert done.output.startswith(f"{lock}: signed by ada@example.com\nstate  file")
    told = run("list", "--locked", str(lock), "--signers", str(signers), "--json")
    assert json.loads(told.output)["signer"] == "ada@example.com"
    assert json.loads(run("list", "--locked", str(lock), "--json").output)["signer"] is None
    named_plugin(place / "libours.so", "ours", VERSION=quoted("9.9"))
    done = run("list", "--locked", str(lock), "--signers", str(signers))
    assert (done.exit_code, "changed  libours.so" in done.output) == (1, True)


def test_the_agent_signs_for_a_public_key(lock, keys, monkeypatch):
    ours, _, signers = keys
    socket = ours.parent / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL) as agent:
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        while subprocess.run(["ssh-add", "-q", "--", ours], check=False).returncode:
            assert agent.poll() is None
        ours.unlink()
        signed(lock, f"{ours}.pub")
        agent.terminate()
    assert run("list", "--locked", str(lock), "--signers", str(signers)).exit_code == 0


def unsigned(lock, keys):
    run("lock", "ours", "-o", str(lock))  # it removes the signature of the earlier one


def altered(lock, keys):
    lock.write_text(lock.read_text() + f"{'0' * 64}  libmore.so\n")


def of_another_key(lock, keys):
    signed(lock, keys[1])


def for_another_purpose(lock, keys):
    os.unlink(f"{lock}.sig")
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", keys[0], lock], check=True
    )


def not_a_signature(lock, keys):
    with open(f"{lock}.sig", "w") as file:
        file.write("none\n")


def not_yet_valid(lock, keys):
    text = keys[2].read_text().replace(" ssh-", ' valid-after="29990101" ssh-')
    keys[2].write_text(text)


def no_signers(lock, keys):
    keys[2].unlink()


def no_program(lock, keys):
    os.environ["PATH"] = str(lock.parent)


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (unsigned, "got no signature LOCK.sig, expected one of SIGNERS; sign the lock with"),
        (altered, "got a lock that differs from the signed one"),
        (of_another_key, "got a signature whose key is not valid, expected a key of SIGNERS ("),
        (for_another_purpose, "or a signature for another purpose (Could"),
        (not_a_signature, "got a signature whose key is not valid, expected a key of SIGNERS ("),
        (not_yet_valid, "not yet valid"),
        (no_signers, "SIGNERS: no such file, expected names and public keys of signers"),
        (no_program, "ssh-keygen: No such file or directory; install OpenSSH 8.2 or newer"),
    ],
)
def test_signatures_that_are_not_valid(alter, message, lock, keys, monkeypatch):
    signed(lock, keys[0])
    monkeypatch.setenv("PATH", os.environ["PATH"])
    alter(lock, keys)
    done = run("list", "--locked", str(lock), "--signers", str(keys[2]))
    assert done.exit_code == 1
    assert message.replace("LOCK", str(lock)).replace("SIGNERS", str(keys[2])) in done.output


@pytest.mark.parametrize("alter", [altered, of_another_key])
def test_statuses_of_ssh_keygen_that_are_lost(alter, lock, keys):
    signed(lock, keys[0])
    alter(lock, keys)
    handler = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        done = run("list", "--locked", str(lock), "--signers", str(keys[2]))
    finally:
        signal.signal(signal.SIGCHLD, handler)
    assert (done.exit_code, "signed by" in done.output) == (1, False)


def test_a_lock_that_cannot_be_signed(lock, keys, monkeypatch):
    done = run("lock", "ours", "-o", str(lock), "--sign", str(lock.parent / "missing"))
    assert (done.exit_code, "ssh-keygen did not sign it with" in done.output) == (1, True)
    monkeypatch.setenv("PATH", str(lock.parent))
    done = run("lock", "ours", "-o", str(lock), "--sign", str(keys[0]))
    assert (done.exit_code, "install OpenSSH" in done.output) == (1, True)


def test_signers_without_a_lock(tmp_path):
    done = run("list", "--signers", str(tmp_path))
    assert (done.exit_code, "--signers goes with --locked" in done.output) == (2, True)

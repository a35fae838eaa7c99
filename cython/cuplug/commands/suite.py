# SPDX-License-Identifier: Apache-2.0
"""Property tests of a plugin or an operator: `cuplug test`."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from typing import Any

from cuplug.base.flags import PACKAGE
from cuplug.call.operator import Operator
from cuplug.compilers.toolkit import find_nvcc
from cuplug.cuda.devices import available_devices
from cuplug.lookup.find import find, load
from cuplug.signature.signature import parse

LIMIT_S = 600.0
NO_GPU = "there is no GPU to use; `cuplug doctor` says why"
SANITIZER_EXAMPLES = 5
SANITIZER_STATUS = 86


@dataclass
class Result:
    """What came of one property of one signature."""

    operator: str
    signature: str
    property: str
    ok: bool
    text: str = ""  # what was seen
    code: str = ""  # the smallest example that fails, as Python
    tried: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return asdict(self)


def try_all(what: str, examples: int = 30, seed: int = 0) -> list[Result]:
    """Try all properties of a plugin file, or of an operator by its name.

    Parameters
    ----------
    what : str
        The path of a plugin, or "operator", or "plugin.operator".
    examples : int
        Random calls for each property.
    seed : int
        Chooses them.

    Raises
    ------
    ModuleNotFoundError
        Hypothesis is not installed.
    """
    if not importlib.util.find_spec("hypothesis"):
        message = "cuplug test needs the package hypothesis: pip install hypothesis"
        raise ModuleNotFoundError(message)
    is_file = os.path.exists(what) or os.sep in what
    operators = load(what).operators if is_file else (find(what),)
    has_gpu = bool(available_devices())
    results: list[Result] = []
    for operator in operators:
        for signature in operator.signatures:
            options = {
                "what": os.path.abspath(what) if is_file else what,
                "operator": operator.name,
                "signature": signature,
                "examples": examples,
                "seed": seed,
            }
            results += _try_signature(operator, options, has_gpu)
    return results


def _try_signature(operator: Operator, options: dict[str, Any], has_gpu: bool) -> list[Result]:
    from cuplug.commands.trial import BOTH, CUDA, HOST

    results = []
    if "cpu" in operator.sides:
        results += _try(list(HOST), options | {"device": "cpu"})
    if "cuda" in operator.sides and not has_gpu:
        results.append(Result(*_place(options), "CUDA", True, f"not tried: {NO_GPU}", tried=False))
    elif "cuda" in operator.sides:
        both = list(BOTH) if "cpu" in operator.sides else []
        results += _try([*CUDA, *both], options | {"device": "cuda"})
        results += _sanitize(options | {"device": "cuda"})
    return results


def _try(names: list[str], options: dict[str, Any]) -> list[Result]:
    """Try properties in one process, and after a crash go on with the next in another."""
    results: list[Result] = []
    while names:
        lines, ending = _run([], options | {"properties": names, "isolate": False})
        done = [line for line in lines if "ok" in line]
        results += [_result(options, line) for line in done]
        names = names[len(done) :]
        if names:
            last = [line["example"] for line in lines if line.get("property") == names[0]]
            crash = Result(*_place(options), names[0], False, ending, last[-1] if last else "")
            results.append(_smallest(crash, options))
            names = names[1:]
    return results


def _smallest(crash: Result, options: dict[str, Any]) -> Result:
    """Look for the smallest example of a crash; CUDA cannot be used in forks."""
    if options["device"] != "cpu":
        return crash
    lines, _ = _run([], options | {"properties": [crash.property], "isolate": True})
    failed = [line for line in lines if line.get("ok") is False]
    return _result(options, failed[0]) if failed else crash


def _run(prefix: list[str], options: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Run a trial; return its lines and how it ended."""
    command = [*prefix, sys.executable, "-m", "cuplug.commands.trial", json.dumps(options)]
    root = os.path.dirname(PACKAGE)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as scratch:  # Hypothesis keeps files where it runs
        env = os.environ | {"PYTHONPATH": path, "HYPOTHESIS_STORAGE_DIRECTORY": scratch}
        return _run_command(command, env)


def _run_command(command: list[str], env: dict[str, str]) -> tuple[list[dict[str, Any]], str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=env)
        text, ending = done.stdout, _ending(done)
    except subprocess.TimeoutExpired as error:
        seen = error.stdout or b""
        text = seen if isinstance(seen, str) else seen.decode(errors="replace")
        ending = f"it did not come to its end in {LIMIT_S:.0f} s"
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")], ending


def _ending(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode < 0:
        return f"the process was ended by {signal.Signals(-done.returncode).name}"
    lines = done.stderr.strip().splitlines()
    return f"the process ended with status {done.returncode}" + (f": {lines[-1]}" if lines else "")


def _sanitize(options: dict[str, Any]) -> list[Result]:
    """Run a few examples under compute-sanitizer, when it is there."""
    toolkit = os.path.dirname(find_nvcc() or "")
    program = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=toolkit)
    if not program:
        return []
    name = "CUDA: the same result again"
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        prefix = [program, "--tool", "memcheck", "--error-exitcode", str(SANITIZER_STATUS)]
        some = {"properties": [name], "examples": SANITIZER_EXAMPLES, "isolate": False}
        lines, ending = _run([*prefix, "--log-file", log], options | some)
        seen = _read(log)
    found = ending.startswith(f"the process ended with status {SANITIZER_STATUS}")
    failed = found or not any(line.get("ok") for line in lines)
    codes = [line["example"] for line in lines if "example" in line]
    text = "\n".join(seen.splitlines()[:20]) or ending
    code = codes[-1] if codes else ""
    place = (*_place(options), "compute-sanitizer memcheck")
    return [Result(*place, False, text, code) if failed else Result(*place, True)]


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as file:
        return file.read()


def _place(options: dict[str, Any]) -> tuple[str, str]:
    return options["operator"], parse(options["signature"]).text


def _result(options: dict[str, Any], line: dict[str, Any]) -> Result:
    return Result(*_place(options), line["property"], line["ok"], line["text"], line["code"])

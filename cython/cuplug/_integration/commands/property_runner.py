# SPDX-License-Identifier: Apache-2.0
"""Property tests of a plugin or an operator: `cuplug test`."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from typing import Any

from cuplug._engine.base.flags import PACKAGE
from cuplug._engine.call.operator import Operator
from cuplug._engine.cuda.devices import devices
from cuplug._engine.lookup.find import find, load
from cuplug._engine.signature.signature import Signature, parse
from cuplug._integration.author.sources import libraries_at
from cuplug._integration.commands.overrides import (
    check_names,
    fixture_beside,
    function_names,
    is_needed,
    read_pins,
    settable,
)
from cuplug._integration.commands.property_outcomes import LATE, LOADING
from cuplug._source.compilers.processes import temporary_places
from cuplug._source.compilers.temporary import private_folder
from cuplug._source.compilers.toolkit import find_nvcc

LIMIT_S = 600.0
GRACE_S = 5.0  # time for a process to end after its limit
HANGS = "it did not end within"
OUT_OF_TIME = "out of time"
STUCK = (HANGS, OUT_OF_TIME)
NO_GPU = "there is no GPU to use; `cuplug doctor` says why"
# one or more of this number of calls must be accepted; otherwise nothing was tested
ACCEPTED_OF = 20
MOST_REFUSALS = 3  # messages that are shown
SANITIZER_EXAMPLES = 5
SANITIZER_STATUS = 86


@dataclass
class Result:
    """The result of one property of one signature."""

    operator: str
    signature: str
    property: str
    ok: bool
    text: str = ""  # the findings
    code: str = ""  # the smallest example that fails, as Python
    tried: bool = True
    calls: int = 0  # calls with arguments that the signature allows
    accepted: int = 0  # calls that the operator accepted

    def as_dict(self) -> dict[str, Any]:
        """Return the result for JSON."""
        return asdict(self)


def try_all(
    what: str,
    examples: int = 30,
    seed: int = 0,
    pins: dict[str, str] | None = None,
    fixture: str = "",
    budget: float = math.inf,
    report: Callable[[int, int, str], object] = lambda k, n, name: None,
) -> list[Result]:
    """Test all properties of a plugin file, or of an operator by its name.

    Parameters
    ----------
    what : str
        The path of a plugin or of its build folder, "operator", or "plugin.operator".
    examples : int
        Random calls for each property.
    seed : int
        The seed of the random calls.
    pins : dict, optional
        Values of scalars, strings and dimensions as text, by name: "3", or "0..8" for a range.
    fixture : str, optional
        A Python file with functions that create arguments and are named as the parameters. The
        default is lib<name>.fixture.py next to each library, if it exists.
    budget : float, optional
        Seconds for all tests. Those that do not run or finish in this time are skipped.
    report : callable, optional
        Called before each signature with its number from 1, the number of signatures and the
        operator's name.

    Raises
    ------
    ModuleNotFoundError
        Hypothesis is not installed.
    ValueError
        A name in `pins` does not exist or cannot have the value, no examples or time are left, or
        the fixture is not a Python file.
    """
    if not importlib.util.find_spec("hypothesis"):
        message = "cuplug test needs the package hypothesis: pip install hypothesis"
        raise ModuleNotFoundError(message)
    if examples < 1:
        raise ValueError(f"test: examples: got {examples}, expected 1 or more")
    if not budget > 0:
        raise ValueError(f"test: budget: got {budget:g}, expected more than 0 seconds")
    named = [(os.path.abspath(path), load(path).operators) for path in libraries_at(what)]
    named = named or [(what, (find(what),))]
    operators = tuple(operator for _, found in named for operator in found)
    pins = pins or {}
    _check_pins(operators, pins)
    has_gpu = bool(devices())
    rows: list[tuple[Operator, dict[str, Any]]] = [
        (operator, {"what": place, "operator": operator.name, "signature": signature})
        for place, found in named
        for operator in found
        for signature in operator.signatures
    ]
    end = time.monotonic() + budget
    results: list[Result] = []
    causes: dict[tuple[str, str], Result] = {}
    for number, (operator, options) in enumerate(rows):
        now = time.monotonic()
        report(number + 1, len(rows), operator.name)
        file = fixture or fixture_beside(operator.path)
        options |= {"examples": examples, "seed": seed, "pins": pins, "fixture": file}
        options["until"] = now + (end - now) / (len(rows) - number)
        found = _try_signature(operator, options, has_gpu)
        results += [_reported_once(r, operator.path, causes) for r in found]
    return results


def _reported_once(r: Result, path: str, causes: dict[tuple[str, str], Result]) -> Result:
    """Return a note in place of an error that was already reported, without an example.

    Nothing was tested: the plugin does not load, or no arguments for a signature were found.
    """
    if r.ok or r.code:
        return r
    place = path if r.property == LOADING else r.signature
    first = causes.setdefault((place, r.text.replace(f"{r.operator}: ", "", 1)), r)
    if first is r:
        return r
    other = f" of {first.operator}" if first.operator != r.operator else ""
    return replace(r, ok=True, text=f"not tried: as in: {first.property}{other}", tried=False)


def _check_pins(operators: tuple[Operator, ...], pins: dict[str, str]) -> None:
    signatures = [parse(text) for operator in operators for text in operator.signatures]
    names = [name for signature in signatures for name in settable(signature)]
    check_names("--set", pins, list(dict.fromkeys(names)))
    for signature in signatures:
        read_pins(signature, pins)


def _try_signature(operator: Operator, options: dict[str, Any], has_gpu: bool) -> list[Result]:
    from cuplug._integration.commands.promises import promised
    from cuplug._integration.commands.property_worker import BOTH, CUDA, HOST

    functions, signature = function_names(options["fixture"]), parse(options["signature"])
    for x in signature.parameters:
        if is_needed(operator, x, functions):
            text = (
                f"not tried: no operator of the plugin returns handle[{x.tag}] without a handle; "
                f"write a function {x.name} in a fixture"
            )
            return [Result(*_place(options), "handles", True, text, tried=False)]
    results = []
    declared = list(promised(operator, signature, functions))
    if "cpu" in operator.device_types:
        results += _try([*HOST, *declared], options | {"device": "cpu"}, "accepted calls")
    if "cuda" in operator.device_types and not has_gpu:
        results.append(Result(*_place(options), "CUDA", True, f"not tried: {NO_GPU}", tried=False))
    elif "cuda" in operator.device_types:
        both = list(BOTH) if "cpu" in operator.device_types else declared
        on_gpu = options | {"device": "cuda"}
        found = _try([*CUDA, *both], on_gpu, "CUDA: accepted calls")
        results += [*found, *([] if found[0].property == LOADING else _sanitize(on_gpu))]
    return results


def _try(names: list[str], options: dict[str, Any], accepted: str) -> list[Result]:
    """Test properties in one process until it ends, and the remaining ones in others.

    The remaining ones begin with the property in which the process ended. Each example then has its
    own fork or, with CUDA, each property its own process. If the plugin does not load, this is the
    only result. Otherwise, the last result is the number of accepted calls.
    """
    results: list[Result] = []
    told: list[dict[str, Any]] = []
    on_cpu, alone, suspect = options["device"] == "cpu", False, None
    names = [LOADING, *names]
    while names:
        if time.monotonic() > options["until"]:
            results += [_late(options, name) for name in names if name != LOADING]
            break
        batch = names if on_cpu or not alone else names[:1]
        how = {"properties": batch, "isolate": on_cpu and alone}
        lines, ending = _run([], options | how)
        done = [line for line in lines if "ok" in line]
        told += done
        found = [_result(options, line) for line in done]
        if suspect and found and found[0].ok:
            found[0] = suspect
        suspect = None
        results += [r for r in found if r.property != LOADING or not r.ok]
        names = names[len(done) :]
        if len(done) < len(batch) and ending:
            suspect = _crash(names[0], lines, ending, options)
            if alone or ending.startswith(STUCK):
                results.append(suspect)
                suspect, names = None, names[1:]
            else:
                others = ", ".join(name for name in batch if name != LOADING)
                suspect.text += f"; on its own it passes: {others} run in one process"
        if results and results[0].property == LOADING:
            return results
        alone = alone or len(done) < len(batch)
    usual = [line for line in told if line.get("kind") == "usual"]
    return [*results, _acceptance(options, usual, accepted)] if usual else results


def _late(options: dict[str, Any], name: str) -> Result:
    return Result(*_place(options), name, True, f"{LATE}: the time was used up", tried=False)


def _crash(name: str, lines: list[dict[str, Any]], ending: str, options: dict[str, Any]) -> Result:
    """Return the result of a property during which the process ended."""
    if ending == OUT_OF_TIME:
        return _late(options, name)
    codes = [line["example"] for line in lines if line.get("property") == name]
    return Result(*_place(options), name, False, ending, codes[-1] if codes else "")


def _acceptance(options: dict[str, Any], lines: list[dict[str, Any]], name: str) -> Result:
    """Report the number of accepted calls, and the messages that rejected others."""
    n_calls, n_accepted = (sum(line[key] for line in lines) for key in ("calls", "accepted"))
    refusals: Counter[str] = Counter()
    for line in lines:
        refusals.update(dict(line["refusals"]))
    text = [f"{n_accepted} of {n_calls}"]
    for sentence, n in refusals.most_common(MOST_REFUSALS):
        text.append(f"rejected {n} times: {sentence}" if n > 1 else f"rejected once: {sentence}")
    ok = n_accepted * ACCEPTED_OF >= n_calls
    if not ok:
        text.append(_advice(parse(options["signature"]), options["pins"]))
    place = _place(options)
    return Result(*place, name, ok, "\n".join(text), calls=n_calls, accepted=n_accepted)


def _advice(signature: Signature, pins: dict[str, str]) -> str:
    names = [name for name in settable(signature) if name not in pins]
    if not names:
        return "-> the operator rejects random arguments: test it with your own"
    choices = next((x.choices for x in signature.parameters if x.name == names[0]), ())
    first = f"--set {names[0]}="
    how = f"{first}{choices[0]}" if choices else f"{first}3 or {first}0..8"
    others = f"; you can also set {', '.join(names[1:])}" if names[1:] else ""
    return f"-> set accepted values, as in {how}{others}"


def _run(prefix: list[str], options: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """Run a trial; return its lines and how it ended, "" if it completed."""
    command = [
        *prefix,
        sys.executable,
        "-m",
        "cuplug._integration.commands.property_worker",
        json.dumps(options),
    ]
    root = os.path.dirname(PACKAGE)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    # Hypothesis stores files in its working directory
    with private_folder(temporary_places()) as scratch:
        env = os.environ | {"PYTHONPATH": path, "HYPOTHESIS_STORAGE_DIRECTORY": scratch}
        left = max(options["until"] - time.monotonic(), 0) + GRACE_S
        return _run_command(command, env, left)


def _run_command(
    command: list[str], env: dict[str, str], left: float
) -> tuple[list[dict[str, Any]], str]:
    """Run a command for the remaining time; return its lines and how it ended."""
    limit = min(LIMIT_S, left)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=env)
        text, ending = done.stdout, _ending(done)
    except subprocess.TimeoutExpired as error:
        seen = error.stdout or b""
        text = seen if isinstance(seen, str) else seen.decode(errors="replace")
        ending = OUT_OF_TIME if left < LIMIT_S else f"{HANGS} {LIMIT_S:.0f} s"
    return [json.loads(line) for line in text.splitlines() if line.endswith("}")], ending


def _ending(done: subprocess.CompletedProcess[str]) -> str:
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"the process was ended by {signal.Signals(-done.returncode).name}"
    lines = done.stderr.strip().splitlines()
    return f"the process ended with status {done.returncode}" + (f": {lines[-1]}" if lines else "")


def _sanitize(options: dict[str, Any]) -> list[Result]:
    """Run a few examples under compute-sanitizer, if it is installed."""
    toolkit = os.path.dirname(find_nvcc() or "")
    program = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=toolkit)
    if not program:
        return []
    name = "CUDA: deterministic"
    with private_folder(temporary_places()) as directory:
        log = os.path.join(directory, "log")
        prefix = [program, "--tool", "memcheck", "--report-api-errors", "no", "--log-file", log]
        prefix += ["--error-exitcode", str(SANITIZER_STATUS)]
        some = {"properties": [name], "examples": SANITIZER_EXAMPLES, "isolate": False}
        lines, ending = _run(prefix, options | some)
        error = first_error(_read(log))
    place = (*_place(options), "compute-sanitizer memcheck")
    codes = [line["example"] for line in lines if "example" in line]
    if error:
        return [Result(*place, False, error, codes[-1] if codes else "")]
    if any("ok" in line for line in lines):  # the property itself reports whether it passes
        return [Result(*place, True)]
    return [Result(*place, True, f"not tried: {ending or 'nothing ran'}", tried=False)]


def first_error(log: str) -> str:
    """Return the first error in a memcheck log: what, where, at which address."""
    lines = [line.removeprefix("=========").rstrip() for line in log.splitlines()]
    for at, line in enumerate(lines):
        if re.match(r" (Invalid|Misaligned|Out-of-range|Malloc/Free|Double free)", line):
            block = list(takewhile(_is_of_error, lines[at + 1 :]))
            return "\n".join(text.strip() for text in [line, *block])
    return ""


def _is_of_error(line: str) -> bool:
    """Return True for the lines of an error before its backtrace, which are indented."""
    return line.startswith("    ") and "backtrace" not in line


def _read(path: str) -> str:
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as file:
        return file.read()


def _place(options: dict[str, Any]) -> tuple[str, str]:
    return options["operator"], parse(options["signature"]).text


def _result(options: dict[str, Any], line: dict[str, Any]) -> Result:
    """Return the results of a trial. A property without an accepted call was not tested."""
    result = Result(*_place(options), line["property"], line["ok"], line["text"], line["code"])
    if line.get("untried"):
        result.tried, result.text = False, line["untried"]
    elif line["ok"] and line["kind"] != "bad":
        result.calls, result.accepted = line["calls"], line["accepted"]
        if result.calls and not result.accepted:
            result.tried = False
            result.text = "not tried: no call was accepted"
    return result

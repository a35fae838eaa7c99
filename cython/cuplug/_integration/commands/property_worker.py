# SPDX-License-Identifier: Apache-2.0
"""Tests properties of one operator in a separate process, which the plugin may crash.

    python -m cuplug._integration.commands.property_worker '{"what": "libhalf.so", ...}'

Writes one JSON document per line: an example before it runs, a result after each property.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple, TextIO

import numpy as np
from hypothesis import HealthCheck, Phase, errors, given, seed, settings
from hypothesis import strategies as st

from cuplug._engine.call.operator import Operator
from cuplug._engine.cuda.devices import synchronize
from cuplug._engine.lookup.find import find, load
from cuplug._engine.lookup.prepare import prepare
from cuplug._engine.signature.signature import Signature, parse
from cuplug._engine.signature.solver import Unsolved
from cuplug._integration.author.bench_arguments import sized_arguments
from cuplug._integration.author.gradient_arguments import Gradients, misfit
from cuplug._integration.commands import cuda_properties as cuda
from cuplug._integration.commands import properties as host
from cuplug._integration.commands.differentiation import gradient_agrees, linear_agrees
from cuplug._integration.commands.overrides import (
    Makers,
    Range,
    function_names,
    module_at,
    read_pins,
)
from cuplug._integration.commands.promises import (
    gives_what_is_expected,
    is_independent,
    promised,
    works_in_place,
)
from cuplug._integration.commands.property_outcomes import LATE, LOADING, Answers, Tried, made_for
from cuplug.array_api.conversion import asarray
from cuplug.errors import Error
from cuplug.testing import SMALL, arguments

LARGE_BYTES = 1 << 24
EMPTY = st.sampled_from((0, 0, 3))
Check = Callable[..., None]


class Property(NamedTuple):
    """A check, and the kind of examples on which it runs."""

    check: Check
    # "usual", "more" of the same kind, "empty", "large", "any values", "bad" or "declared"
    kind: str = "usual"


HOST = {
    "deterministic": Property(host.is_deterministic),
    "inputs unchanged": Property(host.leaves_inputs_alone),
    "reads in bounds": Property(host.reads_inputs_alone, "more"),
    "writes in bounds": Property(host.keeps_to_outputs),
    "layouts": Property(host.takes_any_layout),
    "outputs filled": Property(host.fills_outputs),
    "empty arrays": Property(host.leaves_inputs_alone, "empty"),
    "any values": Property(host.survives_any_values, "any values"),
    "large arrays": Property(host.survives_any_values, "large"),
    "invalid arguments": Property(host.refuses_bad_arguments, "bad"),
    "rounding mode": Property(host.keeps_rounding, "more"),
}
CUDA = {
    "CUDA: deterministic": Property(cuda.runs_again),
    "CUDA: layouts": Property(cuda.takes_any_layout_there),
    "CUDA: empty arrays": Property(cuda.runs_again, "empty"),
    "CUDA: any values": Property(cuda.runs_again, "any values"),
    "CUDA: large arrays": Property(cuda.runs_again, "large"),
    "CUDA: accesses in bounds": Property(cuda.keeps_to_its_arrays),
    "CUDA: invalid arguments": Property(host.refuses_bad_arguments, "bad"),
    "CUDA: rounding mode": Property(host.keeps_rounding, "more"),
}
BOTH = {
    "CUDA against host": Property(cuda.device_types_agree),
    "CUDA against host, large": Property(cuda.device_types_agree, "large"),
}
# For overloads with these properties in `promised`.
DECLARED = {
    "gradient": Property(gradient_agrees, "declared"),
    "linear": Property(linear_agrees, "declared"),
    "in place": Property(works_in_place, "declared"),
    "independent": Property(is_independent, "declared"),
    "expected results": Property(gives_what_is_expected, "declared"),
}
PROPERTIES = HOST | CUDA | BOTH | DECLARED


class Trial:
    """One signature of one operator under test."""

    def __init__(self, options: dict[str, Any], out: TextIO) -> None:
        self.operator = find_operator(options["what"], options["operator"])
        self.signature: Signature = parse(options["signature"])
        self.pins = read_pins(self.signature, options["pins"])
        self.made = Makers(
            self.operator, options["fixture"], options["pins"], options["device"]
        ).of(self.signature)
        self.functions = function_names(options["fixture"])
        self.row = self.operator.signatures.index(self.signature.text)
        self.gradients = Gradients(self.operator)
        self.options = options
        self.out = out

    def tell(self, **fields: Any) -> None:
        """Write one line."""
        print(json.dumps(fields), file=self.out, flush=True)

    def load(self) -> bool:
        """Do everything that precedes the first call, on which all properties depend."""
        text = ""
        try:
            if self.functions:
                module_at(self.options["fixture"])
            prepare(self.operator, self.options["device"])
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
        self.tell(property=LOADING, ok=not text, text=text, code="", kind="bad")
        return not text

    def run(self, name: str) -> bool:
        """Test one property and report the result; return False if it failed."""
        search = Search(self, name)
        untried = ""
        try:
            search.run()
        except Exception as error:
            text = search.text_of(error)
            if not search.shadow or search.answers.n_calls:
                self.tell(property=name, ok=False, text=text, code=search.code)
                return False
            untried = f"not tried: {search.shadow}"
        answers = search.answers
        if search.n_late and not untried:
            untried = f"{LATE}: {answers.n_calls} examples ran before the time was used up"
        self.tell(
            **{"property": name, "ok": True, "text": search.seen(), "code": ""},
            untried=untried,
            kind=search.kind,
            calls=answers.n_calls,
            accepted=answers.n_accepted,
            refusals=answers.refusals.most_common(),
        )
        return True


class Search:
    """The search for an example that fails a property, and for the smallest such example."""

    def __init__(self, trial: Trial, name: str) -> None:
        self.trial, self.name, self.options = trial, name, trial.options
        check, self.kind = PROPERTIES[name]
        self.declared = ""  # the checked property of the overload
        if self.kind == "declared":
            check = partial(check, signature=trial.signature.text)
            found = promised(trial.operator, trial.signature, trial.functions)
            self.declared = f"checked: {found[name]}"
            if check.func is gives_what_is_expected:
                module = module_at(self.options["fixture"])
                check = partial(check, expected=getattr(module, found[name]))
        self.until = self.options["until"]
        self.check = in_a_fork(check) if self.options["isolate"] else check
        self.answers = Answers()
        self.code = ""  # the last example
        self.failures: dict[str, Exception] = {}  # by their examples
        self.rejected: dict[str, str] = {}  # layouts, and the messages that rejected them
        self.misfit = ""  # why the last arguments do not fit
        self.shadow = ""  # the overload that accepted the last arguments instead
        self.n_late = 0  # examples that did not run for lack of time

    def run(self) -> None:
        """Run examples until one fails or their number is reached."""
        if self.kind == "large":
            self.once(self.large())
            return
        quiet = settings(
            max_examples=self.options["examples"],
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        seed(self.options["seed"])(quiet(given(self.examples())(self.once)))()

    def once(self, example: dict[str, Any]) -> None:
        """Run one example. If no time is left, raise its earlier exception again."""
        device = self.options["device"]
        tried = Tried(self.trial.operator, device)
        code = host.paste(self.trial.signature, tried.path, example)
        if time.monotonic() > self.until:
            self.n_late += 1
            if code in self.failures:
                raise self.failures[code]
            return
        self.code = code
        self.trial.tell(example=code, property=self.name)
        try:
            self.check(tried, example, device=device)
            if device == "cuda":
                synchronize()  # so that a kernel's fault is raised in this example
        except Exception as error:
            self.failures[code] = error
            if device == "cuda" and is_lost():
                self.until = 0.0  # all further calls would fail
            raise
        self.rejected |= tried.rejected
        if tried.answer is not None:
            self.answers.add(tried.answer)

    def seen(self) -> str:
        """Return the findings of a passed property."""
        layouts = ", ".join(self.rejected)
        sentence = next(iter(self.rejected.values()), "")
        return f"rejects {layouts}: {sentence}" if layouts else self.declared

    def examples(self) -> st.SearchStrategy[dict[str, Any]]:
        """Return a strategy for arguments that the signature allows."""
        pinned = {
            name: strategy_of(x) if isinstance(x, Range) else x
            for name, x in self.trial.pins.items()
        }
        sizes = EMPTY if self.kind == "empty" else SMALL
        drawn = arguments(
            self.trial.signature.text,
            sizes,
            all_bits=self.kind == "any values",
            pinned=pinned,
            made={name: f for name, f in self.trial.made.items() if name not in pinned},
        )
        fitting = drawn.map(self.trial.gradients.fitted).filter(self.fits)
        returns = self.trial.operator.returns
        if not returns or self.kind == "declared":  # gradients may read all outputs
            return fitting
        asked = st.fixed_dictionaries(dict.fromkeys(returns, st.booleans()))
        return st.tuples(fitting, asked).map(lambda parts: parts[0] | parts[1])

    def fits(self, example: dict[str, Any]) -> bool:
        """Return True if arguments reach the entry of this overload."""
        operator, self.shadow = self.trial.operator, ""
        with ExitStack() as keep:
            given = made_for(example, self.options["device"], keep)
            self.misfit = misfit(operator, given)
            row = self.trial.row if self.misfit else operator.infer(**given).overload
        if row != self.trial.row:
            self.shadow = f"{operator.signatures[row]} takes the calls, as it is tried before"
        return not self.misfit and not self.shadow

    def large(self) -> dict[str, Any]:
        """Return large arguments, with optional ones if the overload is not reached otherwise."""
        pinned = {k: x.high if isinstance(x, Range) else x for k, x in self.trial.pins.items()}
        made = {name: f for name, f in self.trial.made.items() if name not in pinned}
        for optional in (False, True):
            sized = partial(
                sized_arguments,
                self.trial.signature,
                pinned=pinned,
                made=made,
                optional=optional,
            )
            example = self.trial.gradients.sized(sized, LARGE_BYTES)
            if self.fits(example) or not self.shadow:
                return example
        raise ValueError(self.shadow)

    def text_of(self, error: Exception) -> str:
        """Describe a failure, with own wording for Hypothesis's exceptions."""
        if isinstance(error, errors.Unsatisfiable):
            return f"no arguments were found that fit the signature: {self.misfit}"
        if isinstance(error, Unsolved):
            return str(error)
        failure = self.failures.get(self.code, error)
        text = str(failure)
        if not isinstance(failure, AssertionError):
            text = f"{type(failure).__name__}: {failure}"
        again = isinstance(error, (errors.Flaky, errors.FlakyFailure))
        return f"{text} (with these arguments now and then)" if again else text


def strategy_of(x: Range) -> st.SearchStrategy[Any]:
    """Return a strategy for the numbers of a range."""
    if isinstance(x.low, int) and isinstance(x.high, int):
        return st.integers(x.low, x.high)
    return st.floats(float(x.low), float(x.high))


def find_operator(what: str, name: str) -> Operator:
    """Return an operator of a file, by its absolute path, or by its name."""
    if not os.path.isabs(what):
        return find(what)
    return next(op for op in load(what).operators if op.name == name)


def in_a_fork(check: Check) -> Check:
    """Run a check so that a crash is reported as an error."""

    def run(tried: Tried, *given: Any, **keywords: Any) -> None:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                check(tried, *given, **keywords)
                text = ""
            except AssertionError as error:
                text = str(error)
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
            with os.fdopen(writer, "w") as file:
                json.dump([text, tried.answer, tried.rejected], file)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            told = file.read()
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            raise AssertionError(f"the process was ended by {signal.Signals(number).name}")
        if not told:
            raise AssertionError(
                f"the process ended with status {os.waitstatus_to_exitcode(status)}"
            )
        text, tried.answer, tried.rejected = json.loads(told)
        if text:
            raise AssertionError(text)

    return run


def main() -> None:
    """Test the properties in the command-line argument."""
    options = json.loads(sys.argv[1])
    # A plugin's output must not mix with the lines.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    trial = Trial(options, out)
    for name in options["properties"]:
        if name == LOADING:
            if not trial.load():
                return
        elif not trial.run(name) and options["device"] == "cuda" and is_lost():
            return  # others run in separate processes


def is_lost() -> bool:
    """Return True if every further call on the GPU would report an error."""
    try:
        asarray(np.zeros(1, np.uint8), device="cuda").numpy()
    except Error:
        return True
    return False


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Properties of one operator tried in a process of its own, which the plugin may take down.

    python -m cuplug._integration.commands.property_worker '{"what": "libhalf.so", ...}'

One JSON document a line: an example before it is run, a result after each property.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TextIO

from hypothesis import HealthCheck, Phase, errors, given, seed, settings
from hypothesis import strategies as st

from cuplug._engine.call.operator import Operator
from cuplug._engine.lookup.find import find, load
from cuplug._engine.signature.signature import Signature, parse
from cuplug._integration.author.bench_arguments import sized_arguments
from cuplug._integration.author.gradient_arguments import Gradients, misfit
from cuplug._integration.commands import cuda_properties as cuda
from cuplug._integration.commands import properties as host
from cuplug._integration.commands.differentiation import gradient_agrees, linear_agrees
from cuplug._integration.commands.overrides import Range, read_pins
from cuplug._integration.commands.property_outcomes import Answers, Tried
from cuplug.testing import SMALL, arguments

LARGE_BYTES = 1 << 24
EMPTY = st.sampled_from((0, 0, 3))
Check = Callable[..., None]


class Property(NamedTuple):
    """What is tried: a check on examples of some kind."""

    check: Check
    # "usual", "more" that are like those, "empty", "large", "any values", "bad" or "declared"
    kind: str = "usual"


HOST = {
    "the same result again": Property(host.is_deterministic),
    "inputs left alone": Property(host.leaves_inputs_alone),
    "memory beside outputs": Property(host.keeps_to_outputs),
    "layouts": Property(host.takes_any_layout),
    "out= filled": Property(host.fills_outputs),
    "empty arrays": Property(host.leaves_inputs_alone, "empty"),
    "any values": Property(host.survives_any_values, "any values"),
    "large arrays": Property(host.survives_any_values, "large"),
    "bad arguments": Property(host.refuses_bad_arguments, "bad"),
    "rounding": Property(host.keeps_rounding, "more"),
}
CUDA = {
    "CUDA: the same result again": Property(cuda.runs_again),
    "CUDA: layouts": Property(cuda.takes_any_layout_there),
    "CUDA: empty arrays": Property(cuda.runs_again, "empty"),
    "CUDA: any values": Property(cuda.runs_again, "any values"),
    "CUDA: large arrays": Property(cuda.runs_again, "large"),
    "CUDA: memory beside arrays": Property(cuda.keeps_to_its_arrays),
    "CUDA: bad arguments": Property(host.refuses_bad_arguments, "bad"),
    "CUDA: rounding": Property(host.keeps_rounding, "more"),
}
BOTH = {
    "CUDA against host": Property(cuda.sides_agree),
    "CUDA against host, large": Property(cuda.sides_agree, "large"),
}
# Of rows that declare them, by the name of what is declared.
DECLARED = {
    "gradient": Property(gradient_agrees, "declared"),
    "linear": Property(linear_agrees, "declared"),
}
PROPERTIES = HOST | CUDA | BOTH | DECLARED


class Trial:
    """One signature of one operator under trial."""

    def __init__(self, options: dict[str, Any], out: TextIO) -> None:
        self.operator = find_operator(options["what"], options["operator"])
        self.signature: Signature = parse(options["signature"])
        self.pins = read_pins(self.signature, options["pins"])
        self.gradients = Gradients(self.operator)
        self.options = options
        self.out = out

    def tell(self, **fields: Any) -> None:
        """Write one line."""
        print(json.dumps(fields), file=self.out, flush=True)

    def run(self, name: str) -> None:
        """Try one property and tell what came of it."""
        search = Search(self, name)
        try:
            search.run()
        except Exception as error:
            text = search.text_of(error)
            self.tell(property=name, ok=False, text=text, code=search.code)
        else:
            answers = search.answers
            self.tell(
                **{"property": name, "ok": True, "text": search.declared, "code": ""},
                kind=search.kind,
                calls=answers.n_calls,
                accepted=answers.n_accepted,
                refusals=answers.refusals.most_common(),
            )


class Search:
    """The search for an example that fails a property, and for the smallest that does."""

    def __init__(self, trial: Trial, name: str) -> None:
        self.trial, self.name, self.options = trial, name, trial.options
        check, self.kind = PROPERTIES[name]
        self.declared = ""  # what of the row was checked
        if self.kind == "declared":
            row = trial.operator.signatures.index(trial.signature.text)
            check = partial(check, signature=trial.signature.text)
            self.declared = f"checked: {trial.operator.properties[row][name]}"
        self.check = in_a_fork(check) if self.options["isolate"] else check
        self.answers = Answers()
        self.code = ""  # of the last example
        self.failure: Exception | None = None
        self.misfit = ""  # why the last arguments were drawn in vain

    def run(self) -> None:
        """Try examples until one fails or there were enough."""
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
        """Try one example."""
        tried = Tried(self.trial.operator)
        self.code = host.paste(self.trial.signature, tried.path, example)
        self.trial.tell(example=self.code, property=self.name)
        try:
            self.check(tried, example, device=self.options["device"])
        except Exception as error:
            self.failure = error
            raise
        if tried.answer is not None:
            self.answers.add(tried.answer)

    def examples(self) -> st.SearchStrategy[dict[str, Any]]:
        """Return the arguments to draw: those that the signature allows."""
        pinned = {
            name: strategy_of(x) if isinstance(x, Range) else x
            for name, x in self.trial.pins.items()
        }
        sizes = EMPTY if self.kind == "empty" else SMALL
        drawn = arguments(
            self.trial.signature.text, sizes, all_bits=self.kind == "any values", pinned=pinned
        )
        return drawn.map(self.trial.gradients.fitted).filter(self.fits)

    def fits(self, example: dict[str, Any]) -> bool:
        """Say whether arguments come as far as the entry."""
        self.misfit = misfit(self.trial.operator, example)
        return not self.misfit

    def large(self) -> dict[str, Any]:
        """Return arguments of a large size."""
        pinned = {k: x.high if isinstance(x, Range) else x for k, x in self.trial.pins.items()}
        sized = partial(sized_arguments, self.trial.signature, pinned=pinned)
        return self.trial.gradients.sized(sized, LARGE_BYTES)

    def text_of(self, error: Exception) -> str:
        """Say what failed; what Hypothesis says of its own work is put in words of ours."""
        if isinstance(error, errors.Unsatisfiable):
            why = self.misfit or f"wanted {', '.join(self.trial.signature.conditions)}"
            return f"no arguments were found that the signature allows: {why}"
        failure = self.failure or error
        text = str(failure)
        if not isinstance(failure, AssertionError):
            text = f"{type(failure).__name__}: {failure}"
        again = isinstance(error, (errors.Flaky, errors.FlakyFailure))
        return f"{text} (with these arguments now and then)" if again else text


def strategy_of(x: Range) -> st.SearchStrategy[Any]:
    """Return the numbers of a range."""
    if isinstance(x.low, int) and isinstance(x.high, int):
        return st.integers(x.low, x.high)
    return st.floats(float(x.low), float(x.high))


def find_operator(what: str, name: str) -> Operator:
    """Return an operator of a file, by its absolute path, or by its name."""
    if not os.path.isabs(what):
        return find(what)
    return next(op for op in load(what).operators if op.name == name)


def in_a_fork(check: Check) -> Check:
    """Run a check so that a crash is an error like others."""

    def run(*given: Any, **keywords: Any) -> None:
        child = os.fork()
        if child == 0:
            status = 0
            try:
                check(*given, **keywords)
            except BaseException:
                status = 1
            os._exit(status)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            raise AssertionError(f"the process was ended by {signal.Signals(number).name}")
        if status:
            check(*given, **keywords)

    return run


def main() -> None:
    """Try the properties that the argument names."""
    options = json.loads(sys.argv[1])
    # What a plugin prints must not get between the lines.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    trial = Trial(options, out)
    for name in options["properties"]:
        trial.run(name)


if __name__ == "__main__":
    main()

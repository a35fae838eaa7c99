# SPDX-License-Identifier: Apache-2.0
"""Properties of one operator tried in a process of its own, which the plugin may take down.

    python -m cuplug.commands.trial '{"what": "libhalf.so", "operator": "half", ...}'

One JSON document a line: an example before it is run, a result after each property.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TextIO

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cuplug.author.sizing import sized_arguments
from cuplug.call.operator import Operator
from cuplug.commands import cuda_properties as cuda
from cuplug.commands import properties as host
from cuplug.lookup.find import find, load
from cuplug.signature.signature import Signature, parse
from cuplug.testing import arguments

LARGE_BYTES = 1 << 24
EMPTY = st.sampled_from((0, 0, 3))
Check = Callable[..., None]


class Property(NamedTuple):
    """What is tried: a check on examples of some kind."""

    check: Check
    kind: str = "usual"  # "usual", "empty", "large" or "any values"


HOST = {
    "the same result again": Property(host.is_deterministic),
    "inputs left alone": Property(host.leaves_inputs_alone),
    "layouts": Property(host.takes_any_layout),
    "out= filled": Property(host.fills_outputs),
    "empty arrays": Property(host.leaves_inputs_alone, "empty"),
    "any values": Property(host.survives_any_values, "any values"),
    "large arrays": Property(host.survives_any_values, "large"),
    "bad arguments": Property(host.refuses_bad_arguments),
}
CUDA = {
    "CUDA: the same result again": Property(cuda.runs_again),
    "CUDA: layouts": Property(cuda.takes_any_layout_there),
    "CUDA: empty arrays": Property(cuda.runs_again, "empty"),
    "CUDA: any values": Property(cuda.runs_again, "any values"),
    "CUDA: large arrays": Property(cuda.runs_again, "large"),
    "CUDA: memory beside arrays": Property(cuda.keeps_to_its_arrays),
    "CUDA: bad arguments": Property(host.refuses_bad_arguments),
}
BOTH = {
    "CUDA against host": Property(cuda.sides_agree),
    "CUDA against host, large": Property(cuda.sides_agree, "large"),
}
PROPERTIES = HOST | CUDA | BOTH


class Trial:
    """One signature of one operator under trial."""

    def __init__(self, options: dict[str, Any], out: TextIO) -> None:
        what = options["what"]
        self.operator = find_operator(what, options["operator"])
        self.signature: Signature = parse(options["signature"])
        self.options = options
        self.out = out

    def tell(self, **fields: Any) -> None:
        """Write one line."""
        print(json.dumps(fields), file=self.out, flush=True)

    def run(self, name: str) -> None:
        """Try one property and tell what came of it."""
        check, kind = PROPERTIES[name]
        last: dict[str, Any] = {}

        def once(example: dict[str, Any]) -> None:
            last["code"] = host.paste(self.signature, self.operator.path, example)
            self.tell(example=last["code"], property=name)
            run = in_a_fork(check) if self.options["isolate"] else check
            run(self.operator, example, device=self.options["device"])

        try:
            if kind == "large":
                once(sized_arguments(self.signature, LARGE_BYTES))
            else:
                self.search(once, kind)
        except Exception as error:
            text = str(error) if isinstance(error, AssertionError) else f"{error!r}"
            self.tell(property=name, ok=False, text=text, code=last.get("code", ""))
        else:
            self.tell(property=name, ok=True, text="", code="")

    def search(self, once: Callable[[dict[str, Any]], None], kind: str) -> None:
        """Look for an example that fails, and for the smallest that does."""
        sizes = {"sizes": EMPTY} if kind == "empty" else {}
        examples = arguments(self.signature.text, all_bits=kind == "any values", **sizes)
        quiet = settings(
            max_examples=self.options["examples"],
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        seed(self.options["seed"])(quiet(given(examples)(once)))()


def find_operator(what: str, name: str) -> Operator:
    """Return an operator of a file, or by its name."""
    if not os.path.exists(what):
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

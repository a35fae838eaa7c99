# SPDX-License-Identifier: Apache-2.0
"""The Markdown tables and the summary of a benchmark run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Data = dict[str, Any]
VERDICTS = {True: "yes", False: "**no**", None: "not measured"}


def number(value: float) -> str:
    """Return a value with three or four significant digits and no exponent."""
    if value >= 1000:
        return f"{value:,.0f}"
    digits = 3 if value < 1 else 2 if value < 100 else 1
    return f"{value:.{digits}f}"


def rows(head: Iterable[str], body: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    head = list(head)
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in body:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _target_text(target: Data, unit: str) -> str:
    if not target["references"] or target["limit"] is None:
        return str(target["text"])
    return f"{target['text']} (here {number(target['limit'])} {unit})"


def _row(name: str, data: Data) -> list[str]:
    result, unit, reference = data["results"].get(name), data["unit"], data["reference"]
    targets = [t for t in data["targets"] if t["contender"] == name]
    wanted = "; ".join(_target_text(t, unit) for t in targets)
    verdict = "; ".join(VERDICTS[t["reached"]] for t in targets)
    if result is None:
        reason = data["reasons"].get(name, "not tried")
        return [name, f"not measured: {reason}", "", "", "", wanted, verdict]
    ratio = ""
    if reference in data["results"]:
        ratio = f"{result['median'] / data['results'][reference]['median']:.3f}"
    spread = f"{number(result['q1'])} to {number(result['q3'])}"
    speed = f"{result['gb_per_s']:,.1f}" if "gb_per_s" in result else ""
    return [name, number(result["median"]), spread, speed, ratio, wanted, verdict]


def render_comparison(data: Data) -> str:
    """Return one comparison as a heading and a table without empty columns."""
    names = data["order"] + [t["contender"] for t in data["targets"]]
    head = ["contender", f"median, {data['unit']}", "quartiles", "GB/s"]
    head += [f"x {data['reference']}", "target", "reached"]
    body = [_row(name, data) for name in dict.fromkeys(names)]
    kept = [k for k in range(len(head)) if k == 0 or any(row[k] for row in body)]
    lines = rows([head[k] for k in kept], [[row[k] for k in kept] for row in body])
    settings = "; ".join(f"{key}: {value}" for key, value in data["settings"].items())
    rounds = [r["n"] for r in data["results"].values()]
    if rounds:
        settings += ("; " if settings else "") + f"rounds: {min(rounds)}"
    return "\n".join([f"### {data['title']}", "", *lines, "", settings, ""])


def render_comparisons(comparisons: Iterable[Data]) -> str:
    """Return the tables of one benchmark module."""
    return "\n".join(render_comparison(data) for data in comparisons)


def render_machine(machine: Data) -> str:
    """Return the origin of the figures: machine, tools and versions."""
    body = [[key, str(value)] for key, value in machine.items() if key != "packages"]
    body += [[name, version] for name, version in machine["packages"].items()]
    return "\n".join(rows(["what", "here"], body)) + "\n"


def judged(report: Data) -> Iterator[tuple[Data, Data]]:
    """Yield each target of a report, with its comparison."""
    for data in report["benchmarks"].values():
        for comparison in data["comparisons"]:
            for target in comparison["targets"]:
                yield comparison, target


def count(report: Data) -> str:
    """Return the number of targets reached, in one line."""
    verdicts = [target["reached"] for _, target in judged(report)]
    reached, missed, unknown = (verdicts.count(key) for key in (True, False, None))
    return f"{reached} reached, {missed} missed, {unknown} not measured"


def render_targets(report: Data) -> str:
    """Return a table of the missed targets, followed by those not measured."""
    failed = [pair for pair in judged(report) if not pair[1]["reached"]]
    body = []
    for data, target in sorted(failed, key=lambda pair: pair[1]["reached"] is None):
        unit, result = data["unit"], data["results"].get(target["contender"])
        seen, limit = result["median"] if result else None, target["limit"]
        ratio = f"{seen / limit:.3f}" if seen and limit else ""
        body.append(
            [data["title"], target["contender"], target["text"]]
            + ["" if value is None else f"{number(value)} {unit}" for value in (seen, limit)]
            + [ratio, VERDICTS[target["reached"]]]
        )
    head = ["work", "contender", "target", "median", "limit here", "median / limit", "reached"]
    lines = rows(head, body) if body else []
    return "\n".join([f"## Targets: {count(report)}", "", *lines, ""])


def render(report: Data) -> str:
    """Return the whole report as Markdown."""
    commit = report["machine"]["commit"]
    parts = [f"# Benchmarks: {report['machine']['name']}", "", render_targets(report)]
    parts += ["## Machine", "", render_machine(report["machine"])]
    for name, data in report["benchmarks"].items():
        parts += [f"## {name}", ""]
        if data.get("commit", commit) != commit:
            parts += [f"Measured at commit {data['commit'][:12]}, {data['date'][:10]}.", ""]
        if "skipped" in data:
            parts += [f"Not measured: {data['skipped']}", ""]
        parts.append(render_comparisons(data["comparisons"]))
    return "\n".join(parts).rstrip() + "\n"


def summary(report: Data) -> list[str]:
    """Return a few lines: the number of targets reached, and those missed."""
    lines = [f"missed: {_verdict(*pair)}" for pair in judged(report) if pair[1]["reached"] is False]
    return [*lines, f"targets: {count(report)}"]


def _verdict(comparison: Data, target: Data) -> str:
    unit = comparison["unit"]
    median = comparison["results"][target["contender"]]["median"]
    seen = f"{target['contender']} took {number(median)} {unit}"
    return f"{comparison['title']}: {seen}, expected {_target_text(target, unit)}"

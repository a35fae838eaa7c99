# SPDX-License-Identifier: Apache-2.0
"""Operators with random signatures from the grammar, which only fill their outputs."""

import random

from cuplug._engine.signature.signature import parse
from cuplug.errors import SignatureError
from raw_plugins import quoted

SOURCE = """/* SPDX-License-Identifier: Apache-2.0 */
#include <cuplug/plugin.h>
#include <string.h>
CUPLUG_ENTRY int fill_host(const cuplug_call *call) {
  for (uint32_t k = 0; &call->outputs[k] < call->tensors + call->n_tensors; k++) {
    const cuplug_tensor *x = &call->outputs[k];
    int64_t shape[64];
    int is_unknown = 0;
    for (int32_t d = 0; d < x->ndim; d++) {
      is_unknown |= x->shape[d] < 0;
      shape[d] = x->shape[d] < 0 ? 2 : x->shape[d];
    }
    const int status =
        is_unknown ? cuplug_output(call, (uint32_t)(x - call->tensors), shape) : CUPLUG_OK;
    if (status) return status;
    memset(x->data, 0, (size_t)(cuplug_n_elements(x) * cuplug_element_bytes(x)));
  }
  return CUPLUG_OK;
}
"""
DIMS = ("n", "m", "3", "1", "0")
FORMULAS = ("n + 1", "n * m", "max(n, m)", "n // 2", "n % 3", "n - 1", "min(n, 2)")
GROUP_FORMULAS = ("len(s)", "prod(s)", "*s[1:]", "*s[:1]", "s[0]")
TYPES = ("T", "U", "float32", "int64", "bool")
SCALARS = (
    "k: int = 2",
    "a: T",
    "a: float = 0.5",
    "z: complex = 1",
    'mode: "raise" | "wrap" = "wrap"',
    "s: str = 'x'",
    "k: int = None",
    "b: bool = True",
    "axes: int[] = None",
    "u: uint8 = 7",
)
CONDITIONS = ("0 <= k <= 9", "n > 0", "n != m", "len(s) < 3")


def _dims(rng, is_output):
    dims = [rng.choice(DIMS) for _ in range(rng.randrange(3))]
    group = rng.choice(("", "", "*s", "...", "..."))
    if group:
        dims.insert(rng.randrange(len(dims) + 1), group)
    if rng.random() < 0.3:
        dims.append(rng.choice(FORMULAS))
    if is_output and rng.random() < 0.3:
        dims.append(rng.choice((*GROUP_FORMULAS, "?", "k", "*axes")))
    return ", ".join(dims)


def _candidate(rng, name):
    arrays = []
    for letter in "xyw"[: rng.randrange(1, 4)]:
        changed = "inout " if rng.random() < 0.15 else ""
        many = "[]" if not changed and rng.random() < 0.1 else ""
        arrays.append(f"{changed}{letter}: {rng.choice(TYPES)}[{_dims(rng, False)}]{many}")
    if rng.random() < 0.2:
        arrays.append("v: T[n] = None")
    scalars = rng.sample(SCALARS, rng.randrange(3))
    outputs = [f"{rng.choice(TYPES)}[{_dims(rng, True)}]" for _ in range(rng.randrange(3))]
    if len(outputs) == 2 and rng.random() < 0.5:
        outputs = [f"{end}: {text}" for end, text in zip(("low", "high"), outputs, strict=True)]
    result = (
        f" -> ({', '.join(outputs)})" if len(outputs) > 1 else "".join(f" -> {x}" for x in outputs)
    )
    text = f"{name}({', '.join([*arrays, *scalars])}){result}"
    bounds = [f"{v}: {rng.choice(('any', 'floating', 'float32 | float64'))}" for v in "TU"]
    clauses = [bound for bound in bounds if f": {bound[0]}" in text or f"{bound[0]}[" in text]
    if rng.random() < 0.3:
        clauses.append(rng.choice(CONDITIONS))
    return f"{text} where {', '.join(clauses)}" if clauses else text


def random_signature(rng, name):
    """Return the text of a signature."""
    while True:
        text = _candidate(rng, name)
        try:
            parse(text)
        except SignatureError:
            continue
        return text


def random_plugin(n, seed=0, name="random_rows"):
    """Return the source of a plugin with operators r0, r1, ..., of one overload or of two."""
    rng = random.Random(seed)
    rows = []
    for k in range(n):
        texts = [random_signature(rng, f"r{k}") for _ in range(1 if k % 4 else 2)]
        rows += [
            f'CUPLUG_HOST_OPERATOR(fill_host, {quoted(x)}, "Drawn.");' for x in dict.fromkeys(texts)
        ]
    return "\n".join([SOURCE, *rows, f'CUPLUG_PLUGIN({name}, "1.0");', ""])

# SPDX-License-Identifier: Apache-2.0
"""The code of element-wise operators, for one variant each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property

from cuplug.base.dtypes import DTYPES, Dtype
from cuplug.signature.formula import Term
from cuplug.signature.variant import Variant
from cuplug.source.expression import (
    Name,
    Names,
    block_elements,
    load,
    numbers,
    preamble,
    prelude,
    quoted,
    returned,
    store,
    types,
    unpacked,
    uses,
)

SIZE = re.compile(r"\bsize\(\s*(\w+)\s*(?:,\s*-?\s*\d+\s*)?\)")  # of an array, or of a dimension


@dataclass(frozen=True)
class Elementwise:
    """What an element-wise operator computes."""

    given: Names  # of the signature
    text: str  # statements that assign the outputs; with `is_value` an expression
    is_value: bool
    preamble: str
    sizes: dict[str, Term] = field(default_factory=dict)  # by what the text writes

    @cached_property
    def names(self) -> Names:
        """The signature's names and, behind its scalars, the sizes."""
        sizes = [Name(self._size_name(text), "int64", "size") for text in self.sizes]
        given = self.given
        return Names(given.operator, given.arrays, (*given.scalars, *sizes))

    def _size_name(self, text: str) -> str:
        return text if text.isidentifier() else f"cuplug_size_{[*self.sizes].index(text)}"

    @property
    def raw(self) -> int:
        """A bit for each array that is read as a whole."""
        return sum(1 << k for k, x in enumerate(self.given.arrays) if x.kind == "raw")

    @property
    def counters(self) -> list[str]:
        """The text's own counters: `i`, the element's number, and `n`, how many there are."""
        return [x for x in ("i", "n") if uses(self.text, x) and x not in self.names.words]

    @property
    def counts(self) -> bool:
        """Whether the text asks how many elements there are, or which one it is at."""
        whole = {x.name for x in self.given.arrays if x.kind != "raw"}
        of_whole = any(whole & {*re.findall(r"\w+", text)} for text in self.sizes)
        return of_whole or bool(self.counters)

    def body(self, variant: Variant) -> str:
        """Return the statements on computed values."""
        name, text = self.names.operator, self._computed(variant)
        if not self.is_value and uses(text, "return"):  # what was assigned is stored
            body = quoted(text, name, ";}")
            return f"\n#define return goto cuplug_return\n{{{body}#undef return\ncuplug_return:;"
        if not self.is_value:
            return "{" + quoted(text, name, ";}")
        output = self.names.outputs[0]
        dtype = self.names.dtypes(variant)[output.variable]
        return returned(dtype, text, name, f"{output.name} =", variant.on_host)

    def _computed(self, variant: Variant) -> str:
        """Return the text with names for sizes, and elements of raw arrays as computed values."""
        text = self.text
        if any(not each.isidentifier() for each in self.sizes):
            text = SIZE.sub(
                lambda at: self._size_name(at[0]) if at[0] in self.sizes else at[0], text
            )
        dtypes = self.names.dtypes(variant)
        for x in self.names.arrays:
            if x.kind == "raw" and load(dtypes[x.variable], "") != "":
                text = _loaded(text, x.name, dtypes[x.variable])
        return text

    def element(self, variant: Variant) -> str:
        """Return the function for one element, whose scope has the user's names alone."""
        dtypes = self.names.dtypes(variant)
        parameters, before, after = ["const cuplug_numbers cuplug_given"], [], []
        for x in self.names.arrays:
            dtype, is_read = dtypes[x.variable], x.kind != "output"
            if x.kind == "raw":
                parameters.append(f"const {dtype.stored} *const {x.name}")
                continue
            const = "const " if x.kind == "array" else ""
            parameters.append(f"{const}{dtype.stored} *cuplug_at_{x.name}")
            value = load(dtype, f"*cuplug_at_{x.name}") if is_read else "0"
            before.append(f"{const}{dtype.computed} {x.name} = {value};")
            if x.kind != "array":
                after.append(f"*cuplug_at_{x.name} = {store(dtype, x.name)};")
        parameters += [f"const int64_t {x}" for x in self.counters]
        lines = [unpacked(self.names, variant), *before, self.body(variant), *after]
        listed = ", ".join(parameters)
        return "\n".join([f"__device__ inline void cuplug_element({listed}) {{", *lines, "}"])

    def call(self, place: str, number: str, count: str) -> str:
        """Return the call for the element whose stored values are `place` of each array."""
        counted = [{"i": number, "n": count}[x] for x in self.counters]
        arrays = [
            f"data_{x.name}" if x.kind == "raw" else f"&{place.format(x.name)}"
            for x in self.names.arrays
        ]
        return f"cuplug_element({', '.join(['given', *arrays, *counted])});"

    def head(self, variant: Variant) -> str:
        """Return what stands before the loops."""
        return f"""{prelude(variant)}
{types(self.names, variant)}
{preamble(self.preamble, self.names, variant)}
{numbers(self.names, variant)}
{self.element(variant)}"""


def _loaded(text: str, name: str, dtype: Dtype) -> str:
    """Return a text with each element of an array, x[...], as a computed value."""
    found = re.search(rf"\b{name}\s*\[", text)
    if not found:
        return text
    end, depth = found.end(), 1
    while depth and end < len(text):
        depth += {"[": 1, "]": -1}.get(text[end], 0)
        end += 1
    index = _loaded(text[found.end() : end], name, dtype)
    value = load(dtype, f"{name}[{index}")
    return text[: found.start()] + value + _loaded(text[end:], name, dtype)


def host_code(op: Elementwise, variant: Variant) -> str:
    """Return C: a cuplug_loop_function of the name cuplug_function."""
    dtypes = op.names.dtypes(variant)
    arrays = op.names.looped
    kinds = {x.name: dtypes[x.variable].stored for x in op.names.arrays}
    flat = [f"const int flat_{x.name} = cuplug_is_flat(loop, {k});" for k, x in arrays]
    all_flat = " && ".join(f"flat_{x.name}" for _, x in arrays)
    raw = [
        f"const {kinds[x.name]} *const data_{x.name} = call->data[{k}];"
        for k, x in enumerate(op.names.arrays)
        if x.kind == "raw"
    ]
    blocks = [f"{kinds[x.name]} block_{x.name}[BLOCK] CUPLUG_ALIGNED;" for _, x in arrays]
    widest = max(DTYPES[dtype].n_bytes for dtype in variant.types)
    block = block_elements(len(arrays), widest)
    return f"""{op.head(variant)}
#define CUPLUG_ALIGNED __attribute__((aligned(64)))
enum {{ BLOCK = {block}, PAST = CUPLUG_NONTEMPORAL_BLOCK / {widest} }};

CUPLUG_PART cuplug_blocks(const cuplug_loop_call *call, long long from, long long to) {{
  const cuplug_loop *loop = call->loop;
  const cuplug_numbers given = cuplug_read(call->scalars);
  {" ".join(flat)}
  {" ".join(blocks)}
  {" ".join(raw)}
  {_host_past(op, kinds)}
  const int64_t step = !({all_flat}) ? BLOCK : past ? PAST : CUPLUG_GRAIN;
  for (int64_t begin = from, m; begin < to; begin += m) {{
    m = cuplug_least(step - (begin + lead) % step, to - begin);
    {_host_places(op, kinds)}
    CUPLUG_SIMD
    for (int64_t at = 0; at < m; at++) {{
      {op.call("at_{}[at]", "begin + at", "loop->n")}
    }}
    {_host_stores(op, kinds)}
  }}
  if (past) cuplug_nontemporal_fence();
}}

static void cuplug_range(const cuplug_loop_call *call, long long from, long long to) {{
  cuplug_run_part(cuplug_blocks, call, from, to);
}}

void cuplug_function(const cuplug_loop_call *call) {{
  const int64_t n = call->loop->n;
  if (n < CUPLUG_PARALLEL_FROM)
    cuplug_range(call, 0, n);
  else
    call->parallel(call, cuplug_range, n, CUPLUG_GRAIN);
}}
"""


def _host_places(op: Elementwise, kinds: dict[str, str]) -> str:
    """Point at each array's elements, or at a block of them."""
    lines = []
    for k, x in op.names.looped:
        kind, data = kinds[x.name], f"({kinds[x.name]} *)call->data[{k}]"
        if x.kind == "array":
            gather = f"cuplug_gather_{kind}(block_{x.name}, call->data[{k}], loop, {k}, begin, m)"
            place = f"flat_{x.name} ? {data} + begin : {gather}"
            lines.append(f"const {kind} *at_{x.name} = {place};")
            continue
        direct = f"flat_{x.name}" + ("" if x.kind == "inout" else f" && !past_{x.name}")
        lines.append(f"{kind} *at_{x.name} = {direct} ? {data} + begin : block_{x.name};")
        if x.kind == "inout":
            gather = f"cuplug_gather_{kind}(block_{x.name}, call->data[{k}], loop, {k}, begin, m)"
            lines.append(f"if (!flat_{x.name}) {gather};")
    return "\n".join(lines)


def _host_past(op: Elementwise, kinds: dict[str, str]) -> str:
    """Say which outputs are so large that they are stored past the caches, and how many elements
    before the last of them its line begins."""
    lines = ["int past = 0;", "int64_t lead = 0;"]
    for k, x in enumerate(op.names.arrays):
        if x.kind != "output":
            continue
        size = f"(int64_t)sizeof({kinds[x.name]})"
        lines.append(
            f"const int past_{x.name} = "
            f"flat_{x.name} && loop->n >= CUPLUG_NONTEMPORAL_FROM / {size};"
        )
        in_line = f"(int64_t)((uintptr_t)call->data[{k}] % CUPLUG_LINE_BYTES)"
        lines.append(f"if (past_{x.name}) past = 1, lead = {in_line} / {size};")
    return "\n".join(lines)


def _host_stores(op: Elementwise, kinds: dict[str, str]) -> str:
    """Take computed blocks to where they belong: large ones past the caches."""
    asks, stores = [], []
    for k, x in op.names.looped:
        kind, name = kinds[x.name], x.name
        if x.kind == "array":
            asks.append(
                f"if (flat_{name} && past) "
                f"cuplug_prefetch_ahead(at_{name}, (size_t)m * sizeof({kind}));"
            )
            continue
        stores.append(
            f"if (!flat_{name}) "
            f"cuplug_scatter_{kind}(block_{name}, call->data[{k}], loop, {k}, begin, m);"
        )
        if x.kind == "output":
            stores.append(
                f"else if (past_{name}) cuplug_copy_nontemporal(({kind} *)call->data[{k}] + begin, "
                f"block_{name}, (size_t)m * sizeof({kind}));"
            )
    return "\n".join(asks + stores)


def cuda_code(op: Elementwise, variant: Variant) -> str:
    """Return CUDA C++: a kernel of the name cuplug_kernel."""
    dtypes = op.names.dtypes(variant)
    n_arrays, n_scalars = len(op.names.arrays), len(op.names.scalars)
    kinds = {x.name: dtypes[x.variable].stored for x in op.names.arrays}
    index = "unsigned" if variant.ndim and not variant.wide else "int64_t"
    return f"""{op.head(variant)}
constexpr int WIDTH = {variant.width}, UNROLL = {variant.unroll}, NDIM = {variant.ndim};
struct arrays {{ void *data[{n_arrays}]; }};
struct scalars {{ cuplug_scalar of[{max(n_scalars, 1)}]; }};

CUPLUG_KERNEL
    cuplug_kernel(const arrays a, const scalars read, const int64_t n, const divisors<NDIM> sizes,
                  const strides<{n_arrays}, NDIM> steps) {{
  const cuplug_numbers given = cuplug_read(read.of);
  {_cuda_pointers(op, kinds)}
  const {index} n_packs = NDIM ? n : n / WIDTH;
  const {index} first = ({index})blockIdx.x * (THREADS * UNROLL) + threadIdx.x;
  {" ".join(f"pack<{kinds[x.name]}, WIDTH> packs_{x.name}[UNROLL];" for _, x in op.names.looped)}
  int64_t places[UNROLL][{n_arrays}] = {{}};
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {{
    const {index} at = first + u * THREADS;
    if (at >= n_packs) continue;
    {_cuda_loads(op, variant)}
  }}
#pragma unroll
  for (int u = 0; u < UNROLL; u++) {{
    const {index} at = first + u * THREADS;
    if (at >= n_packs) continue;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {{
      {op.call("packs_{}[u].value[k]", "(int64_t)at * WIDTH + k", "NDIM ? n * WIDTH : n")}
    }}
    {_cuda_stores(op, kinds)}
  }}
  {_cuda_rest(op) if not variant.ndim and variant.width > 1 else ""}
}}
}} // namespace cuplug
"""


def _cuda_pointers(op: Elementwise, kinds: dict[str, str]) -> str:
    lines = []
    for k, x in enumerate(op.names.arrays):
        const = "const " if x.kind in ("array", "raw") else ""
        kind = f"{const}{kinds[x.name]}"
        lines.append(f"{kind} *const data_{x.name} = static_cast<{kind} *>(a.data[{k}]);")
    return "\n".join(lines)


def _cuda_loads(op: Elementwise, variant: Variant) -> str:
    if variant.ndim:
        lines = ["locate<NDIM>(at, sizes, steps, places[u]);"]
    else:
        lines = [f"places[u][{k}] = at * WIDTH;" for k in range(len(op.names.arrays))]
    for k, x in op.names.looped:
        if x.kind != "output":
            still = "true" if variant.still >> k & 1 else "false"
            lines.append(
                f"packs_{x.name}[u] = load<WIDTH, {still}>(data_{x.name}, places[u][{k}]);"
            )
    return "\n".join(lines)


def _cuda_stores(op: Elementwise, kinds: dict[str, str]) -> str:
    lines = [
        f"*reinterpret_cast<pack<{kinds[x.name]}, WIDTH> *>(data_{x.name} + places[u][{k}]) = "
        f"packs_{x.name}[u];"
        for k, x in op.names.looped
        if x.kind != "array"
    ]
    return "\n".join(lines)


def _cuda_rest(op: Elementwise) -> str:
    """Return the code for the elements that fill no pack: the last block takes them."""
    return f"""const int64_t rest = n_packs * WIDTH + threadIdx.x;
  if (blockIdx.x != gridDim.x - 1 || rest >= n) return;
  {op.call("data_{}[rest]", "rest", "n")}"""

# SPDX-License-Identifier: Apache-2.0
"""The code of reductions, for one variant each."""

from __future__ import annotations

from dataclasses import dataclass

from cuplug.base.dtypes import DTYPES, Dtype
from cuplug.signature.variant import Variant
from cuplug.source.expression import (
    Name,
    Names,
    block_elements,
    load,
    numbers,
    preamble,
    prelude,
    returned,
    store,
    types,
    unpacked,
)

WIDE = {"bool": "int64", "int": "int64", "uint": "uint64"}  # kind -> accumulator


@dataclass(frozen=True)
class Reduction:
    """What a reduction computes: `post` of all `map`s that `reduce` puts together."""

    names: Names
    map: str
    reduce: str
    post: str
    identity: str | None
    preamble: str
    accumulate: str | None  # the accumulator's dtype; None: by the output's

    @property
    def inputs(self) -> tuple[Name, ...]:
        """The arrays that are read."""
        return self.names.arrays[:-1]

    def accumulator(self, variant: Variant) -> Dtype:
        """Return the dtype in which values are put together: as in NumPy, narrow ones wider."""
        output = DTYPES[variant.types[-1]]
        wide = "float32" if output.is_narrow else WIDE.get(output.kind, output.name)
        return DTYPES[self.accumulate or wide]

    def texts(self) -> dict[str, str]:
        """Return the user's texts by the names that error messages give them."""
        name = self.names.operator
        texts = {f"{name} map": self.map, f"{name} reduce": self.reduce, f"{name} post": self.post}
        return texts | {f"{name} identity": self.identity or "", f"{name} preamble": self.preamble}

    def functions(self, variant: Variant) -> str:
        """Return the expressions as functions: `cuplug_map` and so on."""
        dtypes, name = self.names.dtypes(variant), self.names.operator
        own = [f"const {dtypes[x.variable].computed} {x.name}" for x in self.inputs]

        def function(dtype: Dtype, parameters: list[str], text: str, part: str) -> str:
            listed = ", ".join(["const cuplug_numbers cuplug_given", *parameters])
            head = f"__device__ inline {dtype.computed} cuplug_{part}({listed})"
            body = returned(dtype, text, f"{name} {part}", "return", variant.on_host)
            return f"{head} {{ {unpacked(self.names, variant)} {body} }}"

        value, result = self.accumulator(variant), dtypes[self.names.arrays[-1].variable]
        pair = ["const cuplug_value a", "const cuplug_value b"]
        functions = [
            function(value, own, self.map, "map"),
            function(value, pair, self.reduce, "reduce"),
            function(result, ["const cuplug_value a", "const int64_t n"], self.post, "post"),
        ]
        if self.identity is not None:
            functions.append(function(value, [], self.identity, "identity"))
        return "\n".join(functions)

    def call(self, function: str, *arguments: str) -> str:
        """Return a call of one of the functions."""
        return f"cuplug_{function}({', '.join(['given', *arguments])})"

    def mapped(self, dtypes: dict[str, Dtype], place: str) -> str:
        """Return the call of `cuplug_map` on stored values, which are `place` of each array."""
        values = [load(dtypes[x.variable], place.format(x.name)) for x in self.inputs]
        return self.call("map", *values)

    def result(self, variant: Variant, value: str, n: str) -> str:
        """Return the stored value of an output."""
        return store(DTYPES[variant.types[-1]], self.call("post", value, n))

    def nothing(self) -> str:
        """Return the value of a reduction of nothing."""
        return "0" if self.identity is None else self.call("identity")

    def head(self, variant: Variant) -> str:
        """Return what stands before the loops."""
        return f"""{prelude(variant)}
{types(self.names, variant)}
typedef {self.accumulator(variant).computed} cuplug_value;
{preamble(self.preamble, self.names, variant)}
{numbers(self.names, variant)}
{self.functions(variant)}
"""


def host_code(op: Reduction, variant: Variant) -> str:
    """Return C: a cuplug_loop_function of the name cuplug_function."""
    dtypes, output = op.names.dtypes(variant), len(op.inputs)
    kinds = {x.name: dtypes[x.variable].stored for x in op.names.arrays}
    out = DTYPES[variant.types[-1]].stored

    def places(loop: str, n: str) -> str:
        return "\n".join(
            f"const {kinds[x.name]} *at_{x.name} = (const {kinds[x.name]} *)call->data[{k}] + "
            f"offset_{x.name};\n"
            f"at_{x.name} = flat_{x.name} ? at_{x.name} + begin : "
            f"cuplug_gather_{kinds[x.name]}(block_{x.name}, at_{x.name}, {loop}, {k}, begin, {n});"
            for k, x in enumerate(op.inputs)
        )

    def offsets(loop: str, number: str) -> str:
        return "\n".join(
            f"const int64_t offset_{x.name} = cuplug_offset({loop}, {k}, {number});"
            for k, x in enumerate(op.inputs)
        )

    def flat(loop: str) -> str:
        return "\n".join(
            f"const int flat_{x.name} = cuplug_is_flat({loop}, {k});"
            for k, x in enumerate(op.inputs)
        )

    blocks = "\n".join(
        f"{kinds[x.name]} block_{x.name}[BLOCK] __attribute__((aligned(64)));" for x in op.inputs
    )
    given = "const cuplug_numbers given = cuplug_read(call->scalars);"
    value = op.mapped(dtypes, "at_{}[at]")
    widest = max(x.n_bytes for x in (op.accumulator(variant), *dtypes.values()))
    return f"""{op.head(variant)}
enum {{ BLOCK = {block_elements(len(op.inputs) + 1, widest)} }};

static inline int64_t end_of(const cuplug_loop_call *call, int64_t part) {{
  return cuplug_least(call->reduced->n, (part + 1) * call->part);
}}

/* Of one output and one part: blocks are folded in halves, and their values paired. */
static cuplug_value row(const cuplug_loop_call *call, int64_t output, int64_t part) {{
  const cuplug_loop *kept = call->loop, *reduced = call->reduced;
  {given}
  {offsets("kept", "output")}
  {flat("reduced")}
  {blocks}
  cuplug_value values[BLOCK / 2] __attribute__((aligned(64))), pairs[64], all = 0;
  const int64_t first = part * call->part, end = end_of(call, part);
  int64_t n_blocks = 0; /* bit k: pairs[k] holds 2^k of them */
  for (int64_t begin = first; begin < end; begin += BLOCK, n_blocks++) {{
    int64_t m = cuplug_least(BLOCK, end - begin), half = (m + 1) / 2;
    {places("reduced", "m")}
    CUPLUG_SIMD
    for (int64_t at = 0; at < m - half; at++)
      values[at] = {op.call("reduce", value, op.mapped(dtypes, "at_{}[half + at]"))};
    for (int64_t at = m - half; at < half; at++) values[at] = {value};
    for (int64_t n = half; n > 1; n = half) {{
      half = (n + 1) / 2;
      CUPLUG_SIMD
      for (int64_t at = 0; at < n - half; at++)
        values[at] = {op.call("reduce", "values[at]", "values[at + half]")};
    }}
    int k = 0;
    for (; n_blocks >> k & 1; k++) values[0] = {op.call("reduce", "pairs[k]", "values[0]")};
    pairs[k] = values[0];
  }}
  for (int k = 0, is_first = 1; n_blocks >> k; k++)
    if (n_blocks >> k & 1) {{
      all = is_first ? pairs[k] : {op.call("reduce", "pairs[k]", "all")};
      is_first = 0;
    }}
  return all;
}}

/* Of up to BLOCK outputs and one part: one element of each output after the other. */
static void columns(const cuplug_loop_call *call, int64_t begin, int64_t part,
                    cuplug_value *restrict values) {{
  const cuplug_loop *kept = call->loop, *reduced = call->reduced;
  const int64_t m = cuplug_least(BLOCK, kept->n - begin), end = end_of(call, part);
  {given}
  {flat("kept")}
  {blocks}
  for (int64_t r = part * call->part; r < end; r++) {{
    {offsets("reduced", "r")}
    {places("kept", "m")}
    if (r == part * call->part) {{
      CUPLUG_SIMD
      for (int64_t at = 0; at < m; at++) values[at] = {value};
    }} else {{
      CUPLUG_SIMD
      for (int64_t at = 0; at < m; at++)
        values[at] = {op.call("reduce", "values[at]", value)};
    }}
  }}
}}

static void store_outputs(const cuplug_loop_call *call, int64_t begin, int64_t m,
                          const cuplug_value *values) {{
  {given}
  for (int64_t at = 0; at < m; at++) {{
    const int64_t place = cuplug_offset(call->loop, {output}, begin + at);
    (({out} *)call->data[{output}])[place] = {op.result(variant, "values[at]", "call->reduced->n")};
  }}
}}

/* All parts of up to BLOCK outputs. */
CUPLUG_PART put_together(const cuplug_loop_call *call, long long begin, long long end) {{
  const int64_t n = call->loop->n, m = end - begin;
  const cuplug_value *partials = call->partials;
  cuplug_value values[BLOCK];
  {given}
  for (int64_t at = 0; at < m; at++) {{
    values[at] = call->n_parts ? partials[begin + at] : {op.nothing()};
    for (int64_t part = 1; part < call->n_parts; part++)
      values[at] = {op.call("reduce", "values[at]", "partials[part * n + begin + at]")};
  }}
  store_outputs(call, begin, m, values);
}}

static void run_columns(const cuplug_loop_call *call, int64_t begin, int64_t part) {{
  const int64_t n = call->loop->n;
  cuplug_value values[BLOCK], *partials = call->partials;
  columns(call, begin, part, call->n_parts > 1 ? partials + part * n + begin : values);
  if (call->n_parts == 1) store_outputs(call, begin, cuplug_least(BLOCK, n - begin), values);
}}

static void run_row(const cuplug_loop_call *call, int64_t output, int64_t part) {{
  const cuplug_value value = row(call, output, part);
  if (call->n_parts == 1)
    store_outputs(call, output, 1, &value);
  else
    ((cuplug_value *)call->partials)[part * call->loop->n + output] = value;
}}

/* An item is one part of one output, or of BLOCK of them. */
static int64_t outputs_of(const cuplug_loop_call *call) {{ return call->by_columns ? BLOCK : 1; }}
static int64_t items_of(const cuplug_loop_call *call) {{
  return (call->loop->n + outputs_of(call) - 1) / outputs_of(call);
}}

CUPLUG_PART run_items(const cuplug_loop_call *call, long long from, long long to) {{
  const int64_t n = items_of(call), step = outputs_of(call);
  for (int64_t item = from; item < to; item++)
    (call->by_columns ? run_columns : run_row)(call, item % n * step, item / n);
}}

static void run_range(const cuplug_loop_call *call, long long from, long long to) {{
  cuplug_run_part(run_items, call, from, to);
}}

void cuplug_function(const cuplug_loop_call *call) {{
  const int64_t n = call->loop->n, n_items = items_of(call) * call->n_parts;
  const int64_t of_item = outputs_of(call) * call->part;
  if (n * call->reduced->n < CUPLUG_PARALLEL_FROM)
    run_range(call, 0, n_items);
  else
    call->parallel(call, run_range, n_items, of_item < CUPLUG_GRAIN ? CUPLUG_GRAIN / of_item : 1);
  if (call->n_parts == 1) return;
  for (int64_t begin = 0; begin < n; begin += BLOCK)
    cuplug_run_part(put_together, call, begin, cuplug_least(n, begin + BLOCK));
}}
"""


def cuda_code(op: Reduction, variant: Variant) -> str:
    """Return CUDA C++: kernels cuplug_kernel, for each part, and cuplug_finish."""
    dtypes, n_arrays = op.names.dtypes(variant), len(op.names.arrays)
    kinds = [dtypes[x.variable].stored for x in op.inputs]
    packs = "\n".join(
        f"pack<{kind}, WIDTH> packs_{x.name};" for kind, x in zip(kinds, op.inputs, strict=True)
    )
    loads = "\n".join(
        f"p.packs_{x.name} = load<WIDTH, {'true' if variant.still >> k & 1 else 'false'}>("
        f"static_cast<const {kind} *>(a.data[{k}]), base[{k}] + at[{k}]);"
        for k, (kind, x) in enumerate(zip(kinds, op.inputs, strict=True))
    )
    index = "int64_t" if variant.wide else "unsigned"
    parameters = f"""const arrays a, const scalars read, const int64_t n_outputs,
    const int64_t n_reduced, const int64_t part, const divisors<KEPT> kept,
    const strides<{n_arrays}, KEPT> kept_steps, const divisors<REDUCED> reduced,
    const strides<{n_arrays}, REDUCED> reduced_steps, cuplug_value *partials, const int64_t n,
    const int64_t n_parts"""
    return f"""{op.head(variant)}
constexpr int WIDTH = {variant.width}, UNROLL = {variant.unroll};
constexpr int KEPT = {variant.ndim}, REDUCED = {variant.n_reduced}, OUTPUT = {n_arrays - 1};
constexpr bool COLUMNS = {"true" if variant.columns else "false"};
constexpr int OUTPUTS = COLUMNS ? WIDTH : 1; /* of a thread */
typedef {index} index;
struct arrays {{ void *data[{n_arrays}]; }};
struct scalars {{ cuplug_scalar of[{max(len(op.names.scalars), 1)}]; }};
struct pack_of_each {{ {packs} }};

__device__ inline void store_output(const arrays &a, const cuplug_numbers &given, int64_t number,
                                    cuplug_value value, const divisors<KEPT> &kept,
                                    const strides<{n_arrays}, KEPT> &steps, int64_t n) {{
  int64_t at[{n_arrays}] = {{}};
  locate<KEPT>((index)(number / OUTPUTS), kept, steps, at);
  if (COLUMNS && WIDTH > 1) at[OUTPUT] += number % WIDTH * (steps.of[OUTPUT][KEPT - 1] / WIDTH);
  static_cast<{DTYPES[variant.types[-1]].stored} *>(a.data[OUTPUT])[at[OUTPUT]] =
      {op.result(variant, "value", "n")};
}}

CUPLUG_KERNEL cuplug_kernel({parameters}) {{
  __shared__ cuplug_value shared[THREADS * OUTPUTS];
  const cuplug_numbers given = cuplug_read(read.of);
  /* by columns x numbers packs of outputs, y shares one; by rows the other way round */
  const int sharer = COLUMNS ? threadIdx.y : threadIdx.x;
  const int n_sharers = COLUMNS ? blockDim.y : blockDim.x;
  const int64_t owner = COLUMNS ? (int64_t)blockIdx.x * blockDim.x + threadIdx.x
                                : (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const int64_t begin = blockIdx.y * part;
  const int64_t end = begin + part < n_reduced ? begin + part : n_reduced;
  const bool is_used = owner * OUTPUTS < n_outputs;
  int64_t base[{n_arrays}] = {{}};
  if (is_used) locate<KEPT>((index)owner, kept, kept_steps, base);
  cuplug_value values[WIDTH];
  bool is_first = true;
  for (int64_t r = begin + sharer; is_used && r < end; r += (int64_t)n_sharers * UNROLL) {{
    pack_of_each loaded[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {{
      pack_of_each &p = loaded[u];
      int64_t at[{n_arrays}] = {{}};
      if (r + (int64_t)u * n_sharers >= end) continue;
      locate<REDUCED>((index)(r + (int64_t)u * n_sharers), reduced, reduced_steps, at);
      {loads}
    }}
#pragma unroll
    for (int u = 0; u < UNROLL; u++) {{
      const pack_of_each &p = loaded[u];
      if (r + (int64_t)u * n_sharers >= end) continue;
#pragma unroll
      for (int k = 0; k < WIDTH; k++) {{
        const cuplug_value mapped = {op.mapped(dtypes, "p.packs_{}.value[k]")};
        values[k] = is_first ? mapped : {op.call("reduce", "values[k]", "mapped")};
      }}
      is_first = false;
    }}
  }}
  if (!COLUMNS)
#pragma unroll
    for (int k = 1; k < WIDTH; k++)
      if (!is_first) values[0] = {op.call("reduce", "values[0]", "values[k]")};
  const int own = COLUMNS ? threadIdx.x : threadIdx.y * n_sharers;
  const int step = COLUMNS ? blockDim.x : 1; /* from one sharer to the next */
#pragma unroll
  for (int k = 0; k < OUTPUTS; k++)
    if (!is_first) shared[(own + sharer * step) * OUTPUTS + k] = values[k];
  const int64_t n_here = end - begin < n_sharers ? end - begin : n_sharers;
  for (int half = n_sharers / 2; half > 0; half /= 2) {{
    __syncthreads();
    if (!is_used || sharer >= half || sharer + half >= n_here) continue;
#pragma unroll
    for (int k = 0; k < OUTPUTS; k++) {{
      cuplug_value &mine = shared[(own + sharer * step) * OUTPUTS + k];
      const cuplug_value other = shared[(own + (sharer + half) * step) * OUTPUTS + k];
      mine = {op.call("reduce", "mine", "other")};
    }}
  }}
  if (!is_used || sharer) return;
#pragma unroll
  for (int k = 0; k < OUTPUTS; k++) {{
    const int64_t number = owner * OUTPUTS + k;
    const cuplug_value value = shared[own * OUTPUTS + k];
    if (n_parts > 1)
      partials[blockIdx.y * n_outputs + number] = value;
    else
      store_output(a, given, number, value, kept, kept_steps, n);
  }}
}}

CUPLUG_KERNEL cuplug_finish({parameters}) {{
  __shared__ cuplug_value shared[THREADS];
  const cuplug_numbers given = cuplug_read(read.of);
  const int64_t number = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
  const bool is_used = number < n_outputs;
  const int own = threadIdx.y * blockDim.x + threadIdx.x;
  cuplug_value value = {op.nothing()};
  for (int64_t p = threadIdx.y; is_used && p < n_parts; p += blockDim.y) {{
    const cuplug_value other = partials[p * n_outputs + number];
    value = p == threadIdx.y ? other : {op.call("reduce", "value", "other")};
  }}
  shared[own] = value;
  for (int half = blockDim.y / 2; half > 0; half /= 2) {{
    __syncthreads();
    if (threadIdx.y < half && threadIdx.y + half < n_parts)
      shared[own] = {op.call("reduce", "shared[own]", "shared[own + half * blockDim.x]")};
  }}
  if (is_used && !threadIdx.y)
    store_output(a, given, number, shared[own], kept, kept_steps, n);
}}
}} // namespace cuplug
"""

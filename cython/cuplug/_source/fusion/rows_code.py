# SPDX-License-Identifier: Apache-2.0
"""Functions of rows as C and CUDA C++, for templates/host/rows.h and templates/cuda/rows.cuh."""

from __future__ import annotations

from typing import NamedTuple

from cuplug._engine.base.dtypes import Dtype
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions import expression
from cuplug._source.expressions.expression import Name, Names, template
from cuplug._source.fusion.code import computed
from cuplug._source.fusion.promotion import dtype_of
from cuplug._source.fusion.rows import Rows
from cuplug._source.fusion.rows_program import Accumulator, Loop, Program
from cuplug._source.fusion.symbol import Symbol

_BLOCK, _LANES = 1024, 64  # on the host: elements per block, and accumulators
_LEAST_THREADS = 256  # per block


class Rowwise(NamedTuple):
    """A function of rows: a program that keeps values for later phases, and one that does not."""

    name: str
    rows: Rows
    keeping: Program
    reading: Program

    @property
    def names(self) -> Names:
        """The names of arrays and numbers, in the form of expressions."""
        arrays = [Name(f"x{k}", x.type.name, "array") for k, x in enumerate(self.rows.arrays)]
        arrays += [Name(f"r{k}_", x.dtype.name, "output") for k, x in enumerate(self.rows.results)]
        numbers = [
            Name(f"s{k}", dtype_of(x.type).name, "scalar") for k, x in enumerate(self.rows.numbers)
        ]
        return Names(self.name, tuple(arrays), tuple(numbers))

    def code(self, variant: Variant) -> str:
        """Return C or CUDA C++."""
        names, keeps = self.names, variant.on_host or variant.unroll > 0
        program = self.keeping if keeps else self.reading
        writer = (_Host if variant.on_host else _Cuda)(self, program, variant)
        head = [
            expression.preamble("\n".join(program.functions.values()), names, variant),
            expression.numbers(names, variant),
            *map(_reducer, program.accumulators),
        ]
        code = "\n".join([*head, writer.text()])
        return f"{expression.prelude(variant, code)}\n{expression.types(names, variant, code)}"


def _reducer(x: Accumulator) -> str:
    """Return the function that combines two values."""
    return (
        f"__device__ inline {x.type} cuplug_put_{x.name}(const {x.type} a, const {x.type} b) "
        f"{{ return {x.reduce}; }}"
    )


def _declared(x: Symbol, name: str, value: str) -> str:
    return f"const {computed(x)} {name} = {value};"


class _Side:
    """The code for one device type."""

    def __init__(self, op: Rowwise, program: Program, variant: Variant) -> None:
        self.op, self.program, self.variant = op, program, variant
        self.names, self.n_inputs = op.names, len(op.rows.arrays)
        known = self.names.dtypes(variant)
        self.dtypes: list[Dtype] = [known[x.variable] for x in self.names.arrays]
        self.arrays = [x.name for x in self.names.arrays]

    def is_fixed(self, k: int) -> bool:
        """Return whether an array has one element for each row."""
        return bool(self.variant.fixed >> k & 1)

    def input(self, k: int, value: str) -> str:
        """Return the declaration of an input's element."""
        return _declared(self.op.rows.arrays[k], self.arrays[k], value)

    def elements(self, loop: Loop, inputs: list[str], place: str) -> list[str]:
        """Return the computation of an element. Stored values have names such as "kept_{}[i]"."""
        used = [
            _declared(self.program.kept[j], f"k{j}", place.format(j))
            for j in sorted(set(loop.used))
        ]
        keeps = [f"{place.format(j)} = {value};" for j, value in loop.keeps]
        return [*inputs, *used, *loop.lines, *keeps]

    def kept(self, of: str) -> list[str]:
        """Return declarations of memory for the kept values."""
        return [of.format(type=computed(x), j=j) for j, x in enumerate(self.program.kept)]

    def stores(self, place: str) -> list[str]:
        """Return the stores of results that have one value for each row."""
        found = []
        for k, value in self.program.results.items():
            dtype, at = self.dtypes[self.n_inputs + k], self.n_inputs + k
            to = place.format(k=at, name=self.arrays[at], stored=dtype.stored)
            found.append(f"{to} = {expression.store(dtype, value)};")
        return found


class _Host(_Side):
    """C: `cuplug_row` between the two templates."""

    def text(self) -> str:
        """Return the complete code."""
        return "\n".join(
            [self._head(), template("host/rows.h"), self._row(), template("host/rows_loop.h")]
        )

    def _head(self) -> str:
        lists = [
            f"DO({k}, {name}, {x.stored}, {'float' if x.is_half else x.stored}, "
            f"{x.name if x.is_half else 'same'})"
            for k, (name, x) in enumerate(zip(self.arrays, self.dtypes, strict=True))
        ]
        along = [k for k, kind in enumerate(self.op.rows.kinds) if kind == "row"]
        held = sum(4 if x.is_half else x.n_bytes for x in self.dtypes[: self.n_inputs])
        kept = [f"sizeof({computed(x)})" for x in self.program.kept]
        halves = {f"#define CUPLUG_HAS_{x.name.upper()}" for x in self.dtypes if x.is_half}
        return f"""#define CUPLUG_EACH_INPUT(DO) {" ".join(lists[: self.n_inputs])}
#define CUPLUG_EACH_ALONG(DO) {" ".join(lists[self.n_inputs + k] for k in along)}
enum {{ BLOCK = {_BLOCK}, LANES = {_LANES}, N_ARRAYS = {len(lists)}, HELD_BYTES = {held},
       KEPT_BYTES = {" + ".join(["0", *kept])} }};
static const unsigned long long FIXED = {self.variant.fixed}ull;
static const int BYTES[] = {{ {", ".join(str(x.n_bytes) for x in self.dtypes)} }};
""" + "\n".join(sorted(halves))

    def _row(self) -> str:
        kept = self.kept(
            "{type} *const kept_{j} = (void *)at_kept; at_kept += sizeof(*kept_{j}) * room_n;"
        )
        loops = "\n".join(map(self._loop, self.program.loops))
        stores = self.stores("*({stored} *)row->data[{k}]")
        return f"""static void cuplug_row(const cuplug_row_call *row) {{
  const cuplug_numbers cuplug_given = row->given;
  const cuplug_places p = row->places;
  const int64_t n = row->n, room_n = cuplug_room_of(n);
  char *at_kept = row->kept;
  (void)cuplug_given, (void)p, (void)room_n, (void)at_kept;
  {" ".join([expression.unpacked(self.names, self.variant), *kept])}
  {loops}
  {" ".join([*self.program.after, *stores])}
}}"""

    def _loop(self, loop: Loop) -> str:
        own = [x for x, _ in loop.puts]
        lanes = [
            f"{x.type} {x.name}_[LANES], row_{x.name}[LANES]; CUPLUG_FILL({x.name}_, {x.identity})"
            for x in own
        ]
        ends = [f"CUPLUG_END_BLOCK({x.name}, {x.identity})" for x in own]
        folded = [f"const {x.type} {x.name} = CUPLUG_FOLDED({x.name}, {x.type});" for x in own]
        over = "CUPLUG_OVER_BLOCK" if own else "CUPLUG_OVER_ALL"
        outs = "const cuplug_outs o = cuplug_outs_at(row, begin);" if loop.stores else ""
        ends += ["cuplug_store_outs(row, begin, m);"] if loop.stores else []
        return f"""{" ".join([*loop.before, *lanes])}
  for (int64_t begin = 0; begin < n; begin += BLOCK) {{
    const int64_t m = cuplug_min_i64(n - begin, BLOCK);
    {outs}
    {over}({" ".join(self._element(loop))})
    {" ".join(ends)}
  }}
  {" ".join(folded)}"""

    def _element(self, loop: Loop) -> list[str]:
        inputs = []
        for k in sorted(set(loop.arrays)):
            place = f"p.{self.arrays[k]}[{'0' if self.is_fixed(k) else 'begin + at'}]"
            dtype = self.dtypes[k]
            inputs.append(self.input(k, place if dtype.is_half else expression.load(dtype, place)))
        lines = self.elements(loop, inputs, "kept_{}[begin + at]")
        for k, value in loop.stores:
            dtype = self.dtypes[self.n_inputs + k]
            stored = value if dtype.is_half else expression.store(dtype, value)
            lines.append(f"o.{self.arrays[self.n_inputs + k]}[at] = {stored};")
        return lines + [
            f"{x.name}_[lane] = cuplug_put_{x.name}({x.name}_[lane], {value});"
            for x, value in loop.puts
        ]


class _Cuda(_Side):
    """CUDA C++: a kernel after the template."""

    def text(self) -> str:
        """Return the complete code."""
        return "\n".join([self._head(), template("cuda/rows.cuh"), self._kernel()])

    def _head(self) -> str:
        v = self.variant
        return f"""enum {{ WIDTH = {v.width}, PACKS = {v.unroll}, KEPT = {v.ndim},
       ROW_THREADS = {1 << v.n_reduced}, N_ARRAYS = {len(self.arrays)},
       N_SCALARS = {max(len(self.names.scalars), 1)} }};
constexpr unsigned long long NEAR = {v.near}ull;
#define CUPLUG_IN_REGISTERS {int(v.unroll > 0)}
typedef {"int64_t" if v.wide else "unsigned"} index;
typedef {"int" if v.unroll > 0 else "int64_t"} count;"""

    def _kernel(self) -> str:
        self._known: set[int] = set()
        loops = "\n".join(map(self._loop, self.program.loops))
        stores = " ".join(self.stores("*at_{name}"))
        return f"""extern "C" __global__ void
__launch_bounds__({max(_LEAST_THREADS, 1 << self.variant.n_reduced)})
cuplug_kernel(const arrays a, const scalars s, const long long n_rows, const long long n,
              const divisors<KEPT> kept, const strides<N_ARRAYS, KEPT> kept_steps,
              const steps along) {{
  const cuplug_numbers cuplug_given = cuplug_read(s.of);
  const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
  const bool is_there = row < n_rows;
  const count n_here = is_there ? n : 0;
  int64_t base[N_ARRAYS] = {{}};
  if (is_there) locate<KEPT>((index)row, kept, kept_steps, base);
  (void)n_here, (void)cuplug_given;
  {" ".join([expression.unpacked(self.names, self.variant), *self._declarations()])}
  {loops}
  {" ".join(self.program.after)}
  if (is_there && threadIdx.x == 0) {{ {stores} }}
}}
}} // namespace cuplug"""

    def _declarations(self) -> list[str]:
        """Return the starts of rows, shared memory, and the registers of all phases."""
        found = []
        for k, (name, dtype) in enumerate(zip(self.arrays, self.dtypes, strict=True)):
            type_ = f"{'const ' if k < self.n_inputs else ''}{dtype.stored} *"
            found.append(f"{type_}const at_{name} = static_cast<{type_}>(a.data[{k}]) + base[{k}];")
        found += [f"__shared__ {x.type} shared_{x.name}[32];" for x in self.program.accumulators]
        found += self.kept("{type} kept_{j}[PACKS][WIDTH];")
        return found + [
            f"pack<{self.dtypes[k].stored}, WIDTH> held_{self.arrays[k]}[PACKS];"
            for k in range(self.n_inputs)
            if self._is_held(k)
        ]

    def _loop(self, loop: Loop) -> str:
        own = [x for x, _ in loop.puts]
        before = [*loop.before, *(f"{x.type} part_{x.name} = {x.identity};" for x in own)]
        loads, inputs = [], []
        for k in sorted(set(loop.arrays)):
            before += self._first_load(k)
            value = f"one_{self.arrays[k]}"
            if not self.is_fixed(k):
                place = f"held_{self.arrays[k]}[i]" if self._is_held(k) else self._load(k)
                loads.append(f"const auto p_{self.arrays[k]} = {place};")
                value = f"p_{self.arrays[k]}.value[j]"
            inputs.append(self.input(k, expression.load(self.dtypes[k], value)))
        lines = " ".join(self._element(loop, inputs))
        made = [(self.n_inputs + k, self.arrays[self.n_inputs + k]) for k, _ in loop.stores]
        loads += [f"pack<{self.dtypes[k].stored}, WIDTH> q_{name};" for k, name in made]
        halves = [(self.dtypes[k], name) for k, name in made if self.dtypes[k].is_half]
        loads += [f"float f_{name}[WIDTH];" for _, name in halves]
        stores = [
            f"narrow(f_{name}, q_{name}, [](float x) {{ return cuplug_{x.name}_store(x); }}, "
            f"[](float x, float y) {{ return cuplug_{x.name}_store_two(x, y); }});"
            for x, name in halves
        ]
        stores += [
            f"store_pack<{k}>(at_{name}, along.of[{k}], first, n_here, q_{name});"
            for k, name in made
        ]
        ends = [
            f"const {x.type} {x.name} = all_of_row(part_{x.name}, "
            f"[](const {x.type} a, const {x.type} b) {{ return cuplug_put_{x.name}(a, b); }}, "
            f"shared_{x.name});"
            for x in own
        ]
        each = f'_Pragma("unroll") for (int j = 0; j < WIDTH; j++) {{ {lines} }}'
        return f"""{" ".join(before)}
  CUPLUG_OVER_PACKS({" ".join(loads)} {each} {" ".join(stores)})
  {" ".join(ends)}"""

    def _is_held(self, k: int) -> bool:
        """Return whether registers hold a row's elements, which several phases use."""
        uses = sum(k in loop.arrays for loop in self.program.loops)
        return self.variant.unroll > 0 and uses > 1 and not self.is_fixed(k)

    def _load(self, k: int) -> str:
        return f"load_pack<{k}>(at_{self.arrays[k]}, along.of[{k}], first, n_here)"

    def _first_load(self, k: int) -> list[str]:
        """Return the loads of a row's input elements before the first phase that uses them."""
        if k in self._known:
            return []
        self._known.add(k)
        name, stored = self.arrays[k], self.dtypes[k].stored
        if self.is_fixed(k):
            return [f"const {stored} one_{name} = is_there ? *at_{name} : {stored}();"]
        return [f"CUPLUG_OVER_PACKS(held_{name}[i] = {self._load(k)};)"] if self._is_held(k) else []

    def _element(self, loop: Loop, inputs: list[str]) -> list[str]:
        lines = self.elements(loop, inputs, "kept_{}[i][j]")
        for k, value in loop.stores:
            name, dtype = self.arrays[self.n_inputs + k], self.dtypes[self.n_inputs + k]
            if dtype.is_half:
                lines.append(f"f_{name}[j] = {value};")
            else:
                lines.append(f"q_{name}.value[j] = {expression.store(dtype, value)};")
        return lines + [
            f"if (first < n_here) part_{x.name} = cuplug_put_{x.name}(part_{x.name}, {value});"
            for x, value in loop.puts
        ]

# SPDX-License-Identifier: Apache-2.0
"""The loops of element-wise operators over the elements of one variant's arrays."""

from __future__ import annotations

from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions.element_wise_code import Elementwise

PACKS, TILES = 0, 2  # values of cuplug_walk_kind


def host_code(op: Elementwise, variant: Variant) -> str:
    """Return C: a cuplug_loop_part called cuplug_function.

    The compiler knows the number of elements of a group, and vector instructions compute all of
    them. Broadcast arrays have one element.
    """
    pointers, places = [], []
    for k, x in enumerate(op.names.arrays):
        dtype = op.names.dtypes(variant)[x.variable]
        const = "const " if x.kind in ("array", "raw") else ""
        is_converted = dtype.is_half and op.converts(variant)
        stored = dtype.stored if x.kind == "raw" or is_converted else op.held(dtype, variant)
        name = f"{'data' if x.kind == 'raw' else 'at'}_{x.name}"
        pointers.append(f"{const}{stored} *const {name} = call->data[{k}];")
        is_still = variant.still >> k & 1
        if is_still:
            pointers.append(f"const {stored} still_{x.name} = *at_{x.name};")
        place = f"still_{x.name}" if is_still else f"at_{x.name}[at]"
        places.append(f"held_{x.name}[lane]" if is_converted else place)
    number = "from + at"
    if op.wants_groups(variant):  # the last group ends with copies of the last element
        number = f"cuplug_min_i64({number}, call->loop->n - 1)"
    element = op.call(places, "{}", number, "call->loop->n")
    loop = f"CUPLUG_SIMD for (int64_t at = 0; at < m; at++) {element}"
    if op.has_usual:
        loop = _by_groups(op, variant, places, number)
    elif op.converts(variant):
        loop = _of_halves(op, variant, element)
    elif op.wants_groups(variant):
        loop = _of_lanes("CUPLUG_GROUP", "CUPLUG_SIMD", element)
    run = "cuplug_run_part(cuplug_elements, call, from, to)"
    return f"""{op.head(variant)}
CUPLUG_PART cuplug_elements(const cuplug_loop_call *call, long long from, long long to) {{
  const cuplug_numbers given = cuplug_read(call->scalars);
  const int64_t m = to - from;
  {" ".join(pointers)}
  {loop}
}}

void cuplug_function(const cuplug_loop_call *call, long long from, long long to) {{
  {run if op.may_divide else "cuplug_elements(call, from, to)"};
}}
"""


def _of_lanes(n: str, simd: str, element: str, before: str = "", after: str = "") -> str:
    """Return the loop over groups of n elements, with the code before and after each group."""
    return f"""for (int64_t group = 0; group < m; group += {n}) {{
    {before}
    {simd} for (int64_t lane = 0; lane < {n}; lane++) {{
      const int64_t at = group + lane;
      {element}
    }}
    {after}
  }}"""


def _of_halves(op: Elementwise, variant: Variant, element: str) -> str:
    """Return a loop over groups whose 16-bit floats are converted to float, and back.

    If an array has one-byte elements, a group has as many elements as fill a vector.
    """
    dtypes = op.names.dtypes(variant)
    least = min(dtypes[x.variable].n_bytes for _, x in op.names.looped)
    n, simd = ("64", "CUPLUG_SIMD") if least == 1 else ("16", "CUPLUG_SIMD_ONCE")
    before, after = [], []
    for _, x in op.names.looped:
        dtype = dtypes[x.variable]
        if not dtype.is_half:
            continue
        each = f"for (int64_t of = 0; of < {n}; of += 16) cuplug_{dtype.name}"
        before.append(f"float held_{x.name}[{n}];")
        if x.kind != "output":
            before.append(f"{each}_load_16(held_{x.name} + of, at_{x.name} + group + of);")
        if x.kind != "array":
            after.append(f"{each}_store_16(at_{x.name} + group + of, held_{x.name} + of);")
    return _of_lanes(n, simd, element, " ".join(before), " ".join(after))


def _by_groups(op: Elementwise, variant: Variant, places: list[str], number: str) -> str:
    """Return the loop of an operator with `usual` elements, group by group."""
    (k,) = (k for k, x in enumerate(op.names.arrays) if x.kind in ("output", "inout"))
    written = op.names.arrays[k]
    held = op.held(op.names.dtypes(variant)[written.variable], variant)
    before = places[k] if written.kind == "inout" else "0"
    each = "for (int64_t at = group; at < end; at++)"
    ask, vectors, alone = (
        op.call(into, "{}", number, "call->loop->n", usual)
        for into, usual in (([*places[:k], "asked", *places[k + 1 :]], 2), (places, 1), (places, 0))
    )
    return f"""for (int64_t group = 0; group < m; group += CUPLUG_GROUP) {{
    const int64_t end = cuplug_min_i64(group + CUPLUG_GROUP, m);
    int usual = 1;
    CUPLUG_SIMD {each} {{
      {held} asked = {before};
      {ask}
      usual &= asked != 0;
    }}
    if (usual)
      CUPLUG_SIMD {each} {vectors}
    else
      {each} {alone}
  }}"""


def cuda_code(op: Elementwise, variant: Variant) -> str:
    """Return CUDA C++: a kernel called cuplug_kernel."""
    dtypes = op.names.dtypes(variant)
    n_arrays, n_scalars = len(op.names.arrays), len(op.names.scalars)
    types = ", ".join(dtypes[x.variable].stored for x in op.names.arrays)
    reads = sum(1 << k for k, x in op.names.looped if x.kind != "output")
    writes = sum(1 << k for k, x in op.names.looped if x.kind != "array")
    pointers = [
        f"const {dtypes[x.variable].stored} *const data_{x.name} = this->template data<{k}>();"
        for k, x in enumerate(op.names.arrays)
        if x.kind == "raw"
    ]
    element = op.call(list(range(n_arrays)), "walks::get<{}>(p).value[j]", "number", "count")
    return f"""{op.head(variant)}
struct arrays {{ void *data[{n_arrays}]; }};
struct scalars {{ cuplug_scalar of[{max(n_scalars, 1)}]; }};

struct code : walks::walked<{reads}, {writes}, {types}> {{
  cuplug_numbers given;
  template <class P>
  __device__ void operator()(P &p, int j, int64_t number, int64_t count) const {{
    {" ".join(pointers)}
    {element}
  }}
}};

{_cuda_kernel(op, variant)}
    cuplug_kernel(const arrays a, const scalars read, const int64_t n, const cuplug_loop_split cut,
                  const divisors<{variant.ndim}> sizes,
                  const strides<{n_arrays}, {variant.ndim}> steps) {{
  code c;
  c.given = cuplug_read(read.of);
#pragma unroll
  for (int k = 0; k < {n_arrays}; k++) c.arrays[k] = a.data[k];
  {_cuda_walk(variant, op.tile_side(variant))}
}}
}} // namespace cuplug
"""


def _cuda_kernel(op: Elementwise, variant: Variant) -> str:
    """Return the first lines of a kernel."""
    if variant.walk == TILES and not op.work:
        return f"CUPLUG_KERNEL_FOR(walks::TILE_BLOCKS<{variant.width}>)"
    return "CUPLUG_KERNEL"


def _cuda_walk(variant: Variant, tile_side: int) -> str:
    """Return the call of the function in <cuplug/walk.cuh> for the elements' layout."""
    index = "unsigned" if variant.ndim and not variant.wide else "int64_t"
    if variant.walk == PACKS:
        sizes = f"{variant.width}, {variant.unroll}, {variant.ndim}, {variant.still}ull, {index}"
        return f"walks::in_packs<{sizes}>(c, n, sizes, steps);"
    if variant.walk == TILES:
        sizes = f"{tile_side}, {variant.width}, {variant.across}ull, {variant.ndim}"
        return f"walks::in_tiles<{sizes}>(c, n, cut, sizes, steps);"
    sizes = f"{variant.width}, {variant.unroll}, {variant.ndim}, {index}"
    return (
        f"walks::in_lines<{sizes}>(c, n, cut, sizes, steps, {variant.near}ull, {variant.still}ull);"
    )

# SPDX-License-Identifier: Apache-2.0
"""The code of reductions and scans: the computation, followed by the loops of templates/."""

from __future__ import annotations

from collections.abc import Mapping

from cuplug._engine.base.dtypes import Dtype
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions.expression import block_elements, template
from cuplug._source.expressions.reduction_code import WIDE, Reduction

LANE_BYTES, FEW_BYTES = 512, 128  # lanes of a row, and lanes that form pairs


def _lanes(op: Reduction, variant: Variant) -> str:
    """Return the type of many values, and the functions that read and write one of them."""
    dtypes = op.accumulators(variant)
    members = " ".join(f"{x.computed} {name}[n_];" for name, x in dtypes.items())
    get = ", ".join(f"(values_).{name}[at_]" for name in dtypes)
    made = f"((cuplug_value){{{get}}})" if op.fields else f"({get})"
    sets = " ".join(
        f"(values_).{name}[at_] = {f'set_.{name}' if op.fields else 'set_'};" for name in dtypes
    )
    return f"""#define CUPLUG_VALUES(n_) struct {{ {members} }}
#define CUPLUG_GET(values_, at_) {made}
#define CUPLUG_SET(values_, at_, value_) \\
  do {{ const cuplug_value set_ = (value_); {sets} }} while (0)"""


def host_code(op: Reduction, variant: Variant) -> str:
    """Return C: a cuplug_loop_function called cuplug_function."""
    dtypes, accumulators = op.names.dtypes(variant), list(op.accumulators(variant).values())
    widest = max(x.n_bytes for x in accumulators)
    n_blocks = len(op.inputs) + len(accumulators)
    block = block_elements(n_blocks, max(widest, *(x.n_bytes for x in dtypes.values())))
    lanes, few = (min(1 << (n // widest).bit_length() - 1, block) for n in (LANE_BYTES, FEW_BYTES))
    is_whole = not op.fields and accumulators[0].kind in WIDE
    narrow = f"{'u' * (accumulators[0].kind == 'uint')}int32_t"
    of_lanes = f"struct {{ {narrow} of[LANES]; }}" if _is_narrow(op, dtypes) else ""
    places = " ".join(f"const {op.held(dtypes[x.variable], variant)} *{x.name};" for x in op.inputs)
    return f"""{op.head(variant)}
typedef struct cuplug_places {{ {places} }} cuplug_places;
{op.element(variant, "p.{}[at]")}
{_lanes(op, variant)}
enum {{ BLOCK = {block}, LANES = {lanes}, FEW = {few},
       N_INPUTS = {len(op.inputs)}, N_OUTPUTS = {len(op.outputs)},
       COUNTS = {int(op.counts)}, CAN_STOP = {int(op.stops is not None)},
       EXCLUSIVE = {int(op.exclusive or False)}, WHOLE = {int(is_whole)},
       HAS_CHOICES = {int(op.has_choices)}, IS_IDEMPOTENT = {int(op.is_idempotent)} }};
typedef uint{8 * min(next(iter(accumulators)).n_bytes, 8)}_t cuplug_flag;
typedef {of_lanes or "CUPLUG_VALUES(LANES)"} cuplug_lanes;
{_again(op, accumulators[0])}
{_templates(op, accumulators[0])}"""


def _templates(op: Reduction, accumulator: Dtype) -> str:
    if op.exclusive is not None:
        names = ["host/scan.h"]
    else:
        again = ["host/reduction_again.h"] if put_again(op, accumulator) else []
        row = "host/reduction_choose.h" if op.choose else "host/reduction_rows.h"
        names = ["host/reduction_places.h", *again, "host/reduction.h", row]
    return "\n".join(map(template, names))


def put_again(op: Reduction, accumulator: Dtype) -> int:
    """Return the kind of reduction whose doubtful results are computed again, in double.

    1 is sums of real or complex numbers, 2 products of real numbers, and 0 all others.
    """
    text = "" if op.fields or op.exclusive is not None else op.reduce.replace(" ", "")
    kind = {"a+b": 1, "b+a": 1, "a*b": 2, "b*a": 2}.get(text, 0)
    return kind if accumulator.kind in (("float", "complex"), ("float",))[kind == 2] else 0


def _again(op: Reduction, accumulator: Dtype) -> str:
    """Return the definitions that reduction_again.h requires."""
    kind = put_again(op, accumulator)
    is_complex = accumulator.kind == "complex"
    part = "((k_) ? imag(value_) : real(value_))" if is_complex else "(value_)"
    made = "complex((parts_)[0], (parts_)[1])" if is_complex else "((parts_)[0])"
    return f"""enum {{ AGAIN = {kind}, N_AGAIN = {1 + is_complex} }};
#define CUPLUG_IS_AGAIN {int(kind > 0)}
#define cuplug_get_part(value_, k_) {part}
#define cuplug_set_parts(value_, parts_) ((cuplug_value){made})"""


def cuda_code(op: Reduction, variant: Variant) -> str:
    """Return CUDA C++: kernels cuplug_kernel, for each part, and cuplug_finish."""
    dtypes = op.names.dtypes(variant)
    is_sum = _is_small_sum(op, dtypes) and not variant.still & 1
    packs = " ".join(f"{_pack(dtypes[x.variable], variant, is_sum)} {x.name};" for x in op.inputs)
    index = "int64_t" if variant.wide else "unsigned"
    first = op.inputs[0]
    is_bool = "true" if dtypes[first.variable].kind == "bool" else "false"
    return f"""{op.head(variant)}
enum {{ WIDTH = {variant.width}, UNROLL = {variant.unroll}, KEPT = {variant.ndim},
       REDUCED = {variant.n_reduced}, N_INPUTS = {len(op.inputs)}, N_OUTPUTS = {len(op.outputs)},
       N_ARRAYS = N_INPUTS + N_OUTPUTS, N_SCALARS = {max(len(op.names.scalars), 1)},
       EXCLUSIVE = {int(op.exclusive or False)} }};
constexpr bool COLUMNS = {"true" if variant.columns else "false"};
constexpr bool ALONE = {"true" if variant.alone else "false"};
constexpr bool FLAT = {"true" if variant.flat else "false"};
constexpr bool FEW = {"true" if variant.few else "false"};
constexpr bool STORES_PACKS = {"true" if variant.stores else "false"};
constexpr unsigned long long STILL = {variant.still}ull; /* array k stands still in packs */
constexpr unsigned long long FIXED = {variant.fixed}ull; /* and along the reduced loop */
typedef {index} index;
struct cuplug_places {{ {packs} }};
{op.element(variant, "p.{}.value[at]")}
#define CUPLUG_IS_SUM {int(is_sum)}
#define CUPLUG_OWN_SUMS {int(is_sum and (variant.columns or variant.few))}
#define CUPLUG_IS_BOOL {is_bool}
#define CUPLUG_SMALL {first.name}
#define CUPLUG_SMALL_BYTES {dtypes[first.variable].n_bytes}
#define CUPLUG_CHOOSES {int(op.choose is not None)}
typedef {dtypes[first.variable].stored} cuplug_small_type;
{_again(op, next(iter(op.accumulators(variant).values())))}
{_kernels(op)}"""


def _kernels(op: Reduction) -> str:
    names = ["cuda/reduction_threads.cuh", "cuda/reduction_packs.cuh"]
    names += ["cuda/reduction_again.cuh", "cuda/reduction.cuh"]
    of_scans = ["cuda/scan_states.cuh", "cuda/scan.cuh"]
    return "\n".join(map(template, names if op.exclusive is None else of_scans))


def _pack(dtype: Dtype, variant: Variant, is_sum: bool) -> str:
    """Return the type of a pack. Sums read bytes as words."""
    if is_sum and dtype.n_bytes == 1 and variant.width % 4 == 0:
        return f"pack<unsigned, {variant.width // 4}>"
    return f"pack<{dtype.stored}, WIDTH>"


def _is_small_sum(op: Reduction, dtypes: Mapping[str, Dtype]) -> bool:
    """Return whether this is only a sum of integers of one or two bytes."""
    first = op.inputs[0]
    is_small = dtypes[first.variable].n_bytes <= 2 and dtypes[first.variable].kind in WIDE
    return is_small and op.map.strip() == first.name and _is_whole_sum(op)


def _is_whole_sum(op: Reduction) -> bool:
    is_sum = op.reduce.replace(" ", "") in ("a+b", "b+a") and len(op.inputs) == 1
    return is_sum and op.accumulate in (None, "int64", "uint64") and not op.fields


def _is_narrow(op: Reduction, dtypes: Mapping[str, Dtype]) -> bool:
    """Return whether the sum of a block of elements fits in 32 bits."""
    outputs = [dtypes[x.variable].kind in WIDE for x in op.outputs]
    is_count = op.map.replace(" ", "") == f"{op.inputs[0].name}!=0"
    return _is_small_sum(op, dtypes) or (is_count and all(outputs) and _is_whole_sum(op))

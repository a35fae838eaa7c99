# SPDX-License-Identifier: Apache-2.0
"""The functions of arrays: expressions for each kind of number, reductions, and names."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cuplug._engine.array.promotion import kind_of
from cuplug._engine.base.dtypes import DTYPES

INTEGERS, REALS, FLOATS = ("int", "uint"), ("int", "uint", "float"), ("float", "complex")
NUMERIC = (*REALS, "complex")
ALL = ("bool", *NUMERIC)

# Division as in CPython. By 0 and of infinities it is as in NumPy, which the standard allows.
# Vectors find the remainder of usual numbers in one step: the quotient has few digits and, rounded,
# exceeds the true one by at most 1; the product is subtracted before it is rounded. fmod takes a
# step for each digit.
_FLOORED = """
#ifdef __FMA__
#define CUPLUG_USUAL(x, y) \\
  ((fabs(x) < fabs(y) * (T)(sizeof(T) > 4 ? 1ll << 50 : 1 << 21)) & (fabs(y) < (T)INFINITY))
#else
#define CUPLUG_USUAL(x, y) 0
#endif
__device__ inline T left(T x, T y, int usual) {
  if (!usual && !CUPLUG_USUAL(x, y)) return fmod(x, y);
  const T whole = trunc(x / y), rest = fma(-whole, y, x);
  return rest != 0 && (rest < 0) != (x < 0) ? rest + copysign(y, x) : rest;
}
__device__ inline T modulo(T x, T y, int usual) {
  if (usual == 2) return CUPLUG_USUAL(x, y);
  const T rest = left(x, y, usual), both = rest != 0 && (y < 0) != (rest < 0) ? rest + y : rest;
  return both == 0 ? copysign(both, y) : both;
}
__device__ inline T floored(T x, T y, int usual) {
  if (usual == 2) return CUPLUG_USUAL(x, y);
  if (!usual && y == 0) return x / y;
  const T rest = left(x, y, usual), among = (x - rest) / y;
  const T whole = rest != 0 && (y < 0) != (rest < 0) ? among - 1 : among, down = floor(whole);
  const T nearest = whole - down > (T)0.5 ? down + 1 : down;
  return whole == 0 ? copysign((T)0, x / y) : nearest;
}
"""
# The next number towards y. On the host, integer operations on the bits, which are vectorized: the
# order of numbers of one sign is the order of their bits.
_NEIGHBOUR = """
#ifdef __CUDACC__
#define neighbour(x, y) nextafter(x, y)
#else
__device__ inline T neighbour(T x, T y) {
  typedef __typeof__(__builtin_choose_expr(sizeof(T) == 4, (uint32_t)0, (uint64_t)0)) bits_of;
  bits_of bits, least = 1;
  T next, first;
  memcpy(&bits, &x, sizeof x);
  bits += (bits_of)0 - ((x < y) != (x > 0)) * (bits_of)2 + 1;
  memcpy(&next, &bits, sizeof x);
  memcpy(&first, &least, sizeof x);
  next = x == 0 ? copysign(first, y) : next;
  return x == y ? y : x != x || y != y ? x + y : next;
}
#endif
"""
# Division of integers, rounded down. Division by 0 is 0, and division by -1 wraps. On the host, a
# division takes about 15 steps and is not vectorized. It is replaced by a product with the
# divisor's inverse if that is exact enough, or is computed once because the divisor is a small
# number. The remainder, after two steps, is below the divisor or, because the inverse is rounded,
# equal to it. On GPUs, integers of up to 16 bits are divided as floats. With 0.5 added, the
# quotient is further from an integer than its error.
_DIVIDED = """
#ifdef __CUDACC__
#define IS_INVERTED(T, y, is_number) 0
#else
#define IS_INVERTED(T, y, is_number) \\
  (sizeof(T) < 8 || (is_number && (y) == (T)(int)(y) && ((int)(y) > 0 || (T)-1 < (T)1)))
#endif
__device__ inline T divided(T x, T y, int wants_rest, int is_number) {
#ifdef __CUDACC__
  if (sizeof(T) < 4) {
    const float by = y == 0 ? __uint_as_float(0x7f800000) : (float)y; /* for no branch */
    const float more = (float)x + copysignf(0.5f, by);
    const int whole = (int)floorf(__fdividef(more, by)), own = y == 0 ? 0 : x;
    return (T)(wants_rest ? own - whole * (int)y : whole);
  }
#endif
  if (y == 0) return 0;
  if ((T)-1 < (T)1 && y == (T)-1) return wants_rest ? 0 : (T)(0 - (uint64_t)x);
  if (IS_INVERTED(T, y, is_number)) {
    const double inverse = 1.0 / (double)y;
    const int64_t by = (int64_t)y;
    uint64_t whole = (uint64_t)(T)((double)x * inverse);
    int64_t rest = (int64_t)((uint64_t)x - whole * (uint64_t)by);
    if (sizeof(T) == 8) {
      const int64_t more = (int64_t)((double)rest * inverse);
      whole += (uint64_t)more;
      rest -= more * by;
    }
    const int is_below = by > 0 ? rest < 0 : rest > 0;
    rest += is_below ? by : 0;
    const int is_above = by > 0 ? rest >= by : rest <= by;
    rest -= is_above ? by : 0;
    return wants_rest ? (T)rest : (T)(whole - (uint64_t)is_below + (uint64_t)is_above);
  }
  const T rest = x % y;
  const int is_other = rest != 0 && (x < 0) != (y < 0);
  if (wants_rest) return is_other ? rest + y : rest;
  return x / y - (T)is_other;
}
"""
# Complex functions that C lacks, in double, and functions that the standard or NumPy defines
# differently at infinity.
_COMPLEX = {
    "expm1": """
__device__ inline T complex_expm1(T z) {
  const double x = real(z), y = imag(z), s = sin(y / 2);
  if (x > 700) return exp(z);
  if (y == 0) return (T)complex(expm1(x) + 0.0, y);
  if (isinf(x) && !isfinite(y)) return (T)complex(-1.0, 0.0);
  return (T)complex(expm1(x) * cos(y) - 2 * s * s, exp(x) * sin(y));
}
""",
    "log1p": """
__device__ inline T complex_log1p(T z) {
  const double x = real(z), y = imag(z);
  if (fabs(x) < 0.5 && fabs(y) < 0.5)
    return (T)complex(0.5 * log1p(x * (2 + x) + y * y), atan2(y, 1 + x));
  return (T)log(complex(1 + x, y));
}
""",
    "tanh": """
__device__ inline T complex_tanh(T z) {
  const double x = real(z), y = imag(z);
  return isinf(x) && isfinite(y) ? (T)complex(copysign(1.0, x), copysign(0.0, y)) : tanh(z);
}
""",
    "sign": """
__device__ inline T complex_sign(T z) {
  if (z == 0) return (T)0;
  if (!isinf(abs(z))) return z / abs(z);
  const double x = real(z) / 4, y = imag(z) / 4;
  if (isfinite(x) && isfinite(y)) return (T)(complex(x, y) / abs(complex(x, y)));
  if (!isinf(x)) return (T)complex(0.0, copysign(1.0, y));
  return (T)complex(isinf(y) ? x / x : copysign(1.0, x), isinf(y) ? x / x : 0.0);
}
""",
}
# C returns NaN for a division by 0, and no infinity.
_QUOTIENT = "y == 0 ? (T)complex(real(x) / abs(real(y)), imag(x) / abs(real(y))) : x / y"
_BITS = "8 * (int)sizeof(T)"


@dataclass(frozen=True)
class Function:
    """A function of x, or of x and y."""

    name: str
    expressions: Mapping[str, str]  # by kind
    n: int = 1  # arguments
    result: str = "T"  # a dtype, or "real": the dtype of a complex number's parts

    def check(self, dtype: str) -> None:
        """Reject `nextafter` for dtypes that are computed in another dtype."""
        if self.name == "nextafter" and DTYPES[dtype].is_narrow:
            raise TypeError(f"{self.name}: got {dtype}, expected float32 or float64")

    def preamble(self, kind: str) -> str:
        """Return the preamble: functions that the expression of a kind calls."""
        text = self.expressions[kind]
        if kind == "float":
            if "neighbour(" in text:
                return _NEIGHBOUR
            return _FLOORED if "floored(" in text or "modulo(" in text else ""
        if kind in INTEGERS:
            return _DIVIDED if "divided(" in text else ""
        return _COMPLEX.get(self.name, "") if kind == "complex" else ""


def _of(kinds: tuple[str, ...], expression: str, **others: str) -> dict[str, str]:
    return dict.fromkeys(kinds, expression) | others


def _plain() -> list[Function]:
    """Return the functions that C has under these names."""
    both = ["exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh"]
    both += ["acos", "acosh", "asin", "asinh", "atan", "atanh"]
    apart = {name: f"complex_{name}(x)" for name in ("tanh", "expm1", "log1p")}
    apart |= {"log2": f"(T)(log(x) / {math.log(2)})", "log10": f"(T)(log(x) / {math.log(10)})"}
    parts = "(T)complex(rint(real(x)), rint(imag(x)))"
    whole, binary = ["ceil", "floor", "trunc"], ["copysign", "hypot", "atan2"]
    return [
        *(Function(name, _of(FLOATS, f"{name}(x)")) for name in both),
        *(Function(name, {"float": f"{name}(x)", "complex": z}) for name, z in apart.items()),
        *(Function(name, _of(INTEGERS, "x", float=f"{name}(x)")) for name in whole),
        Function("round", _of(INTEGERS, "x", float="rint(x)", complex=parts)),
        *(Function(name, {"float": f"{name}(x, y)"}, 2) for name in binary),
        Function("nextafter", {"float": "neighbour(x, y)"}, 2),
    ]


def _wrapping(sign: str) -> str:
    """Return an operation of signed integers that wraps; CUDA's compiler assumes they do not."""
    return f"(T)((uint64_t)x {sign} (uint64_t)y)"


def _products(expression: str) -> dict[str, str]:
    """Return an expression of products. They wrap if x is an integer."""
    wrapping = expression.replace("x", "(uint64_t)x")
    return _of(NUMERIC, expression, int=f"(T)({wrapping})")


def _unary() -> list[Function]:
    sign = "x > 0 ? (T)1 : x < 0 ? (T)-1 : x != x ? x : (T)0"
    minus = "(T)(0 - (uint64_t)x)"
    root = "isinf(x) ? abs(x) : sqrt(x + (T)0)"
    return [
        Function(
            "abs", {"bool": "x", "int": f"x < 0 ? {minus} : x", "uint": "x", "float": "abs(x)"}
        ),
        Function("negative", _of(NUMERIC, "-x", int=minus)),
        Function("positive", _of(ALL, "x")),
        Function("square", _products("x * x")),
        Function("cube", _products("x * x * x")),
        Function("fourth", _products("x * x * (x * x)")),
        Function("fifth", _products("x * x * (x * x) * x")),
        Function("inverse_square", _of(FLOATS, "(T)1 / x * ((T)1 / x)")),
        Function("root", {"float": root, "complex": "sqrt(x)"}),
        Function("inverse_root", {"float": f"(T)1 / ({root})"}),
        Function("root_of_cube", {"float": f"abs(x) * ({root})"}),
        Function("reciprocal", _of(FLOATS, "(T)1 / x")),
        Function(
            "sign",
            {
                "int": "(T)((x > 0) - (x < 0))",
                "uint": "x > 0 ? (T)1 : (T)0",
                "float": sign,
                "complex": "complex_sign(x)",
            },
        ),
        Function("conj", _of(REALS, "x", complex="conj(x)")),
        Function("bitwise_invert", _of(INTEGERS, "~x", bool="!x")),
        Function("logical_not", {"bool": "!x"}),
        Function("signbit", {"float": "signbit(x) != 0"}, result="bool"),
    ]


def _of_parts() -> list[Function]:
    """Return functions of the parts of complex numbers."""

    def of_both(name: str, join: str) -> str:
        return f"({name}(real(x)) != 0) {join} ({name}(imag(x)) != 0)"

    never, always = (_of(INTEGERS, value, bool=value) for value in ("(bool)0", "(bool)1"))
    nan, infinite, finite = (f"{name}(x) != 0" for name in ("isnan", "isinf", "isfinite"))
    return [
        Function("isnan", {**never, "float": nan, "complex": of_both("isnan", "||")}, 1, "bool"),
        Function(
            "isinf", {**never, "float": infinite, "complex": of_both("isinf", "||")}, 1, "bool"
        ),
        Function(
            "isfinite", {**always, "float": finite, "complex": of_both("isfinite", "&&")}, 1, "bool"
        ),
        Function("complex_abs", {"complex": "abs(x)"}, 1, "real"),
        Function("real", {"complex": "real(x)"}, 1, "real"),
        Function("imag", {"complex": "imag(x)"}, 1, "real"),
    ]


def _dividing(is_number: int) -> list[Function]:
    """Return divisions that round down, by an array or by a number."""
    whole, rest = f"divided(x, y, 0, {is_number})", f"divided(x, y, 1, {is_number})"
    return [
        Function("floor_divide", _of(INTEGERS, whole, float="floored(x, y, usual)"), 2),
        Function("remainder", _of(INTEGERS, rest, float="modulo(x, y, usual)"), 2),
    ]


def _arithmetic() -> list[Function]:
    either, both = {"bool": "x | y"}, {"bool": "x & y"}  # as NumPy adds and multiplies bools
    signs = {"add": ("+", either), "subtract": ("-", {}), "multiply": ("*", both)}
    apart = "fmax(x, y) + log1p(exp(-abs(x - y)))"
    return [
        *(
            Function(name, _of(NUMERIC, f"x {sign} y", int=_wrapping(sign), **of_bools), 2)
            for name, (sign, of_bools) in signs.items()
        ),
        Function("divide", _of(FLOATS, "x / y", complex=_QUOTIENT), 2),
        *_dividing(0),
        Function("pow", _of(NUMERIC, "pow(x, y)"), 2),
        Function("logaddexp", {"float": f"x == y ? x + log((T)2) : {apart}"}, 2),
        Function("maximum", _of(REALS, "max(x, y)", **either), 2),
        Function("minimum", _of(REALS, "min(x, y)", **both), 2),
    ]


def _compared() -> list[Function]:
    order = {"less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">="}
    logic = {"logical_and": "&&", "logical_or": "||", "logical_xor": "!="}
    bits = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}
    outside = f"y < 0 || y >= {_BITS}"
    return [
        *(
            Function(name, _of(("bool", *REALS), f"x {c} y"), 2, "bool")
            for name, c in order.items()
        ),
        Function("equal", _of(ALL, "x == y"), 2, "bool"),
        Function("not_equal", _of(ALL, "x != y"), 2, "bool"),
        *(Function(name, {"bool": f"x {c} y"}, 2) for name, c in logic.items()),
        *(Function(name, _of(("bool", *INTEGERS), f"x {c} y"), 2) for name, c in bits.items()),
        Function("bitwise_left_shift", _of(INTEGERS, f"{outside} ? 0 : x << y"), 2),
        Function(
            "bitwise_right_shift",
            {"int": f"x >> ({outside} ? {_BITS} - 1 : y)", "uint": f"{outside} ? 0 : x >> y"},
            2,
        ),
    ]


# Powers by known exponents. These functions take a hundredth of the time of most powers.
POWERS = {-2: "inverse_square", -1: "reciprocal", -0.5: "inverse_root", 0.5: "root"}
POWERS |= {1.5: "root_of_cube", 2: "square", 3: "cube", 4: "fourth", 5: "fifth"}
NOT_PUBLIC = {"complex_abs", *POWERS.values()} - {"reciprocal", "square"}
FUNCTIONS = {x.name: x for x in (*_plain(), *_unary(), *_of_parts(), *_arithmetic(), *_compared())}
BY_NUMBER = {x.name: x for x in _dividing(1)}  # used instead if the second argument is a number

REDUCED = {  # reduce, identity, map
    "sum": ("a + b", "0", None),
    "prod": ("a * b", "1", None),
    "max": ("max(a, b)", None, None),
    "min": ("min(a, b)", None, None),
    "any": ("a || b", "0", "x != 0"),
    "all": ("a && b", "1", "x != 0"),
    "count_nonzero": ("a + b", "0", "x != 0"),
}

# NumPy's and PyTorch's names of the standard's functions.
_ALIASES = """
    absolute:abs arccos:acos arccosh:acosh arcsin:asin arcsinh:asinh arctan:atan arctan2:atan2
    arctanh:atanh conjugate:conj invert:bitwise_invert left_shift:bitwise_left_shift
    right_shift:bitwise_right_shift power:pow true_divide:divide rint:round amax:max amin:min
    bitwise_not:bitwise_invert add:add sub:subtract mul:multiply div:divide neg:negative eq:equal
    ne:not_equal lt:less le:less_equal gt:greater ge:greater_equal clamp:clip
"""
ALIASES = dict(pair.split(":") for pair in _ALIASES.split())


def named(name: str) -> str:
    """Return the standard's name of a function."""
    return ALIASES.get(name, name)


def known_power(dtype: Any, exponent: Any) -> str | None:
    """Return the function that replaces a power by a number; None if only `pow` computes it."""
    return _known_power(dtype, exponent) if type(exponent) in (int, float) else None


@lru_cache(256, typed=True)
def _known_power(dtype: Any, exponent: Any) -> str | None:
    kind = kind_of(dtype)
    if kind in ("int", "uint") and type(exponent) is int and exponent < 0:
        raise ValueError(f"pow: got {exponent}, expected a power >= 0 of {dtype}")
    name = POWERS.get(exponent)
    is_exact = kind in ("float", "complex") or type(exponent) is int
    return name if name and is_exact and kind in FUNCTIONS[name].expressions else None


def kept_in(name: str, result: str) -> str | None:
    """Return the dtype in which elements are combined; None for the default.

    Intermediate products may exceed the range of float32 when the result does not, unlike sums.
    """
    is_short = DTYPES[result].kind == "float" and result != "float64"
    return "float64" if name == "prod" and is_short else None

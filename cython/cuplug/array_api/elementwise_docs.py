# SPDX-License-Identifier: Apache-2.0
"""The docstrings of element-wise functions, each with an example."""

import re

# The name and summary of a function; the first argument of its example, the others, the result.
_TEXT = r"""
abs: Return the absolute value of each element; of a complex number, its magnitude.
    [-1.5, 2.0] -> [1.5 2. ]
acos: Return the inverse cosine of each element, in radians.
    [1.0, 0.0] -> [0.         1.57079633]
acosh: Return the inverse hyperbolic cosine of each element.
    [1.0, 2.0] -> [0.        1.3169579]
add: Return the sums of elements.
    [1, 2], 10 -> [11 12]
asin: Return the inverse sine of each element, in radians.
    [0.0, 1.0] -> [0.         1.57079633]
asinh: Return the inverse hyperbolic sine of each element.
    [0.0, 1.0] -> [0.         0.88137359]
atan: Return the inverse tangent of each element, in radians.
    [0.0, 1.0] -> [0.         0.78539816]
atan2: Return the angles of points (x2, x1) in the plane, in radians.
    [1.0, -1.0], 0.0 -> [ 1.57079633 -1.57079633]
atanh: Return the inverse hyperbolic tangent of each element.
    [0.0, 0.5] -> [0.         0.54930614]
bitwise_and: Return the bits that are set in both elements.
    [6, 5], 3 -> [2 1]
bitwise_invert: Return each element with all bits inverted.
    [0, 5] -> [-1 -6]
bitwise_left_shift: Return the bits of elements of x1, moved up by x2 positions.
    [1, 3], 2 -> [ 4 12]
bitwise_or: Return the bits that are set in any of two elements.
    [6, 5], 3 -> [7 7]
bitwise_right_shift: Return the bits of elements of x1, moved down by x2 positions.
    [4, 12], 2 -> [1 3]
bitwise_xor: Return the bits that are set in exactly one of two elements.
    [6, 5], 3 -> [5 6]
ceil: Return the smallest integer that is not below each element.
    [1.2, -1.2] -> [ 2. -1.]
conj: Return the complex conjugate of each element.
    [1 + 2j] -> [1.-2.j]
copysign: Return the magnitudes of elements of x1, with the signs of x2.
    [1.5, -2.5], -1.0 -> [-1.5 -2.5]
cos: Return the cosine of each element, in radians.
    [0.0, 1.0] -> [1.         0.54030231]
cosh: Return the hyperbolic cosine of each element.
    [0.0, 1.0] -> [1.         1.54308063]
divide: Return the quotients of elements, as floats.
    [1, 3], 2 -> [0.5 1.5]
equal: Return whether elements are equal.
    [1, 2], 2 -> [False  True]
exp: Return e to the power of each element.
    [0.0, 1.0] -> [1.         2.71828183]
expm1: Return `exp(x) - 1`, precise for small elements.
    [0.0, 1e-10] -> [0.e+00 1.e-10]
floor: Return the largest integer that is not above each element.
    [1.2, -1.2] -> [ 1. -2.]
floor_divide: Return the quotients of elements, rounded down.
    [7, -7], 2 -> [ 3 -4]
greater: Return whether elements of x1 are above x2.
    [1, 2, 3], 2 -> [False False  True]
greater_equal: Return whether elements of x1 are greater than or equal to x2.
    [1, 2, 3], 2 -> [False  True  True]
hypot: Return the lengths of vectors (x1, x2), without overflow.
    [3.0, 5.0], 4.0 -> [5.         6.40312424]
imag: Return the imaginary part of each element, as a view.
    [1 + 2j] -> [2.]
isfinite: Return whether each element is neither infinite nor NaN.
    [1.0, xp.inf, xp.nan] -> [ True False False]
isinf: Return whether each element is infinite.
    [1.0, xp.inf, xp.nan] -> [False  True False]
isnan: Return whether each element is NaN.
    [1.0, xp.inf, xp.nan] -> [False False  True]
less: Return whether elements of x1 are below x2.
    [1, 2, 3], 2 -> [ True False False]
less_equal: Return whether elements of x1 are at most x2.
    [1, 2, 3], 2 -> [ True  True False]
log: Return the natural logarithm of each element.
    [1.0, 10.0] -> [0.         2.30258509]
log10: Return the logarithm of each element to the base 10.
    [1.0, 1000.0] -> [0. 3.]
log1p: Return `log(1 + x)`, precise for small elements.
    [0.0, 1e-10] -> [0.e+00 1.e-10]
log2: Return the logarithm of each element to the base 2.
    [1.0, 8.0] -> [0. 3.]
logaddexp: Return `log(exp(x1) + exp(x2))`, without overflow.
    [0.0, 1.0], 0.0 -> [0.69314718 1.31326169]
logical_and: Return whether both elements are not 0.
    [True, False], True -> [ True False]
logical_not: Return whether each element is 0.
    [True, False] -> [False  True]
logical_or: Return whether any of two elements is not 0.
    [True, False], False -> [ True False]
logical_xor: Return whether exactly one of two elements is not 0.
    [True, False], True -> [False  True]
maximum: Return the larger of two elements; NaN if one is NaN.
    [1, 5], 3 -> [3 5]
minimum: Return the smaller of two elements; NaN if one is NaN.
    [1, 5], 3 -> [1 3]
multiply: Return the products of elements.
    [1, 2], 10 -> [10 20]
negative: Return the negative of each element.
    [1, -2] -> [-1  2]
nextafter: Return the next float after each element of x1 in the direction of x2.
    [0.0], 1.0 -> [5.e-324]
not_equal: Return whether elements differ.
    [1, 2], 2 -> [ True False]
positive: Return a copy of each element.
    [1, -2] -> [ 1 -2]
pow: Return the elements of x1 to the powers x2.
    [2, 3], 3 -> [ 8 27]
real: Return the real part of each element; of complex numbers, as a view.
    [1 + 2j] -> [1.]
reciprocal: Return 1 divided by each element.
    [2.0, 4.0] -> [0.5  0.25]
remainder: Return the remainders of `floor_divide`, which have the sign of x2.
    [7, -7], 3 -> [1 2]
round: Return each element rounded to an integer, to the even one of two equally close.
    [0.5, 1.5, 2.6] -> [0. 2. 3.]
sign: Return -1, 0 or 1 by the sign of each element.
    [-5, 0, 3] -> [-1  0  1]
signbit: Return whether the sign bit of each element is set, also for -0.0.
    [-0.0, 1.0] -> [ True False]
sin: Return the sine of each element, in radians.
    [0.0, 1.0] -> [0.         0.84147098]
sinh: Return the hyperbolic sine of each element.
    [0.0, 1.0] -> [0.         1.17520119]
sqrt: Return the square root of each element.
    [4.0, 2.0] -> [2.         1.41421356]
square: Return the square of each element.
    [2, -3] -> [4 9]
subtract: Return the differences of elements.
    [5, 2], 1 -> [4 1]
tan: Return the tangent of each element, in radians.
    [0.0, 1.0] -> [0.         1.55740772]
tanh: Return the hyperbolic tangent of each element.
    [0.0, 1.0] -> [0.         0.76159416]
trunc: Return each element without its fraction.
    [1.7, -1.7] -> [ 1. -1.]
"""
_ENTRY = re.compile(r"^(\w+): (.*)\n +(\[.*?\])(.*) -> (.*)$", re.M)


def docstrings() -> dict[str, str]:
    """Return the docstrings by function name."""
    return {
        name: f"{summary}\n\nExamples\n--------\n"
        f">>> print(xp.{name}(xp.asarray({x}){more}))\n{result}\n"
        for name, summary, x, more, result in _ENTRY.findall(_TEXT)
    }

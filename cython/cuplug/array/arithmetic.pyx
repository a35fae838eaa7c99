# SPDX-License-Identifier: Apache-2.0
"""Python's operators and conversions, of arrays: all is computed elsewhere."""

from importlib import import_module

from cuplug.array.buffer cimport Buffer

cdef object computing = None


cdef object functions():
    """The module that computes with arrays, imported when something is computed."""
    global computing
    if computing is None:
        computing = import_module("cuplug.array_api.methods")
    return computing


cdef class Arithmetic(Buffer):
    """Memory that is calculated with."""

    def __bool__(self):
        return bool(self.only("bool"))

    def __int__(self):
        return int(self.only("int"))

    def __float__(self):
        return float(self.only("float"))

    def __complex__(self):
        return complex(self.only("complex"))

    def __index__(self):
        if self.dtype.kind not in "iu":
            raise TypeError(f"cuplug.Array: seen {self.dtype}, wanted an integer for an index")
        return int(self.only("int"))

    def __contains__(self, value):
        found = self == value
        return bool(functions().standard.any(found) if isinstance(found, Arithmetic) else found)

    def __format__(self, text):
        return format(self.numpy()[()] if text and not self.shape else str(self), text)

    cdef object only(self, str kind):
        if self.shape:
            raise TypeError(f"cuplug.Array: {kind}: seen shape {self.shape}, wanted ()")
        if self.dtype.kind == "c" and kind in ("int", "float"):
            raise TypeError(f"cuplug.Array: {kind}: seen {self.dtype}, wanted real numbers")
        return self.numpy()[()]

    def __eq__(self, other):
        return functions().operator("equal", self, other)

    def __ne__(self, other):
        return functions().operator("not_equal", self, other)

    def __lt__(self, other):
        return functions().operator("less", self, other)

    def __le__(self, other):
        return functions().operator("less_equal", self, other)

    def __gt__(self, other):
        return functions().operator("greater", self, other)

    def __ge__(self, other):
        return functions().operator("greater_equal", self, other)

    __hash__ = None

    def __neg__(self):
        return functions().unary("negative", self)

    def __pos__(self):
        return functions().unary("positive", self)

    def __abs__(self):
        return functions().abs(self)

    def __invert__(self):
        return functions().unary("bitwise_invert", self)

    def __add__(self, other):
        return functions().operator("add", self, other)

    def __radd__(self, other):
        return functions().operator("add", self, other, True)

    def __iadd__(self, other):
        return functions().in_place("add", self, other)

    def __sub__(self, other):
        return functions().operator("subtract", self, other)

    def __rsub__(self, other):
        return functions().operator("subtract", self, other, True)

    def __isub__(self, other):
        return functions().in_place("subtract", self, other)

    def __mul__(self, other):
        return functions().operator("multiply", self, other)

    def __rmul__(self, other):
        return functions().operator("multiply", self, other, True)

    def __imul__(self, other):
        return functions().in_place("multiply", self, other)

    def __truediv__(self, other):
        return functions().operator("divide", self, other)

    def __rtruediv__(self, other):
        return functions().operator("divide", self, other, True)

    def __itruediv__(self, other):
        return functions().in_place("divide", self, other)

    def __floordiv__(self, other):
        return functions().operator("floor_divide", self, other)

    def __rfloordiv__(self, other):
        return functions().operator("floor_divide", self, other, True)

    def __ifloordiv__(self, other):
        return functions().in_place("floor_divide", self, other)

    def __mod__(self, other):
        return functions().operator("remainder", self, other)

    def __rmod__(self, other):
        return functions().operator("remainder", self, other, True)

    def __imod__(self, other):
        return functions().in_place("remainder", self, other)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __pow__(self, other, modulo):
        return NotImplemented if modulo is not None else functions().operator("pow", self, other)

    def __rpow__(self, other, modulo):
        if modulo is not None:
            return NotImplemented
        return functions().operator("pow", self, other, True)

    def __ipow__(self, other, modulo):
        return functions().in_place("pow", self, other)

    def __and__(self, other):
        return functions().operator("bitwise_and", self, other)

    def __rand__(self, other):
        return functions().operator("bitwise_and", self, other, True)

    def __iand__(self, other):
        return functions().in_place("bitwise_and", self, other)

    def __or__(self, other):
        return functions().operator("bitwise_or", self, other)

    def __ror__(self, other):
        return functions().operator("bitwise_or", self, other, True)

    def __ior__(self, other):
        return functions().in_place("bitwise_or", self, other)

    def __xor__(self, other):
        return functions().operator("bitwise_xor", self, other)

    def __rxor__(self, other):
        return functions().operator("bitwise_xor", self, other, True)

    def __ixor__(self, other):
        return functions().in_place("bitwise_xor", self, other)

    def __lshift__(self, other):
        return functions().operator("bitwise_left_shift", self, other)

    def __rlshift__(self, other):
        return functions().operator("bitwise_left_shift", self, other, True)

    def __ilshift__(self, other):
        return functions().in_place("bitwise_left_shift", self, other)

    def __rshift__(self, other):
        return functions().operator("bitwise_right_shift", self, other)

    def __rrshift__(self, other):
        return functions().operator("bitwise_right_shift", self, other, True)

    def __irshift__(self, other):
        return functions().in_place("bitwise_right_shift", self, other)

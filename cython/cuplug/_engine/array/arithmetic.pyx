# SPDX-License-Identifier: Apache-2.0
"""Python's operators and conversions for arrays; other modules compute them."""

from cpython.bool cimport bool as bool_type
from cpython.long cimport PyLong_AsLongLongAndOverflow
from libc.math cimport isfinite
from libc.stdint cimport int64_t
from libc.string cimport memcpy

from cuplug._engine.array.buffer cimport Buffer, check_writable, is_on_gpu
from cuplug._engine.array.layout cimport may_overlap, same_shape
from cuplug._engine.base.dlpack cimport DLPACK_BOOL, DLPACK_FLOAT, DLPACK_INT
from cuplug._engine.base.core cimport cuplug_tensor

from cuplug._engine import provider

cdef object computing = None


cdef object functions():
    """Return the module that computes with arrays, imported at the first use."""
    global computing
    if computing is None:
        computing = provider("array methods")
    return computing


cdef dict called_functions = {}
cdef dict changing_functions = {}
cdef dict stock_operators = {}


cdef object called(str name):
    found = called_functions.get(name)
    if found is None:
        found = called_functions[name] = functions().CALLED[name]
    return found


cdef object changing(str name):
    found = changing_functions.get(name)
    if found is None:
        found = changing_functions[name] = functions().IN_PLACE[name]
    return found


cdef object stock(str name):
    found = stock_operators.get(name)
    if found is None:
        found = stock_operators[name] = functions().stock(name)
    return found


cdef inline bint is_number(object x) noexcept:
    cls = type(x)
    return cls is float or cls is int or cls is bool_type or cls is complex


cdef object computed(str name, Buffer x, object other, bint is_reflected):
    if type(other) is not type(x) and not is_number(other):
        return functions().apply_operator(name, x, other, is_reflected)
    return called(name)(other, x) if is_reflected else called(name)(x, other)


cdef object number_on_host(const cuplug_tensor *x):
    """Return the only element for common dtypes; None for others, which NumPy reads."""
    cdef double double_value = 0
    cdef float float_value = 0
    cdef int64_t value = 0
    if is_on_gpu(x) or x.dtype.lanes != 1:
        return None
    if x.dtype.code == DLPACK_FLOAT and x.dtype.bits == 64:
        memcpy(&double_value, x.data, sizeof(double_value))
        return double_value
    if x.dtype.code == DLPACK_FLOAT and x.dtype.bits == 32:
        memcpy(&float_value, x.data, sizeof(float_value))
        return float_value
    if x.dtype.code == DLPACK_INT and x.dtype.bits == 64:
        memcpy(&value, x.data, sizeof(value))
        return value
    if x.dtype.code == DLPACK_BOOL:
        return (<const char *>x.data)[0] != 0
    return None


cdef object as_float(object value):
    try:
        return float(value)
    except OverflowError:
        return value  # which is rejected


cdef bint wrote_number(const cuplug_tensor *x, object value) except -1:
    cdef double double_value
    cdef float float_value
    cdef int64_t int_value
    cdef int overflow = 0
    if x.ndim or is_on_gpu(x) or x.dtype.lanes != 1:
        return False
    if x.dtype.code == DLPACK_FLOAT and type(value) is float:
        double_value = value
        float_value = <float>double_value
        if x.dtype.bits == 64:
            memcpy(x.data, &double_value, sizeof(double_value))
            return True
        if x.dtype.bits == 32 and (isfinite(float_value) or not isfinite(double_value)):
            memcpy(x.data, &float_value, sizeof(float_value))
            return True
    if x.dtype.code == DLPACK_INT and x.dtype.bits == 64 and type(value) is int:
        int_value = PyLong_AsLongLongAndOverflow(value, &overflow)
        if not overflow:
            memcpy(x.data, &int_value, sizeof(int_value))
            return True
    return False


cdef object changed(str name, Buffer x, object other):
    cdef bint is_direct = is_number(other)
    check_writable(x, name)
    if type(other) is type(x):
        is_direct = same_shape(&x.tensor, &(<Buffer>other).tensor) and is_apart(x, other)
    if not is_direct:
        return functions().in_place(name, x, other)
    changing(name)(x, other)
    return x


cdef bint is_apart(Buffer x, Buffer y) noexcept:
    is_near = x.tensor.device.type == y.tensor.device.type and (
        x.tensor.device.id == y.tensor.device.id
    )
    return is_near and not may_overlap(&x.tensor, &y.tensor)


IN_CONDITIONS = ": write x.any() or x.all(), and `&`, `|`, `~` in place of `and`, `or`, `not`"


cdef class Arithmetic(Buffer):
    """Memory with arithmetic."""

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
            raise TypeError(f"cuplug.Array: got {self.dtype}, expected an integer for an index")
        return int(self.only("int"))

    def __contains__(self, value):
        found = self == value
        return bool(functions().standard.any(found) if isinstance(found, Arithmetic) else found)

    def __array_ufunc__(self, function, method, *inputs, **keywords):
        return functions().call_ufunc(function, method, inputs, keywords)

    def __array_function__(self, function, types, args, keywords):
        return functions().call_numpy(self, function, types, args, keywords)

    def __round__(self, digits: int | None = None):
        return round(self.only("round").item(), digits)

    def __format__(self, text: str) -> str:
        return format(self.only("format"), text) if text else str(self)

    cdef object only(self, str kind):
        if self.tensor.ndim and (kind != "bool" or self.size != 1):
            more = IN_CONDITIONS if kind == "bool" else ""
            raise TypeError(f"cuplug.Array: {kind}: got shape {self.shape}, expected (){more}")
        value = number_on_host(&self.tensor) if kind in ("bool", "int", "float") else None
        if value is not None:
            return value
        if self.dtype.kind == "c" and kind in ("int", "float"):
            raise TypeError(f"cuplug.Array: {kind}: got {self.dtype}, expected real numbers")
        return self.numpy()[()]

    def __eq__(self, other) -> Array:
        return computed("equal", self, other, False)

    def __ne__(self, other) -> Array:
        return computed("not_equal", self, other, False)

    def __lt__(self, other) -> Array:
        return computed("less", self, other, False)

    def __le__(self, other) -> Array:
        return computed("less_equal", self, other, False)

    def __gt__(self, other) -> Array:
        return computed("greater", self, other, False)

    def __ge__(self, other) -> Array:
        return computed("greater_equal", self, other, False)

    def __hash__(self):
        """Return the value's hash, as an array without dimensions equals its value.

        Pandas treats elements of lists without a hash as unequal to all others.
        """
        if self.tensor.ndim:
            raise TypeError(f"cuplug.Array: hash: got shape {self.shape}, expected ()")
        return hash(self.item())

    def __neg__(self) -> Array:
        return called("negative")(self)

    def __pos__(self) -> Array:
        return called("positive")(self)

    def __abs__(self) -> Array:
        return called("abs")(self)

    def __invert__(self) -> Array:
        return called("bitwise_invert")(self)

    def __add__(self, other) -> Array:
        return computed("add", self, other, False)

    def __radd__(self, other) -> Array:
        return computed("add", self, other, True)

    def __iadd__(self, other) -> Array:
        return changed("add", self, other)

    def __sub__(self, other) -> Array:
        return computed("subtract", self, other, False)

    def __rsub__(self, other) -> Array:
        return computed("subtract", self, other, True)

    def __isub__(self, other) -> Array:
        return changed("subtract", self, other)

    def __mul__(self, other) -> Array:
        return computed("multiply", self, other, False)

    def __rmul__(self, other) -> Array:
        return computed("multiply", self, other, True)

    def __imul__(self, other) -> Array:
        return changed("multiply", self, other)

    def __matmul__(self, other):
        return functions().matmul(self, other)

    def __rmatmul__(self, other):
        return functions().matmul(other, self)

    def __imatmul__(self, other):
        return functions().matmul_in_place(self, other)

    def __truediv__(self, other) -> Array:
        return computed("divide", self, other, False)

    def __rtruediv__(self, other) -> Array:
        return computed("divide", self, other, True)

    def __itruediv__(self, other) -> Array:
        return changed("divide", self, other)

    def __floordiv__(self, other) -> Array:
        return computed("floor_divide", self, other, False)

    def __rfloordiv__(self, other) -> Array:
        return computed("floor_divide", self, other, True)

    def __ifloordiv__(self, other) -> Array:
        return changed("floor_divide", self, other)

    def __mod__(self, other) -> Array:
        return computed("remainder", self, other, False)

    def __rmod__(self, other) -> Array:
        return computed("remainder", self, other, True)

    def __imod__(self, other) -> Array:
        return changed("remainder", self, other)

    def __divmod__(self, other) -> tuple[Array, Array]:
        return self // other, self % other

    def __rdivmod__(self, other) -> tuple[Array, Array]:
        return other // self, other % self

    def __pow__(self, other, modulo) -> Array:
        return NotImplemented if modulo is not None else computed("pow", self, other, False)

    def __rpow__(self, other, modulo) -> Array:
        return NotImplemented if modulo is not None else computed("pow", self, other, True)

    def __ipow__(self, other, modulo) -> Array:
        return changed("pow", self, other)

    def __and__(self, other) -> Array:
        return computed("bitwise_and", self, other, False)

    def __rand__(self, other) -> Array:
        return computed("bitwise_and", self, other, True)

    def __iand__(self, other) -> Array:
        return changed("bitwise_and", self, other)

    def __or__(self, other) -> Array:
        return computed("bitwise_or", self, other, False)

    def __ror__(self, other) -> Array:
        return computed("bitwise_or", self, other, True)

    def __ior__(self, other) -> Array:
        return changed("bitwise_or", self, other)

    def __xor__(self, other) -> Array:
        return computed("bitwise_xor", self, other, False)

    def __rxor__(self, other) -> Array:
        return computed("bitwise_xor", self, other, True)

    def __ixor__(self, other) -> Array:
        return changed("bitwise_xor", self, other)

    def __lshift__(self, other) -> Array:
        return computed("bitwise_left_shift", self, other, False)

    def __rlshift__(self, other) -> Array:
        return computed("bitwise_left_shift", self, other, True)

    def __ilshift__(self, other) -> Array:
        return changed("bitwise_left_shift", self, other)

    def __rshift__(self, other) -> Array:
        return computed("bitwise_right_shift", self, other, False)

    def __rrshift__(self, other) -> Array:
        return computed("bitwise_right_shift", self, other, True)

    def __irshift__(self, other) -> Array:
        return changed("bitwise_right_shift", self, other)

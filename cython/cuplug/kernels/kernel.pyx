# SPDX-License-Identifier: Apache-2.0
"""Kernels that were compiled at run time, as Python callables."""

cimport cython

from cuplug.kernels.function cimport Function

from operator import getitem, methodcaller

from cuplug.base.public import public
from cuplug.compilers import kernel_types
from cuplug.kernels.launch import Launch

cdef enum:
    N_KEPT = 256  # launches of a kernel that are kept


@cython.final
cdef class Kernel(Function):
    """A compiled kernel: `kernel[grid, block](...)` launches it, as `<<<grid, block>>>` does.

    `kernel[grid, block, shared, stream]` adds bytes of dynamic shared memory and a stream. What
    the brackets return may be kept and called many times: its grid has been checked.

    Arguments are arrays on a GPU, `cuplug.In`, `Out` and `InOut` around NumPy arrays, numbers,
    NumPy scalars and arrays as structs; addresses as ints, or None, for pointers.

    Attributes
    ----------
    name : str
        The name expression by which it was compiled.
    symbol : str
        Its name in the machine code.
    types : tuple of int or None
        The numbers of kernel_types.py; None where the compiler was not asked.
    """

    def __cinit__(self, *arguments):
        self.launches = {}

    def prepare(self, signature):
        """Return the kernel with declared types, `kernel.prepare("float *, int64")`.

        Only kernels that the compiler was not asked about need it. Sizes are compared with the
        compiled kernel's at the first launch.

        Parameters
        ----------
        signature : str
            C types, those of <stdint.h> or dtypes, separated by commas.
        """
        if not isinstance(signature, str):
            seen = type(signature).__name__
            raise TypeError(f"{self.name}: prepare: seen {seen}, wanted a str")
        types = kernel_types.parse_signature(signature)
        if self.types is not None and types != self.types:
            raise ValueError(
                f"{self.name}: prepare: seen {signature!r}, wanted the compiled types: "
                f"{', '.join([kernel_types.describe(code) for code in self.types])}"
            )
        cdef Kernel declared = Kernel(self.image, self.name, self.symbol, types, self.device)
        declared.is_declared = self.types is None
        declared.module, declared.declaration = self.module, signature
        return declared

    def __reduce__(self):
        if self.module is None:
            raise TypeError(f"{self.name}: it is of no module, as which it could be pickled")
        if self.declaration is None:
            return getitem, (self.module, self.name)
        return methodcaller("prepare", self.declaration), (self.module[self.name],)

    def __call__(self, *arguments, **keywords):
        """Refuse a call without a grid."""
        raise TypeError(
            f"{self.name}: seen a call without a grid, wanted {self.name}[grid, block](...)"
        )

    def __getitem__(self, configuration):
        if type(configuration) is not tuple or not 2 <= len(configuration) <= 4:
            raise TypeError(
                f"{self.name}: seen {configuration!r} in brackets, wanted kernel[grid, block] or "
                "kernel[grid, block, shared bytes, stream]"
            )
        if len(configuration) == 4:
            return Launch(self, configuration)
        try:
            launch = self.launches.get(configuration)
        except TypeError:  # lists have no hash
            return Launch(self, configuration)
        if launch is None:
            launch = Launch(self, configuration)
            if len(self.launches) >= N_KEPT:
                self.launches.clear()
            self.launches[configuration] = launch
        return launch


public(Kernel)

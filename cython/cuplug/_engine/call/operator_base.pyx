# SPDX-License-Identifier: Apache-2.0
"""The description of an operator."""

import os
from types import ModuleType

from libc.stdint cimport int32_t, uint32_t

from cuplug._engine.base.core cimport (
    CUPLUG_CPU,
    CUPLUG_CUDA,
    cuplug_operator,
    cuplug_operator_architectures,
    cuplug_operator_is_loaded,
    cuplug_operator_n_overloads,
    cuplug_operator_name,
    cuplug_operator_path,
    cuplug_operator_plugin,
    cuplug_operator_overload,
    cuplug_operator_version,
    cuplug_overload_doc,
    cuplug_overload_entry,
    cuplug_overload_signature,
)
from cuplug._engine.base.core_call cimport cuplug_operator_signature, cuplug_signature
from cuplug._engine.base.strings cimport to_architectures, to_str
from cuplug._engine.discovery.fields cimport properties_of

from cuplug._engine.discovery.fields import parameter_docs

token = object()  # without which no operator is created


cdef class Described:
    """The parts of an operator other than calls."""

    def __cinit__(self, *arguments, **keywords):
        if len(arguments) != 1 or arguments[0] is not token:
            raise TypeError("cuplug.Operator: get one with cuplug.find or from cuplug.ops")

    @property
    def name(self) -> str:
        """The operator's name.

        Examples
        --------
        >>> cuplug.ops.relu.name
        'relu'
        """
        return cuplug_operator_name(self.op).decode()

    @property
    def plugin(self) -> str:
        """The name of its plugin.

        Examples
        --------
        >>> cuplug.ops.gather_backward.plugin
        'gather'
        """
        return cuplug_operator_plugin(self.op).decode()

    @property
    def version(self) -> str:
        """The version of its plugin.

        Examples
        --------
        >>> cuplug.ops.relu.version
        '1.0.0'
        """
        return cuplug_operator_version(self.op).decode()

    @property
    def path(self) -> str:
        """The file of its plugin.

        Examples
        --------
        >>> cuplug.ops.relu.path
        '...librelu.so'
        """
        return os.fsdecode(cuplug_operator_path(self.op))

    @property
    def architectures(self) -> tuple[int | str, ...]:
        """What its CUDA code was compiled for: 900 for compute capability 9.0, "900a" for 9.0a.

        Examples
        --------
        >>> isinstance(cuplug.ops.relu.architectures, tuple)
        True
        """
        return to_architectures(cuplug_operator_architectures(self.op))

    @property
    def loaded(self) -> bool:
        """True when the plugin's code is in the process.

        Examples
        --------
        >>> cuplug.ops.relu.load()
        >>> cuplug.ops.relu.loaded
        True
        """
        return cuplug_operator_is_loaded(self.op) != 0

    @property
    def signatures(self) -> tuple[str, ...]:
        """The signature of each overload.

        Examples
        --------
        >>> len(cuplug.ops.gather.signatures)
        3
        """
        rows = range(cuplug_operator_n_overloads(self.op))
        return tuple(
            [to_str(cuplug_overload_signature(cuplug_operator_overload(self.op, k))) for k in rows]
        )

    @property
    def device_types(self) -> tuple[str, ...]:
        """The devices with an entry: a tuple of "cpu" and "cuda".

        Examples
        --------
        >>> "cpu" in cuplug.ops.relu.device_types
        True
        """
        return ("cpu",) * has_entry(self.op, CUPLUG_CPU) + ("cuda",) * has_entry(
            self.op, CUPLUG_CUDA
        )

    @property
    def doc(self) -> str:
        """The plugin's documentation, one line for each different one among the overloads.

        Examples
        --------
        >>> cuplug.ops.gather.doc.splitlines()[0]
        "Rows of source at the given indices: NumPy's take along axis 0."
        """
        rows = range(cuplug_operator_n_overloads(self.op))
        lines = [to_str(cuplug_overload_doc(cuplug_operator_overload(self.op, k))) for k in rows]
        return "\n".join(dict.fromkeys([line for line in lines if line]))

    @property
    def properties(self) -> tuple[dict[str, str | None], ...]:
        """The other properties of each overload in the plugin: {"gradient": "relu_backward"}.

        None for a property without a value, such as "deterministic". docs/abi.md lists the
        properties.

        Examples
        --------
        >>> cuplug.ops.gather.properties[0]["gradient"]
        'gather_backward'
        """
        rows = range(cuplug_operator_n_overloads(self.op))
        return tuple([properties_of(cuplug_operator_overload(self.op, k)) for k in rows])

    @property
    def returns(self) -> dict[str, int]:
        """The numbers of the optional outputs, by the keywords that request them: return_<name>.

        Examples
        --------
        >>> signature = "f(x: T[n]) -> (y: T[n], mean: T[] = None) where T: float32"
        >>> f = cuplug.operator(signature, arguments="x, y, mean, n", host="...")
        >>> f.returns
        {'return_mean': 1}
        """
        cdef const cuplug_signature *s
        cdef int k
        found = {}
        for row in range(cuplug_operator_n_overloads(self.op)):
            s = cuplug_operator_signature(self.op, row)
            for k in range(s.n_outputs):
                if s.optional_outputs >> <uint32_t>k & 1:
                    name = s.parameters[s.n_parameters + k].name.decode()
                    found.setdefault(f"return_{name}", k)
        return found

    @property
    def origin(self) -> str:
        """Its plugin, the version, the file and the device types, as one line.

        Examples
        --------
        >>> cuplug.ops.relu.origin
        'Plugin relu 1.0.0, ...librelu.so (cpu...)'
        """
        plugin = f"{self.plugin} {self.version}".rstrip()
        return f"Plugin {plugin}, {self.path} ({', '.join(self.device_types)})"

    @property
    def __wrapped__(self) -> ModuleType:
        """A module with the operator's file.

        IPython shows the file of `__wrapped__`, and without it the file that declares the class.
        """
        module = ModuleType(self.name)
        if os.path.isabs(self.path):
            module.__file__ = self.path
        return module

    def _repr_html_(self) -> str:
        """Return the origin and each signature, for notebooks."""
        from html import escape

        signatures = "".join([f"<li><code>{escape(text)}</code></li>" for text in self.signatures])
        doc = "<br>".join(map(escape, self.doc.splitlines()))
        told = parameter_docs(self.properties).items()
        names = "".join([f"<dt>{x}</dt><dd>{escape(text)}</dd>" for x, text in told])
        names = f"<dl>{names}</dl>" if names else ""
        origin = f"<small>{escape(self.origin)}</small>"
        return f"<b>{self.name}</b>: {doc}<ul>{signatures}</ul>{names}{origin}"


cdef bint has_entry(const cuplug_operator *op, int32_t device_type) noexcept:
    cdef uint32_t k
    for k in range(cuplug_operator_n_overloads(op)):
        if cuplug_overload_entry(cuplug_operator_overload(op, k), device_type) != NULL:
            return True
    return False

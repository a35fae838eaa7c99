# SPDX-License-Identifier: Apache-2.0
"""Objects of plugins, owned by callers."""

import sys

cimport cython

from cuplug._engine.base.core cimport (
    CUPLUG_CUDA,
    cuplug_close_handle,
    cuplug_device,
    cuplug_error,
    cuplug_free_handle,
    cuplug_handle,
    cuplug_handle_device,
    cuplug_handle_is_closed,
    cuplug_handle_operator,
    cuplug_handle_tag,
    cuplug_operator_name,
    cuplug_operator_plugin,
)
from cuplug._engine.base.core_call cimport cuplug_frame
from cuplug._engine.base.status cimport raise_error

from cuplug._engine.base.public import public

cdef object token = object()  # required to create an object


@cython.final
cdef class Handle:
    """Handle()\n--\n
    An object of a plugin, created by an operator whose result is a `handle[tag]`.

    It is an argument of operators of the same plugin, in calls on the device where it was created.
    It is closed by `close`, at the end of a `with` block, or when nothing refers to it any more. A
    handle that is open when the process ends is not closed.

    Attributes
    ----------
    tag : str
        The kind of the object: "plan" for a `handle[plan]`.
    plugin : str
        The name of the plugin.
    device : str
        The device where it was created: "cpu" or "cuda:0".
    closed : bool
        True after `close`.

    Examples
    --------
    With a plugin that has these operators, `counter() -> handle[counter]` among them:

    >>> with cuplug.ops.counter(first=5, device="cpu") as c:
    ...     int(cuplug.ops.step(c))
    6
    """

    def __cinit__(self, *arguments):
        if arguments != (token,):
            raise TypeError("cuplug.Handle: an operator whose result is a handle makes one")

    @property
    def tag(self) -> str:
        """The kind of the object.

        Examples
        --------
        >>> with cuplug.ops.counter() as c:
        ...     c.tag
        'counter'
        """
        return cuplug_handle_tag(self.handle).decode()

    @property
    def plugin(self) -> str:
        """The name of the plugin.

        Examples
        --------
        >>> with cuplug.ops.counter() as c:
        ...     c.plugin
        'handles'
        """
        return cuplug_operator_plugin(cuplug_handle_operator(self.handle)).decode()

    @property
    def device(self) -> str:
        """The device where it was created.

        Examples
        --------
        >>> with cuplug.ops.counter(device="cpu") as c:
        ...     c.device
        'cpu'
        """
        cdef cuplug_device device = cuplug_handle_device(self.handle)
        return f"cuda:{device.id}" if device.type == CUPLUG_CUDA else "cpu"

    @property
    def closed(self) -> bool:
        """True after `close`.

        Examples
        --------
        >>> with cuplug.ops.counter() as c:
        ...     c.closed
        False
        >>> c.closed
        True
        """
        return cuplug_handle_is_closed(self.handle) != 0

    def close(self):
        """Close it. Later calls do nothing.

        If calls on other threads use it, the last of them closes it when it ends.

        Raises
        ------
        Error
            If the plugin reports an error. The handle is closed nevertheless.

        Examples
        --------
        >>> c = cuplug.ops.counter()
        >>> c.close()
        >>> c.closed
        True
        """
        cdef cuplug_error error
        cdef int status
        with nogil:
            status = cuplug_close_handle(self.handle, &error)
        if status:
            raise_error(&error)

    def __enter__(self):
        if self.closed:
            name = cuplug_operator_name(cuplug_handle_operator(self.handle)).decode()
            raise ValueError(
                f"{name}: got a closed handle[{self.tag}], expected an open one; make one with "
                f"{name}"
            )
        return self

    def __exit__(self, *exception):
        self.close()

    def __reduce_ex__(self, protocol) -> NoReturn:
        raise TypeError(
            f"handle[{self.tag}]: it cannot be copied or pickled; make one with "
            f"{cuplug_operator_name(cuplug_handle_operator(self.handle)).decode()} where it is "
            "needed"
        )

    def __repr__(self):
        state = "closed" if self.closed else "open"
        return f"<handle[{self.tag}] of the plugin {self.plugin} on {self.device}, {state}>"

    def __dealloc__(self):
        cdef cuplug_error error
        cdef int status
        if self.handle == NULL or sys is None or sys.is_finalizing():
            return
        with nogil:
            status = cuplug_free_handle(self.handle, &error)
        if status:
            raise_error(&error)  # shown by sys.unraisablehook


public(Handle)


cdef Handle handle_of(cuplug_frame *frame):
    cdef Handle made = Handle.__new__(Handle, token)
    frame.made = &made.handle
    return made

# SPDX-License-Identifier: Apache-2.0
"""The exceptions of cuplug, and the exception for each status of the core."""

from __future__ import annotations

from cuplug._engine.base.public import public

__all__ = [
    "CancelledError",
    "CompileError",
    "CudaError",
    "Error",
    "NotFoundError",
    "PluginError",
    "SignatureError",
    "UnsupportedError",
]


@public
class Error(Exception):
    """The base class of cuplug's exceptions, which also derive from a standard class.

    Rejected arguments raise ValueError, TypeError, IndexError or MemoryError.

    Examples
    --------
    >>> try:
    ...     cuplug.find("no_such_operator")
    ... except cuplug.errors.Error as error:
    ...     print(type(error).__name__, isinstance(error, LookupError))
    NotFoundError True
    """

    def __init__(self, *args: object) -> None:  # with a signature, unlike Exception's
        super().__init__(*args)


@public
class CudaError(Error, RuntimeError):
    """The CUDA driver or runtime reported an error; `code` is its number.

    Examples
    --------
    >>> raise cuplug.CudaError("cuMemAlloc: out of memory", 2)
    Traceback (most recent call last):
        ...
    cuplug.CudaError: cuMemAlloc: out of memory
    """

    code: int

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[CudaError], tuple[str, int]]:
        return type(self), (str(self), self.code)


@public
class PluginError(Error, RuntimeError):
    """A plugin is broken, incompatible or rejected.

    Examples
    --------
    >>> try:
    ...     cuplug.load("/dev/null")
    ... except cuplug.PluginError:
    ...     print("rejected")
    rejected
    """


@public
class NotFoundError(Error, LookupError):
    """No plugin or operator has that name.

    Examples
    --------
    >>> try:
    ...     cuplug.find("no_such_operator")
    ... except cuplug.NotFoundError as error:
    ...     print(str(error).partition(":")[0])
    no_such_operator
    """


@public
class CompileError(Error, RuntimeError):
    """A compiler rejected a source, or is missing; `log` is its complete output.

    Examples
    --------
    >>> wrong = cuplug.elementwise("wrong(x: T) -> T", "x +")
    >>> try:
    ...     wrong(numpy.ones(3))
    ... except cuplug.CompileError as error:
    ...     print("error" in error.log)
    True
    """

    log: str

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(message)
        self.log = log

    def __reduce__(self) -> tuple[type[CompileError], tuple[str, str]]:
        return type(self), (str(self), self.log)


@public
class CancelledError(Error, RuntimeError):
    """An operator ended early, because it was cancelled.

    Examples
    --------
    >>> raise cuplug.CancelledError("solve: cancelled by Ctrl-C")
    Traceback (most recent call last):
        ...
    cuplug.CancelledError: solve: cancelled by Ctrl-C
    """


@public
class UnsupportedError(Error, NotImplementedError):
    """An operator does not support these arguments, or this device.

    Examples
    --------
    >>> issubclass(cuplug.UnsupportedError, NotImplementedError)
    True
    """


@public
class SignatureError(Error, ValueError):
    """The text of a signature is ill-formed; the message marks the position with a caret.

    Attributes
    ----------
    message : str
        The first line of the message.
    position : int
        The byte offset of the error in `text`.
    text : str
        The text of the signature.

    Examples
    --------
    >>> try:
    ...     cuplug.elementwise("twice(x: T -> T", "2 * x")
    ... except cuplug.SignatureError as error:
    ...     print(error.text[error.position :])
    -> T
    """

    def __init__(self, message: str, position: int = 0, text: str = "") -> None:
        super().__init__(message + _caret(text, position))
        self.message, self.position, self.text = message, position, text

    def __reduce__(self) -> tuple[type[SignatureError], tuple[str, int, str]]:
        return type(self), (self.message, self.position, self.text)


def _caret(text: str, position: int) -> str:
    """Return the line of a position, at most 100 characters of it, and a caret in the next one."""
    before = text.encode()[:position].decode(errors="ignore")
    start = before.rfind("\n") + 1
    column = len(before) - start
    first = max(0, column - 60)
    line = text[start:].partition("\n")[0][first : column + 40].expandtabs(1)
    return f"\n  {line}\n  {' ' * (column - first)}^" if text.strip() else ""


class OperatorAttributeError(NotFoundError, AttributeError):
    """Raised by `cuplug.ops.name` if the operator does not exist."""


class OperatorImportError(NotFoundError, ImportError):
    """Raised by `from cuplug.ops import name` if the operator does not exist."""


class OperatorMissingError(NotFoundError, PluginError):
    """A call of an operator from another process, whose plugin is missing here."""


# Status names of <cuplug/plugin.h>, without CUPLUG_, -> exceptions.
EXCEPTIONS: dict[str, type[Exception]] = {
    "ERROR_VALUE": ValueError,
    "ERROR_TYPE": TypeError,
    "ERROR_INDEX": IndexError,
    "ERROR_MEMORY": MemoryError,
    "ERROR_CUDA": CudaError,
    "ERROR_PLUGIN": PluginError,
    "ERROR_NOT_FOUND": NotFoundError,
    "ERROR_COMPILE": CompileError,
    "ERROR_CANCELLED": CancelledError,
    "ERROR_UNSUPPORTED": UnsupportedError,
}

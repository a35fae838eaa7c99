# SPDX-License-Identifier: Apache-2.0
"""Textures: arrays on a GPU for texture and surface functions of kernels."""

cimport cython
from libc.stdint cimport int32_t

from cuplug._engine.array.arithmetic cimport functions
from cuplug._engine.array.array cimport Array
from cuplug._engine.base.core cimport cuplug_error
from cuplug._engine.base.runtime cimport (
    cuplug_copy_texture,
    cuplug_free_texture,
    cuplug_make_texture,
    cuplug_texture,
    cuplug_texture_form,
)
from cuplug._engine.base.status cimport raise_error
from cuplug._engine.cuda.placement cimport parse_gpu
from cuplug._engine.cuda.streams cimport hold, work_stream

from cuplug._engine.array.make import empty
from cuplug._engine.base.public import public
from cuplug._engine.cuda.placement import Device

# The driver's numbers, CUarray_format, CUaddress_mode and CUfilter_mode.
FORMATS = {
    "uint8": 1, "uint16": 2, "uint32": 3, "int8": 8, "int16": 9, "int32": 10,
    "float16": 16, "float32": 32,
}
ADDRESSES = {"wrap": 0, "clamp": 1, "mirror": 2, "border": 3}
FILTERS = {"nearest": 0, "linear": 1}


@cython.final
cdef class Texture:
    """Texture(values, *, channels=False, filter="nearest", address="clamp", normalized=False, \
floats=False, device=None)\n--\n
    An array on a GPU in a layout for 2D and 3D locality. Kernels read it with `tex1D`, `tex2D`
    and `tex3D`, interpolated if requested, and write it with `surf2Dwrite` and similar functions.

    A kernel receives it as a `cudaTextureObject_t`, and `texture.surface` as a
    `cudaSurfaceObject_t`. It must exist until the kernel is done; freeing it waits for the kernel.

    Parameters
    ----------
    values : array_like
        An array of one to three dimensions, of the host or a GPU, which is copied: int8 to uint32,
        float16 or float32. The last dimension is x, the one before it y.
    channels : bool
        If True, there is one more dimension, of 1, 2 or 4 numbers of each texel, `float4`.
    filter : str
        "nearest", or "linear": between texels, of floats or with `floats`.
    address : str
        The values beyond the edges: "clamp", "border" (zeros), or with `normalized` "wrap" and
        "mirror".
    normalized : bool
        If True, coordinates are from 0 to 1; otherwise a texel i is at i + 0.5.
    floats : bool
        If True, integers of 8 and 16 bits are read as floats from 0 to 1, or -1 to 1.
    device : str, int or Device, optional
        A GPU; the default is the device of `values`, or the first GPU.

    Attributes
    ----------
    handle, surface : int
    shape : tuple of int
    dtype : numpy.dtype
    device : Device

    Raises
    ------
    TypeError, ValueError
        If textures do not support the dtype, shape or mode.

    Examples
    --------
    >>> image = cuplug.Texture(numpy.ones((4, 8), "float32"), filter="linear", device="cuda")
    """

    cdef cuplug_texture texture
    cdef cuplug_texture_form form
    cdef int32_t gpu
    cdef readonly tuple shape
    cdef readonly object dtype

    def __init__(
        self, values, *, bint channels=False, filter: str = "nearest", address: str = "clamp",
        bint normalized=False, bint floats=False, device=None,
    ):
        cdef cuplug_error error
        if self.texture.array != NULL:
            raise TypeError("Texture: it was made before")
        cdef Array x = on_gpu(values, device)
        self.gpu, self.shape, self.dtype = x.tensor.device.id, x.shape, x.dtype
        set_sizes(&self.form, self.shape, self.dtype, channels)
        set_modes(&self.form, self.dtype, filter, address, normalized, floats)
        if cuplug_make_texture(self.gpu, &self.form, &self.texture, &error):
            raise_error(&error)
        copy(self, x, False)

    def __dealloc__(self):
        if self.texture.array != NULL:
            cuplug_free_texture(self.gpu, &self.texture, NULL)

    @property
    def handle(self) -> int:
        """The `cudaTextureObject_t`.

        Examples
        --------
        >>> cuplug.Texture(numpy.zeros(4, "float32"), device="cuda").handle > 0
        True
        """
        return self.texture.reader

    @property
    def surface(self) -> int:
        """The `cudaSurfaceObject_t`.

        Examples
        --------
        >>> cuplug.Texture(numpy.zeros(4, "float32"), device="cuda").surface > 0
        True
        """
        return self.texture.writer

    @property
    def device(self) -> Device:
        """The GPU.

        Examples
        --------
        >>> cuplug.Texture(numpy.zeros(4, "float32"), device="cuda").device
        cuplug.Device('cuda:0')
        """
        return Device(self.gpu)

    def __index__(self):
        return self.texture.reader

    def __reduce__(self):
        raise TypeError("Texture: its memory is of this process; pickle a copy of it, numpy()")

    def __repr__(self):
        return f"<texture, {self.dtype}, shape {self.shape}, on cuda:{self.gpu}>"

    def set(self, values):
        """Copy an array of the same shape and dtype into it, after the work on the stream.

        Examples
        --------
        >>> texture = cuplug.Texture(numpy.zeros(3, "float32"), device="cuda")
        >>> texture.set(numpy.float32([1, 2, 3]))
        >>> texture.numpy()
        array([1., 2., 3.], dtype=float32)
        """
        x = on_gpu(values, self.gpu)
        if (x.shape, x.dtype) != (self.shape, self.dtype):
            seen, wanted = f"{x.dtype} of shape {x.shape}", f"{self.dtype} of shape {self.shape}"
            raise ValueError(f"Texture: set: got {seen}, expected {wanted}")
        copy(self, x, False)

    def numpy(self) -> np.ndarray[Any, Any]:
        """Return a copy as a NumPy array, after the work on the stream.

        Examples
        --------
        >>> texture = cuplug.Texture(numpy.ones(3, "float32"), device="cuda")
        >>> texture.numpy()
        array([1., 1., 1.], dtype=float32)
        """
        x = empty(self.shape, self.dtype, self.gpu)
        copy(self, x, True)
        return x.numpy()


public(Texture)


cdef Array on_gpu(object values, object device):
    """Return the values in memory of a GPU, in C order."""
    if device is None and not hasattr(values, "__cuda_array_interface__"):
        device = "cuda"
    if device is not None:
        device = f"cuda:{parse_gpu('Texture', device).id}"
    cdef Array x = functions().asarray(values, device=device)
    return x.in_order()


cdef int set_sizes(
    cuplug_texture_form *form, tuple shape, object dtype, bint channels
) except -1:
    cdef int k
    if dtype.name not in FORMATS:
        raise TypeError(f"Texture: got dtype {dtype}, expected one of {', '.join(FORMATS)}")
    sizes = shape[:-1] if channels else shape
    n_channels = shape[-1] if channels and shape else 1
    if not 1 <= len(sizes) <= 3 or n_channels not in (1, 2, 4) or 0 in sizes:
        wanted = "1 to 3 dimensions" + (" and 1, 2 or 4 channels" if channels else "")
        raise ValueError(f"Texture: got shape {shape}, expected {wanted}")
    for k in range(3):
        form.sizes[k] = sizes[-1 - k] if k < len(sizes) else 0
    form.format, form.n_channels = FORMATS[dtype.name], n_channels
    form.texel_bytes = dtype.itemsize * n_channels
    return 0


cdef int set_modes(
    cuplug_texture_form *form, object dtype, object filter, object address, bint normalized,
    bint floats
) except -1:
    for name, seen, known in (("filter", filter, FILTERS), ("address", address, ADDRESSES)):
        if seen not in known:
            wanted = " or ".join([repr(each) for each in known])
            raise ValueError(f"Texture: {name}: got {seen!r}, expected {wanted}")
    is_integer = dtype.kind in "iu"
    if filter == "linear" and is_integer and not floats:
        raise ValueError(f"Texture: filter: got 'linear' of {dtype}, expected floats=True")
    if floats and (not is_integer or dtype.itemsize > 2):
        raise ValueError(f"Texture: floats: got {dtype}, expected integers of 8 or 16 bits")
    if address in ("wrap", "mirror") and not normalized:
        raise ValueError(f"Texture: address: got {address!r}, expected it with normalized=True")
    form.addressing, form.is_linear = ADDRESSES[address], FILTERS[filter]
    form.is_normalized, form.keeps_integers = normalized, is_integer and not floats
    return 0


cdef int copy(Texture texture, Array x, bint is_out) except -1:
    """Copy. Both keep their memory until the copy is done: freeing them waits for the stream."""
    cdef cuplug_error error
    cdef void *stream = work_stream(texture.gpu)
    hold(texture.gpu, (texture, x))
    if cuplug_copy_texture(
        texture.gpu, &texture.texture, &texture.form, x.tensor.data, is_out, stream, &error
    ):
        raise_error(&error)
    return 0

# SPDX-License-Identifier: Apache-2.0
"""Images in WebP, JPEG and PNG: data whose size the library determines.

Debian: apt install libwebp7 libturbojpeg0 libpng-dev.
"""

import cuplug
import numpy as np

# The library allocates its results.
webp = cuplug.adopt(
    "libwebp.so.7",
    {
        "prototypes": """
            size_t WebPEncodeRGB(const uint8_t *rgb, int width, int height, int stride,
                                 float quality, uint8_t **output);
            size_t WebPEncodeLosslessRGB(const uint8_t *rgb, int width, int height, int stride,
                                         uint8_t **output);
            uint8_t *WebPDecodeRGB(const uint8_t *data, size_t size, int *width, int *height);
            void WebPFree(void *memory);
        """,
        "encode": {
            "function": "WebPEncodeRGB",
            "signature": "encode(image: uint8[h, w, 3], quality: float = 75) -> data: uint8[?]",
            "arguments": "image, w, h, 3 * w, quality, made",
            "scratch": "made: uint8[*]; size: uint64",
            "returns": "size",
            "outputs": "data: made[size]",
            "free": "WebPFree",
        },
        "encode_lossless": {
            "function": "WebPEncodeLosslessRGB",
            "signature": "encode_lossless(image: uint8[h, w, 3]) -> data: uint8[?]",
            "arguments": "image, w, h, 3 * w, made",
            "scratch": "made: uint8[*]; size: uint64",
            "returns": "size",
            "outputs": "data: made[size]",
            "free": "WebPFree",
        },
        "decode": {
            "function": "WebPDecodeRGB",
            "signature": "decode(data: uint8[n]) -> image: uint8[?, ?, 3]",
            "arguments": "data, n, width, height",
            "scratch": "made: uint8[*]; width: int32; height: int32",
            "returns": "made",
            "outputs": "image: made[height, width, 3]",
            "free": "WebPFree",
        },
    },
)

# A compressor is a handle, and compresses one image at a time.
jpeg = cuplug.adopt(
    "libturbojpeg.so.0",
    {
        "prototypes": """
            enum { RGB = 0, CHROMA_420 = 2 };
            typedef void *tjhandle;
            tjhandle tjInitCompress(void);
            int tjDestroy(tjhandle handle);
            int tjCompress2(tjhandle handle, const unsigned char *image, int width, int pitch,
                            int height, int format, unsigned char **data, unsigned long *size,
                            int chroma, int quality, int flags);
            void tjFree(unsigned char *data);
        """,
        "compressor": {
            "function": "tjInitCompress",
            "signature": "compressor() -> handle[compressor]",
            "arguments": "",
            "returns": "compressor",
            "destroy": "tjDestroy",
        },
        "encode": {
            "function": "tjCompress2",
            "signature": "encode(c: handle[compressor], image: uint8[h, w, 3], quality: int = 90) "
            "-> data: uint8[?] where 1 <= quality <= 100",
            "arguments": "c, image, w, 0, h, RGB, made, size, CHROMA_420, quality, 0",
            "scratch": "made: uint8[*]; size: uint64",
            "outputs": "data: made[size]",
            "free": "tjFree",
            "lock": "library",
        },
    },
)

# Two calls that share a structure are a C function, compiled with the library's header.
PNG = """
#include <png.h>
#include <stdlib.h>

int decode(const unsigned char *data, size_t n, unsigned char **made, int *width, int *height) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_memory(&image, data, n)) return 1;
  image.format = PNG_FORMAT_RGB;
  *made = malloc(PNG_IMAGE_SIZE(image));
  if (!*made || !png_image_finish_read(&image, NULL, *made, 0, NULL)) {
    png_image_free(&image);
    return 2;
  }
  *width = image.width;
  *height = image.height;
  return 0;
}

int encode(const unsigned char *pixels, int width, int height, unsigned char *data, size_t *n) {
  png_image image = {.version = PNG_IMAGE_VERSION, .width = width, .height = height};
  image.format = PNG_FORMAT_RGB;
  return !png_image_write_to_memory(&image, data, n, 0, pixels, 0, NULL);
}
"""


def adopt_png():
    """Compile the functions above; CompileError without png.h."""
    return cuplug.adopt(
        "libpng16.so.16",
        {
            "source": PNG,
            "prototypes": """
                int decode(const unsigned char *data, size_t n, unsigned char **made, int *width,
                           int *height);
                int encode(const unsigned char *pixels, int width, int height,
                           unsigned char *data, size_t *n);
                void free(void *memory);
            """,
            "decode": {
                "signature": "decode(data: uint8[n]) -> image: uint8[?, ?, 3]",
                "arguments": "data, n, made, width, height",
                "scratch": "made: uint8[*]; width: int32; height: int32",
                "outputs": "image: made[height, width, 3]",
                "free": "free",
            },
            # The caller's memory, and its capacity, which becomes the size.
            "encode": {
                "signature": "encode(image: uint8[h, w, 3]) -> data: uint8[?]",
                "arguments": "image, w, h, room, size",
                "scratch": "room: uint8[4 * h * w + 20 * h + 1000]; "
                "size: uint64 = 4 * h * w + 20 * h + 1000",
                "outputs": "data: room[size]",
            },
        },
    )


def main() -> None:
    image = np.indices((32, 48)).sum(0).astype(np.uint8)[..., None].repeat(3, 2)
    data = webp.encode_lossless(image)
    same = np.array_equal(webp.decode(data), image)
    print("webp", image.nbytes, "bytes become", len(data), "and the same image" * same)
    with jpeg.compressor() as compressor:
        print("jpeg starts with", jpeg.encode(compressor, image)[:3].tolist())
    try:
        webp.decode(data[:20])
    except cuplug.PluginError as error:
        print(error)
    png = adopt_png()
    print("png is the same image:", np.array_equal(png.decode(png.encode(image)), image))


if __name__ == "__main__":
    main()

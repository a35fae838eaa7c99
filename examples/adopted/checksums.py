# SPDX-License-Identifier: Apache-2.0
"""Checksums by zlib and OpenSSL, and zlib's compression, on arrays.

Debian: apt install zlib1g libssl3.
"""

import cuplug
import numpy as np

zlib = cuplug.adopt(
    "libz.so.1",
    {
        "prototypes": """
            unsigned long crc32(unsigned long crc, const unsigned char *data, unsigned int n);
            int compress(unsigned char *to, unsigned long *n_to, const unsigned char *data,
                         unsigned long n);
        """,
        # A checksum for each row.
        "crc32": {
            "signature": "crc32(data: uint8[..., n], start: int = 0) -> sum: uint64[...]",
            "arguments": "start, data, n",
            "returns": "sum",
        },
        # `used` has the room before the call, and the number of bytes after it.
        "compress": {
            "signature": "compress(data: uint8[n], inout used: uint64[1]) "
            "-> to: uint8[n + n // 1000 + 13]",
            "arguments": "to, used, data, n",
        },
    },
)
crypto = cuplug.adopt(
    "libcrypto.so.3",
    {
        "prototypes": "unsigned char *SHA256(const unsigned char *data, size_t n, "
        "unsigned char *to);",
        "sha256": {
            "function": "SHA256",
            "signature": "sha256(data: uint8[..., n]) -> digest: uint8[..., 32]",
            "arguments": "data, n, digest",
            "returns": "ignored",
        },
    },
)


def main() -> None:
    rows = np.frombuffer(b"the same text, " * 40, np.uint8).reshape(2, -1)
    print("crc32", [hex(x) for x in zlib.crc32(rows).tolist()])
    print("sha256", crypto.sha256(rows)[0].tobytes().hex())
    used = np.array([len(rows[0]) + 13], np.uint64)
    packed = zlib.compress(rows[0], used)[: used[0]]
    print(len(rows[0]), "bytes become", len(packed))


if __name__ == "__main__":
    main()

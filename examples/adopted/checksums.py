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
        # `used` has the capacity before the call, and the number of bytes after it.
        "compress": {
            "signature": "compress(data: uint8[n]) -> packed: uint8[?]",
            "arguments": "to, used, data, n",
            "scratch": "to: uint8[n + n // 1000 + 13]; used: uint64 = n + n // 1000 + 13",
            "outputs": "packed: to[used]",
        },
    },
)
crypto = cuplug.adopt(
    "libcrypto.so.3",
    {
        "prototypes": """
            typedef struct evp_md_st EVP_MD;
            typedef struct evp_md_ctx_st EVP_MD_CTX;
            unsigned char *SHA256(const unsigned char *data, size_t n, unsigned char *to);
            EVP_MD_CTX *EVP_MD_CTX_new(void);
            void EVP_MD_CTX_free(EVP_MD_CTX *context);
            EVP_MD *EVP_MD_fetch(void *library, const char *algorithm, const char *properties);
            void EVP_MD_free(EVP_MD *algorithm);
            int EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *algorithm, void *engine);
            int EVP_DigestUpdate(EVP_MD_CTX *context, const void *data, size_t n);
            int EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned int *n);
        """,
        "sha256": {
            "function": "SHA256",
            "signature": "sha256(data: uint8[..., n]) -> digest: uint8[..., 32]",
            "arguments": "data, n, digest",
            "returns": "ignored",
        },
        # Data in pieces: a context and an algorithm are handles.
        "algorithm": {
            "function": "EVP_MD_fetch",
            "signature": "algorithm(name: str) -> handle[algorithm]",
            "arguments": "NULL, name, NULL",
            "returns": "algorithm",
            "destroy": "EVP_MD_free",
        },
        "context": {
            "function": "EVP_MD_CTX_new",
            "signature": "context() -> handle[context]",
            "arguments": "",
            "returns": "context",
            "destroy": "EVP_MD_CTX_free",
        },
        "begin": {
            "function": "EVP_DigestInit_ex",
            "signature": "begin(context: handle[context], algorithm: handle[algorithm])",
            "arguments": "context, algorithm, NULL",
            "returns": "one",
        },
        "update": {
            "function": "EVP_DigestUpdate",
            "signature": "update(context: handle[context], data: uint8[n])",
            "arguments": "context, data, n",
            "returns": "one",
        },
        "digest": {
            "function": "EVP_DigestFinal_ex",
            "signature": "digest(context: handle[context]) -> found: uint8[?]",
            "arguments": "context, room, size",
            "scratch": "room: uint8[64]; size: uint32",
            "outputs": "found: room[size]",
            "returns": "one",
        },
    },
)


def main() -> None:
    rows = np.frombuffer(b"the same text, " * 40, np.uint8).reshape(2, -1)
    print("crc32", [hex(x) for x in zlib.crc32(rows).tolist()])
    print("sha256", crypto.sha256(rows)[0].tobytes().hex())
    context = crypto.context()
    crypto.begin(context, crypto.algorithm("SHA512"))
    for row in rows:
        crypto.update(context, row)
    print("sha512", crypto.digest(context).tobytes().hex()[:32], "...")
    print(len(rows[0]), "bytes become", len(zlib.compress(rows[0])))


if __name__ == "__main__":
    main()

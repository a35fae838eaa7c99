# SPDX-License-Identifier: Apache-2.0
"""A library in Rust, a cdylib: its functions are `extern "C"`, and its object is a handle.

Debian: apt install rustc. It is compiled into a temporary folder.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cuplug
import numpy as np

SOURCE = """
use std::collections::HashMap;

pub struct Counter { counts: HashMap<i64, i64> }

#[no_mangle]
pub extern "C" fn counter_new() -> *mut Counter {
    Box::into_raw(Box::new(Counter { counts: HashMap::new() }))
}

#[no_mangle]
pub unsafe extern "C" fn counter_free(counter: *mut Counter) { drop(Box::from_raw(counter)) }

#[no_mangle]
pub unsafe extern "C" fn counter_add(counter: *mut Counter, x: *const i64, n: usize) {
    for value in std::slice::from_raw_parts(x, n) {
        *(*counter).counts.entry(*value).or_insert(0) += 1;
    }
}

#[no_mangle]
pub unsafe extern "C" fn counter_get(counter: *const Counter, x: i64) -> i64 {
    *(*counter).counts.get(&x).unwrap_or(&0)
}
"""

DESCRIPTION = {
    "prototypes": """
        struct Counter;
        struct Counter *counter_new(void);
        void counter_free(struct Counter *counter);
        void counter_add(struct Counter *counter, const int64_t *x, size_t n);
        int64_t counter_get(const struct Counter *counter, int64_t x);
    """,
    "counter": {
        "function": "counter_new",
        "signature": "counter() -> handle[counter]",
        "arguments": "",
        "returns": "counter",
        "destroy": "counter_free",
    },
    # Rust lets one thread at a time change an object.
    "add": {
        "function": "counter_add",
        "signature": "add(counter: handle[counter], x: int64[n])",
        "arguments": "counter, x, n",
        "lock": "library",
    },
    "get": {
        "function": "counter_get",
        "signature": "get(counter: handle[counter], x: int) -> count: int64[]",
        "arguments": "counter, x",
        "returns": "count",
        "lock": "library",
    },
}


def compile_and_adopt(folder: Path):
    """Compile the library into a folder, and adopt it."""
    source, library = folder / "counter.rs", folder / "libcounter.so"
    source.write_text(SOURCE)
    command = ["rustc", "--crate-type=cdylib", "-O", str(source), "-o", str(library)]
    subprocess.run(command, check=True)
    return cuplug.adopt(library, DESCRIPTION)


def main() -> None:
    if shutil.which("rustc") is None:
        sys.exit("no rustc: install Rust to run this example")
    with tempfile.TemporaryDirectory() as folder:
        rust = compile_and_adopt(Path(folder))
        counter = rust.counter()
        rust.add(counter, np.array([3, 1, 3, 3]))
        print("3 was there", int(rust.get(counter, 3)), "times")


if __name__ == "__main__":
    main()

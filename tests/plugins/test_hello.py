# SPDX-License-Identifier: Apache-2.0
"""hello prints one line on the device where it runs."""

import pytest


def test_from_the_host(run_python):
    done = run_python("from cuplug.ops import hello; hello()")
    assert (done.stdout, done.stderr) == ("hello from the host\n", "")


@pytest.mark.gpu
def test_from_the_gpu(run_python):
    done = run_python("from cuplug.ops import hello; hello(device='cuda')")
    assert (done.stdout, done.stderr) == ("hello from thread 0 of block 0 on cuda:0\n", "")


def test_takes_no_arguments():
    from cuplug.ops import hello

    with pytest.raises(TypeError, match="hello: got 1 arguments, expected at most 0"):
        hello(1)

# SPDX-License-Identifier: Apache-2.0
"""The tools around kernels: PTX, streams, events, graphs, pinned and managed memory."""

import cuplug
import numpy as np

SOURCE = """
#include <cstdint>
#include <type_traits>

template <class T> __global__ void add(T *x, T by, std::int32_t n) {
  static_assert(std::is_arithmetic<T>::value, "numbers alone");
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}
"""
N = 10_000


def main() -> None:
    """Check each of them."""
    module = cuplug.compile(SOURCE, names=["add<float>"])
    add = module["add<float>"]
    memory(add)
    graph(add)
    assert ".entry" in module.ptx
    assert cuplug.devices()[0].attributes["COMPUTE_CAPABILITY_MAJOR"] >= 5
    assert add.attributes().max_threads >= 128


def memory(add: cuplug.Kernel) -> None:
    """From pinned memory to the GPU and back, on a stream, with its time."""
    host = cuplug.empty_pinned(N, "float32")
    host[...] = np.arange(N)
    start, end = cuplug.Event(), cuplug.Event()
    with cuplug.Stream():
        x = cuplug.asarray(host, device="cuda")
        start.record()
        add[-(-N // 128), 128](x, 1, N)
        end.record()
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert np.array_equal(x.numpy(out=host), np.arange(1, N + 1))
    shared = cuplug.empty_managed(N, "float32")
    np.asarray(shared)[...] = host
    add[-(-N // 128), 128](shared, -1, N)
    assert np.array_equal(np.asarray(shared), np.arange(N))


def graph(add: cuplug.Kernel) -> None:
    """Two launches, captured once and launched three times."""
    x = cuplug.asarray(np.zeros(N, np.float32), device="cuda")
    launch = add.tune(N, x, 0, N, blocks=(128, 256))
    captured = cuplug.Graph()
    with captured:
        launch(x, 1, N)
        launch(x, 2, N)
    for _ in range(3):
        captured.launch()
    assert np.all(x.numpy() == 9)


if __name__ == "__main__":
    main()

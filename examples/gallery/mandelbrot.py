# SPDX-License-Identifier: Apache-2.0
"""The Mandelbrot set: the number of steps after which each point escapes."""

import cuplug

EXPRESSION = """
double re = -2.2 + 3.2 * (i % w + 0.5) / w, im = -1.2 + 2.4 * (i / w + 0.5) / h;
double x = 0, y = 0;
steps = 0;
while (steps < most && x * x + y * y < 4) {
  double next = x * x - y * y + re;
  y = 2 * x * y + im;
  x = next;
  steps++;
}
"""
row = "mandelbrot(h: int, w: int, most: int) -> steps: int32[h, w]"
steps_of = cuplug.elementwise(row, EXPRESSION)


def compute(device, height=240, width=320, most=60):
    out = cuplug.empty((height, width), "int32", device)
    steps_of(height, width, most, out=out)
    return out


if __name__ == "__main__":
    from picture import save

    save("mandelbrot", compute("cpu"), "magma")

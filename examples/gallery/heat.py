# SPDX-License-Identifier: Apache-2.0
"""The heat equation: a plate with edges of constant temperature, step by step."""

import cuplug

STEP = """
int64_t row = i / w, column = i % w;
bool is_inner = row > 0 && row < h - 1 && column > 0 && column < w - 1;
next = !is_inner ? u[i] : u[i] + rate * (u[i - 1] + u[i + 1] + u[i - w] + u[i + w] - 4 * u[i]);
"""
step = cuplug.elementwise("heat(u: T[h, w], rate: T) -> next: T[h, w]", STEP)

START = "(i / w == 0 ? 1.0f : 0.0f) + (i % w == 0 && i / w > h / 2 ? 0.7f : 0.0f)"
start = cuplug.elementwise("plate(h: int, w: int) -> float32[h, w]", START)


def compute(device, height=240, width=320, steps=6000):
    now, after = (cuplug.empty((height, width), "float32", device) for _ in range(2))
    start(height, width, out=now)
    for _ in range(steps):
        step(now, 0.24, out=after)
        now, after = after, now
    return now


if __name__ == "__main__":
    from picture import save

    save("heat", compute("cpu"), "inferno")

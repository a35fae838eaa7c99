

@pytest.mark.parametrize("side", ["left", "right"])
def test_values_that_ascend_descend_and_repeat(side):
    generator = np.random.default_rng(3)
    for m in [*range(40), 300]:
        x = np.sort(generator.integers(0, 60, m)).astype(np.float32)
        x[m - m // 8 :] = np.nan
        values = np.sort(np.append(generator.integers(-2, 62, 200), [np.nan, 1e9]))
        values = values.astype(np.float32)
        for v in (values, values[::-1].copy(), np.repeat(values, 3)):
            seen = cuplug.ops.searchsorted(x, v, side)
            np.testing.assert_array_equal(seen, np.searchsorted(x, v, side))

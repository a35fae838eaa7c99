# SPDX-License-Identifier: Apache-2.0
"""Objects of adopted libraries as handles: made, used, and destroyed once."""

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import cuplug
import numpy as np
import pytest
from places import FIXTURES

pytest.importorskip("cffi")

PROTOTYPES = """
struct counter;
struct view { struct counter *of; long step; };
long alive(void);
long errors(void);
struct counter *counter_new(long start);
void counter_free(struct counter *c);
long counter_next(struct counter *c);
int counter_open(const char *digits, struct counter **c);
int counter_close(struct counter **c);
int view_begin(struct view *v, struct counter *c, long step);
long view_next(struct view *v);
int view_end(struct view *v);
"""
COUNTER = {
    "function": "counter_new",
    "signature": "counter(start: int = 0) -> handle[counter]",
    "arguments": "start",
    "returns": "counter",
    "destroy": "counter_free",
}
OPENED = {
    "function": "counter_open",
    "signature": "opened(digits: str) -> c: handle[counter]",
    "arguments": "digits, c",
    "destroy": "counter_close",
}
VIEW = {
    "function": "view_begin",
    "signature": "view(c: handle[counter], step: int) -> handle[view]",
    "arguments": "view, c, step",
    "destroy": "view_end",
}


def number_of(name, signature, arguments):
    return {
        "function": name,
        "signature": f"{signature} -> r: int64[]",
        "arguments": arguments,
        "returns": "r",
    }


DESCRIPTION = {
    "prototypes": PROTOTYPES,
    "counter": COUNTER,
    "opened": OPENED,
    "view": VIEW,
    "next": number_of("counter_next", "next(c: handle[counter])", "c"),
    "view_next": number_of("view_next", "view_next(v: handle[view])", "v"),
    "alive": number_of("alive", "alive()", ""),
    "errors": number_of("errors", "errors()", ""),
}


@pytest.fixture
def library(build_plugin):
    return build_plugin(FIXTURES / "objects.c", "objects", extra=["-fvisibility=default"])


@pytest.fixture
def objects(library):
    """Return the operators. No object may exist before or after, or be used after its end."""
    found = cuplug.adopt(library, DESCRIPTION)
    assert found.alive() == 0
    yield found
    gc.collect()
    assert found.alive() == 0
    assert found.errors() == 0


def test_a_handle_is_made_used_and_closed_once(objects):
    counter = objects.counter(3)
    assert type(counter) is cuplug.Handle
    assert counter.tag == "counter"
    assert [int(objects.next(counter)) for _ in range(3)] == [3, 4, 5]
    assert objects.alive() == 1
    counter.close()
    counter.close()
    assert objects.alive() == 0
    with pytest.raises(ValueError, match=r"next: c: got a closed handle\[counter\], expected an o"):
        objects.next(counter)


def test_a_handle_that_nothing_refers_to_is_destroyed(objects):
    counter = objects.counter()
    assert objects.alive() == 1
    del counter
    assert objects.alive() == 0


def test_a_pointer_that_is_left_at_an_address(objects):
    with objects.opened("41") as counter:
        assert objects.next(counter) == 41
    assert objects.alive() == 0
    with pytest.raises(cuplug.PluginError, match="opened: result: got 7, expected 0"):
        objects.opened("")


def test_an_object_in_memory_of_the_handle(objects):
    counter = objects.counter(5)
    view = objects.view(counter, 100)
    assert [int(objects.view_next(view)) for _ in range(2)] == [500, 600]


def test_an_object_outlives_those_that_were_made_from_it(objects):
    counter = objects.counter(5)
    views = [objects.view(counter, k) for k in (1, 10)]
    counter.close()
    assert counter.closed
    assert objects.view_next(views[1]) == 50
    views[0].close()
    assert objects.alive() == 2
    views[1].close()
    assert objects.alive() == 0


def test_null_is_an_error(objects):
    with pytest.raises(cuplug.PluginError, match="counter: result: got NULL, expected a"):
        objects.counter(-1)


@pytest.mark.parametrize("given", [3, "text", None])
def test_only_handles_are_taken(objects, given):
    with pytest.raises(TypeError, match=r"next: c: got .*, expected handle\[counter\]"):
        objects.next(given)


def test_handles_of_another_kind_or_library(objects, build_plugin):
    counter = objects.counter()
    with pytest.raises(TypeError, match=r"view_next: v: got handle\[counter\], expected handle\[v"):
        objects.view_next(counter)
    other = build_plugin(FIXTURES / "objects.c", "other", extra=["-fvisibility=default"])
    with pytest.raises(TypeError, match=r"next: c: got handle\[counter\] of .*, expected handle"):
        objects.next(cuplug.adopt(other, DESCRIPTION).counter())


def test_descriptions_that_give_one_tag_to_two_types(library):
    odd = {**VIEW, "signature": "view(c: handle[counter], step: int) -> handle[counter]"}
    odd["arguments"] = "counter, c, step"
    made = cuplug.adopt(library, {**DESCRIPTION, "view": odd})
    view = made.view(made.counter(), 1)
    with pytest.raises(TypeError, match=r"next: c: got a handle of struct view \*.*, expected one"):
        made.next(view)


def test_many_threads_use_and_close_one_handle(objects):
    def use(counter):
        for _ in range(50):
            try:
                objects.next(counter)
            except ValueError:
                return
        counter.close()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            counter = objects.counter()
            list(pool.map(use, [counter] * 8))
            assert objects.alive() == 0


def test_handles_of_code_that_was_replaced(build_plugin, tmp_path):
    library = build_plugin(FIXTURES / "objects.c", "objects", extra=["-fvisibility=default"])
    place = tmp_path / "libreplaced.so"
    place.write_bytes(library.read_bytes())
    found = cuplug.adopt(place, DESCRIPTION)
    counter = found.counter()
    assert [found.next(counter), found.next(counter)] == [0, 1]
    (tmp_path / "new").write_bytes(library.read_bytes())
    (tmp_path / "new").rename(place)
    assert cuplug.reload() == (str(place),)
    with pytest.raises(TypeError, match="next: c: got a handle of struct counter .*; make another"):
        found.next(counter)
    assert found.next(found.counter(8)) == 8
    counter.close()


def test_operators_are_pickled_and_handles_are_not(objects):
    assert pickle.loads(pickle.dumps(objects.counter)) is objects.counter
    with pytest.raises(TypeError, match=r"handle\[counter\]: it cannot be copied or pickled"):
        pickle.dumps(objects.counter())


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("counter", {"destroy": "alive"}, "destroy: got alive, expected a function of struct coun"),
        ("counter", {"destroy": "nothing"}, "function: got 'nothing', expected a function that"),
        ("counter", {"returns": "zero"}, r"got struct counter .*, expected int or void, or an out"),
        ("opened", {"arguments": "digits, NULL"}, "expected it among them, or as the result"),
        ("opened", {"arguments": "digits, digits"}, "got digits, expected struct counter"),
        ("opened", {"returns": "c"}, r"returns: got int for c, expected a pointer for a handle"),
        ("view", {"arguments": "step, c, step"}, r"got step, expected struct view \*"),
        ("next", {"arguments": "1"}, r"got 1, expected struct counter \*"),
        ("next", {"destroy": "counter_free"}, "got `destroy`, expected `destroy`, the function "),
    ],
)
def test_wrong_descriptions(library, name, changed, message):
    with pytest.raises(ValueError, match=f"{name}: .*{message}"):
        cuplug.adopt(library, {**DESCRIPTION, name: {**DESCRIPTION[name], **changed}})


def test_a_handle_without_a_function_that_destroys_it(library):
    counter = {key: text for key, text in COUNTER.items() if key != "destroy"}
    message = r"counter: got handle\[counter\] without `destroy`, expected `destroy`"
    with pytest.raises(ValueError, match=message):
        cuplug.adopt(library, {**DESCRIPTION, "counter": counter})


KEEPER = """
#include <stdlib.h>
typedef struct { const double *data; long n; } keeper;
keeper *keep(const double *data, long n) {
  keeper *k = malloc(sizeof *k);
  *k = (keeper){data, n};
  return k;
}
double kept(const keeper *k) {
  double sum = 0;
  for (long i = 0; i < k->n; i++) sum += k->data[i];
  return sum;
}
"""


def test_an_object_may_keep_the_address_of_an_input():
    found = cuplug.adopt(
        "libm.so.6",
        {
            "source": KEEPER,
            "prototypes": "typedef struct keeper keeper; keeper *keep(const double *data, long n);"
            "double kept(const keeper *k); void free(void *k);",
            "keep": {
                "signature": "keep(x: float64[n]) -> handle[keeper]",
                "arguments": "x, n",
                "returns": "keeper",
                "destroy": "free",
            },
            "kept": {
                "signature": "kept(k: handle[keeper]) -> r: float64[]",
                "arguments": "k",
                "returns": "r",
            },
        },
    )
    x = np.ones(1000)
    keeper = found.keep(x)
    x[:] = 7
    assert found.kept(keeper) == 1000

# SPDX-License-Identifier: Apache-2.0
"""Services for entries besides arguments: states, statuses, and checks for Ctrl-C."""

import cuplug
import pytest
from cuplug._integration.author.check import check_file

COUNTING = """
#include <cuplug/plugin.h>
#include <stdlib.h>
static _Atomic int64_t n_made;
%s int make(const cuplug_call *call, void **state) {
  (void)call;
  int64_t *counts = calloc(2, sizeof *counts);
  *state = counts;
  if (!counts) return CUPLUG_ERROR_MEMORY;
  counts[0] = ++n_made;
  return CUPLUG_OK;
}
CUPLUG_ENTRY int count_host(const cuplug_call *call) {
  int64_t *counts = call->state, *out = call->outputs[0].data;
  out[0] = counts[0];
  out[1] = ++counts[1];
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(count_host, "count() -> int64[2]", "States made, and calls.");
CUPLUG_PLUGIN(counting, "%d.0" CUPLUG_STATE(make));
"""


@pytest.fixture
def build_counting(tmp_path):
    def build(version=1, export="CUPLUG_ENTRY"):
        (tmp_path / "counting.c").write_text(COUNTING % (export, version))
        return cuplug.build(tmp_path / "counting.c")

    return build


def test_a_state_is_kept_between_calls_and_made_anew_after_a_reload(build_counting):
    path = build_counting()
    assert [f.text for f in check_file(path) if f.level == "error"] == []
    count = cuplug.load(path).count
    assert [count().tolist() for _ in range(3)] == [[1, 1], [1, 2], [1, 3]]
    build_counting(2)
    assert cuplug.reload(count) == (path,)
    assert [count().tolist() for _ in range(2)] == [[1, 1], [1, 2]]


def test_a_function_that_is_not_exported(build_plugin, tmp_path):
    source = tmp_path / "counting.c"
    source.write_text(COUNTING % ("static __attribute__((used))", 1))
    with pytest.raises(cuplug.BuildError, match="the table names make, which makes a state"):
        cuplug.build(source)
    path = build_plugin(source, "counting")
    sentence = "does not export make, a function that its table names"
    with pytest.raises(cuplug.PluginError, match=f"^count: {path}: {sentence}$"):
        cuplug.load(str(path)).count()


STATUSES = """
#include <cuplug/plugin.h>
CUPLUG_ENTRY int end_host(const cuplug_call *call) {
  const int status = (int)call->scalars[0].i;
  return call->none_mask ? status : cuplug_fail(call, status, "k: it says so");
}
CUPLUG_HOST_OPERATOR(end_host, "end(k: int)", "Ends with a status.");
CUPLUG_ENTRY int ask_host(const cuplug_call *call) {
  int64_t value;
  return cuplug_device_attribute(call, 16, &value);
}
CUPLUG_HOST_OPERATOR(ask_host, "ask()", "Asks for a GPU's property.");
CUPLUG_PLUGIN(statuses, "1");
"""


@pytest.fixture(scope="module")
def statuses(build_plugin, tmp_path_factory):
    source = tmp_path_factory.mktemp("statuses") / "statuses.c"
    source.write_text(STATUSES)
    return cuplug.load(str(build_plugin(source, "statuses")))


@pytest.mark.parametrize(
    ("status", "kinds"),
    [
        (900, (cuplug.CancelledError, cuplug.Error, RuntimeError)),
        (1000, (cuplug.UnsupportedError, cuplug.Error, NotImplementedError)),
    ],
)
def test_statuses_are_exceptions(statuses, status, kinds):
    with pytest.raises(kinds[0], match="^end: k: it says so$") as raised:
        statuses.end(status)
    assert all(isinstance(raised.value, kind) for kind in kinds)


def test_a_call_on_the_host_has_no_properties_of_a_gpu(statuses):
    with pytest.raises(cuplug.PluginError, match="got a call on the host, expected one on a GPU"):
        statuses.ask()


WAITING = """
#include <cuplug/plugin.h>
#include <time.h>
CUPLUG_ENTRY int wait_host(const cuplug_call *call) {
  const struct timespec pause = {.tv_nsec = 1000000};
  for (int k = 0; k < call->scalars[0].i; k++) {
    const int status = cuplug_interrupted(call);
    if (status) return status;
    nanosleep(&pause, NULL);
  }
  return CUPLUG_OK;
}
CUPLUG_HOST_OPERATOR(wait_host, "wait_for(n: int)", "Waits for n milliseconds, or until Ctrl-C.");
CUPLUG_PLUGIN(waits, "1");
"""

INTERRUPT = """
import signal, threading
import cuplug
signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs in the background lacks
wait_for = cuplug.load(%r).wait_for
wait_for(3)
threading.Timer(0.2, lambda: signal.raise_signal(signal.SIGINT)).start()
try:
    wait_for(300_000)
except KeyboardInterrupt:
    wait_for(3)
    print("ended")
"""


def test_an_entry_hears_of_ctrl_c(build_plugin, tmp_path, run_python):
    (tmp_path / "waits.c").write_text(WAITING)
    path = build_plugin(tmp_path / "waits.c", "waits", extra=["-D_GNU_SOURCE"])
    done = run_python(INTERRUPT % str(path))
    assert done.stdout == "ended\n", done.stderr

# SPDX-License-Identifier: Apache-2.0
"""`cuplug test` calls with and without each optional output, and checks outputs with the layout of
an input."""

import pytest
from cuplug._integration.commands import property_runner

SOURCE = """
#include <cuplug/plugin.h>

static int double_all(const cuplug_call *call) {
  const float *x = call->tensors[0].data;
  for (int64_t i = 0; i < cuplug_n_elements(call->tensors); i++)
    ((float *)call->outputs[0].data)[i] = 2 * x[i];
  return CUPLUG_OK;
}
CUPLUG_ENTRY int sound_host(const cuplug_call *call) {
  for (int k = 1; k < 3; k++)
    if (call->outputs[k].data) *(float *)call->outputs[k].data = (float)k;
  return double_all(call);
}
CUPLUG_ENTRY int assumes_host(const cuplug_call *call) {
  *(float *)call->outputs[1].data = 1;
  return double_all(call);
}
CUPLUG_ENTRY int forgets_host(const cuplug_call *call) {
  return call->outputs[1].data && call->outputs[2].data ? sound_host(call) : CUPLUG_OK;
}
CUPLUG_ENTRY int mixes_host(const cuplug_call *call) {
  const int is_second = !call->outputs[1].data;
  if (call->outputs[1 + is_second].data) *(float *)call->outputs[1 + is_second].data = 1;
  return double_all(call);
}
/* Offsets of y by the strides of x, and the other way round. */
static int laid_out(const cuplug_call *call, int is_sound) {
  const cuplug_tensor *x = call->tensors, *y = call->outputs;
  for (int64_t i = 0; i < x->shape[0]; i++)
    for (int64_t j = 0; j < x->shape[1]; j++)
      ((float *)y->data)[is_sound ? i * y->strides[0] + j * y->strides[1] : i * x->shape[1] + j] =
          ((const float *)x->data)[i * x->strides[0] + j * x->strides[1]];
  return CUPLUG_OK;
}
CUPLUG_ENTRY int keeps_host(const cuplug_call *call) { return laid_out(call, 1); }
CUPLUG_ENTRY int loses_host(const cuplug_call *call) { return laid_out(call, 0); }

#define ROW(name)                                                                                 \\
  CUPLUG_HOST_OPERATOR(name##_host,                                                               \\
                       #name "(x: float32[n]) -> (y: float32[n], a: float32[] = None, "           \\
                             "b: float32[] = None)",                                              \\
                       "2 x.")
#define LIKE(name)                                                                                \\
  CUPLUG_HOST_OPERATOR(name##_host, #name "(x: float32[m, n]) -> float32[m, n] like x",           \\
                       "x." CUPLUG_TAKES_STRIDES)
ROW(sound);
ROW(assumes);
ROW(forgets);
ROW(mixes);
LIKE(keeps);
LIKE(loses);
CUPLUG_PLUGIN(optional, "1.0.0");
"""


pytestmark = pytest.mark.xdist_group("optional outputs")  # they share what ran


@pytest.fixture(scope="module")
def failed(build_plugin, tmp_path_factory):
    """Return the failures of each operator, by property."""
    source = tmp_path_factory.mktemp("optional") / "optional.c"
    source.write_text(SOURCE)
    results = property_runner.try_all(str(build_plugin(source, "optional")), examples=20)
    assert {r.operator for r in results} == {
        "sound",
        "assumes",
        "forgets",
        "mixes",
        "keeps",
        "loses",
    }
    return {(r.operator, r.property): r for r in results if not r.ok}


def test_sound_operators_pass(failed):
    assert [key for key in failed if key[0] in ("sound", "keeps")] == []


def test_an_output_that_is_taken_for_granted(failed):
    result = failed["assumes", "outputs filled"]
    assert result.text == "the process was ended by SIGSEGV"
    assert "return_a=False" in result.code


def test_results_that_are_written_only_for_all_who_ask(failed):
    result = failed["forgets", "outputs filled"]
    assert "out= that held bytes" in result.text
    assert "=False" in result.code


def test_an_output_in_the_place_of_another(failed):
    assert "return_a=True, return_b=True" in failed["mixes", "outputs filled"].code


def test_strides_that_are_ignored(failed):
    assert [name for operator, name in failed if operator == "loses"] == ["layouts"]
    assert "Fortran-ordered" in failed["loses", "layouts"].text

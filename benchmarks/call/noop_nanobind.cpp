// SPDX-License-Identifier: Apache-2.0
// The function that nanobind calls: it does nothing, and nanobind checks its arrays.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;
using floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static int noop3(floats a, floats b, floats c) {
  return (!a.data() || !b.data() || !c.data()) && a.shape(0);
}

NB_MODULE(noop_nanobind, module) {
  module.def("noop3", noop3, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

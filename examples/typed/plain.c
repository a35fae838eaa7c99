/* SPDX-License-Identifier: Apache-2.0 */
/* A Python extension in C that calls an operator on buffers and on cuplug arrays. Nothing is
 * linked:
 *
 *     cc -shared -fPIC $(python3-config --includes) -I$(python -c 'import cuplug;
 *     print(cuplug.get_include())') plain.c -o plain.abi3.so
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <cuplug/extension.h>

/* Runs relu without the GIL. */
static PyObject *run_relu(cuplug_view x, cuplug_view out) {
  static cuplug_operator *relu;
  cuplug_argument arguments[2];
  cuplug_view_shape shapes[2];
  int status;
  cuplug_set_view(&arguments[0], x, &shapes[0]);
  cuplug_set_view(&arguments[1], out, &shapes[1]);
  Py_BEGIN_ALLOW_THREADS;
  status = cuplug_call_operator(&relu, "relu.relu", arguments, 1, 1, NULL);
  Py_END_ALLOW_THREADS;
  return status ? NULL : Py_BuildValue("");
}

/* rectify(x, out): two C-contiguous buffers of float32. */
static PyObject *rectify(PyObject *module, PyObject *args) {
  Py_buffer x, out;
  (void)module;
  if (!PyArg_ParseTuple(args, "y*w*", &x, &out)) return NULL;
  const int64_t n = (int64_t)(x.len / (Py_ssize_t)sizeof(float));
  const int64_t n_out = (int64_t)(out.len / (Py_ssize_t)sizeof(float));
  PyObject *result =
      run_relu(CUPLUG_VIEW_AT((const float *)x.buf, n), CUPLUG_VIEW_AT((float *)out.buf, n_out));
  PyBuffer_Release(&x);
  PyBuffer_Release(&out);
  return result;
}

/* rectify_array(x, out): two arrays of cuplug, on the host or a GPU. */
static PyObject *rectify_array(PyObject *module, PyObject *args) {
  PyObject *x, *out;
  cuplug_view from, to;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO", &x, &out)) return NULL;
  if (cuplug_view_of_array(x, &from) || cuplug_view_of_array(out, &to)) return NULL;
  return run_relu(from, to);
}

PyMODINIT_FUNC PyInit_plain(void) {
  static PyMethodDef methods[] = {
      {"rectify", rectify, METH_VARARGS, "Set out to relu(x): buffers of float32."},
      {"rectify_array", rectify_array, METH_VARARGS, "Set out to relu(x): arrays of cuplug."},
      {NULL, NULL, 0, NULL}};
  static struct PyModuleDef module = {
      PyModuleDef_HEAD_INIT, "plain", NULL, 0, methods, NULL, NULL, NULL, NULL};
  if (cuplug_import()) return NULL;
  return PyModule_Create(&module);
}

/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file extension.h
 * Operators for Python extensions that are written in C or C++, without linking: the functions come
 * from the installed package when the extension is imported, as for Cython modules. Includes
 * Python.h, also with Py_LIMITED_API. Not part of the ABI.
 *
 *     static cuplug_operator *relu;
 *     cuplug_argument arguments[2];
 *     cuplug_view_shape shapes[2];
 *     cuplug_set_view(&arguments[0], CUPLUG_VIEW_AT(x, n), &shapes[0]);
 *     cuplug_set_view(&arguments[1], CUPLUG_VIEW_AT(out, n), &shapes[1]);
 *     if (cuplug_call_operator(&relu, "relu.relu", arguments, 1, 1, NULL)) return NULL;
 */
#ifndef CUPLUG_EXTENSION_H
#define CUPLUG_EXTENSION_H

#include <Python.h>
#include <cuplug/view.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Filled by cuplug_import; each source file has its own. */
static struct {
  int (*call)(cuplug_operator **, const char *, const cuplug_argument *, uint32_t, uint32_t,
              void *);
  int (*call_with_lists)(cuplug_operator **, const char *, cuplug_argument *, uint32_t, uint32_t,
                         void *);
  void *(*current_stream)(int32_t);
  cuplug_view (*view_of_array)(PyObject *);
  void (*free_view)(cuplug_view *);
  int (*close_handle)(cuplug_handle *);
  PyObject *array_type; /* cuplug.Array, owned until the process ends */
} cuplug__imported;

/* Sets a pointer to a function that the package offers; `type` is its type as Cython writes it. */
static inline int cuplug__import_function(PyObject *functions, const char *name, const char *type,
                                          void *place) {
  PyObject *capsule = PyDict_GetItemString(functions, name);
  if (!capsule || !PyCapsule_IsValid(capsule, type)) {
    PyErr_Format(PyExc_ImportError,
                 "cuplug: got a package without the function \"%s\" of type \"%s\"; install the "
                 "version for which the extension was compiled",
                 name, type);
    return -1;
  }
  void *function = PyCapsule_GetPointer(capsule, type);
  memcpy(place, &function, sizeof(function));
  return 0;
}

static inline int cuplug__import_functions(PyObject *functions) {
#define CUPLUG__CALL_TYPE(constant)                                                            \
  "int (cuplug_operator **, char const *, cuplug_argument " constant "*, uint32_t, uint32_t, " \
  "void *)"
  return cuplug__import_function(functions, "call_on_stream", CUPLUG__CALL_TYPE("const "),
                                 &cuplug__imported.call) ||
                 cuplug__import_function(functions, "call_with_lists", CUPLUG__CALL_TYPE(""),
                                         &cuplug__imported.call_with_lists) ||
                 cuplug__import_function(functions, "current_stream", "void *(int32_t)",
                                         &cuplug__imported.current_stream) ||
                 cuplug__import_function(functions, "view_of_array", "cuplug_view (PyObject *)",
                                         &cuplug__imported.view_of_array) ||
                 cuplug__import_function(functions, "free_view", "void (cuplug_view *)",
                                         &cuplug__imported.free_view) ||
                 cuplug__import_function(functions, "close_handle", "int (cuplug_handle *)",
                                         &cuplug__imported.close_handle)
             ? -1
             : 0;
#undef CUPLUG__CALL_TYPE
}

static inline PyObject *cuplug__import_attribute(const char *module_name, const char *name) {
  PyObject *module = PyImport_ImportModule(module_name);
  PyObject *found = module ? PyObject_GetAttrString(module, name) : NULL;
  Py_XDECREF(module);
  return found;
}

/**
 * Imports cuplug. Call it in the module's PyInit function or Py_mod_exec slot, in each source file
 * that uses what follows.
 *
 * @return 0, or -1 with a Python exception
 */
static inline int cuplug_import(void) {
  if (cuplug__imported.array_type) return 0;
  PyObject *functions = cuplug__import_attribute("cuplug._memoryviews", "__pyx_capi__");
  if (!functions) return -1;
  const int status = cuplug__import_functions(functions);
  Py_DECREF(functions);
  if (!status) cuplug__imported.array_type = cuplug__import_attribute("cuplug", "Array");
  return cuplug__imported.array_type ? 0 : -1;
}

/**
 * Checks the arguments and runs an operator, with or without the GIL.
 *
 * @param slot a static variable, NULL before the first call, which keeps the operator
 * @param name "plugin.operator", or "plugin." and the text of the signature, which the operator
 *             must then have
 * @param arguments n_parameters parameters, then n_outputs outputs; none is a list
 * @param stream of arrays on a GPU: a CUstream or cudaStream_t, or NULL: as in calls from Python
 * @return 0, or -1 with a Python exception
 */
static inline int cuplug_call_operator(cuplug_operator **slot, const char *name,
                                       const cuplug_argument *arguments, uint32_t n_parameters,
                                       uint32_t n_outputs, void *stream) {
  return cuplug__imported.call(slot, name, arguments, n_parameters, n_outputs, stream);
}

/** The same, with lists made by cuplug_views, cuplug_ints and cuplug_floats; they are changed. */
static inline int cuplug_call_with_lists(cuplug_operator **slot, const char *name,
                                         cuplug_argument *arguments, uint32_t n_parameters,
                                         uint32_t n_outputs, void *stream) {
  return cuplug__imported.call_with_lists(slot, name, arguments, n_parameters, n_outputs, stream);
}

/**
 * Sets a view of a cuplug.Array, valid for as long as the array lives. Needs the GIL.
 *
 * @return 0, or -1 with a TypeError
 */
static inline int cuplug_view_of_array(PyObject *array, cuplug_view *view) {
  const int is_array = PyObject_IsInstance(array, cuplug__imported.array_type);
  if (is_array == 1) {
    *view = cuplug__imported.view_of_array(array);
    return 0;
  }
  if (!is_array)
    PyErr_SetString(PyExc_TypeError,
                    "got another object, expected a cuplug.Array; use cuplug.asarray");
  return -1;
}

/** The stream that calls with the stream NULL use on a GPU; NULL is the legacy default stream. */
static inline void *cuplug_current_stream(int32_t device) {
  return cuplug__imported.current_stream(device);
}

/** Frees the memory of an output made by cuplug_new_view. */
static inline void cuplug_free_view(cuplug_view *view) { cuplug__imported.free_view(view); }

/** Closes and frees a handle; returns 0, or -1 with a Python exception. */
static inline int cuplug_release_handle(cuplug_handle *handle) {
  return cuplug__imported.close_handle(handle);
}

#ifdef __cplusplus
}
#endif
#endif

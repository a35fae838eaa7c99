/* SPDX-License-Identifier: Apache-2.0 */
/* Shared libraries of the process. Only library.c includes <dlfcn.h>. */
#ifndef CUPLUG_CORE_BASE_LIBRARY_H
#define CUPLUG_CORE_BASE_LIBRARY_H

#include <cuplug/host.h>
#include <sys/types.h>

/* The kind of address for cuplug__library_holds. */
#define CUPLUG__DATA 0
#define CUPLUG__CODE 1

/* Opens a library (NOW, LOCAL; never closed). NULL: ERROR_PLUGIN with the reason of the dynamic
 * linker, which begins with `name` or with the dependency that it misses. */
void *cuplug__library_open(const char *name, cuplug_error *error);

/* Sets the path of the file of a library for debuggers, backtraces and dladdr. Takes ownership of
 * the name, which is never freed, because others may be reading it. */
void cuplug__library_rename(void *library, char *name);

/* The address of a symbol in the library or its dependencies; NULL when none has it. */
void *cuplug__library_symbol(void *library, const char *symbol);

/* 1 if `bytes` bytes at `address` are within one segment of this library. */
int cuplug__library_holds(void *library, const void *address, size_t bytes, int kind);

/* Shows the segments of notes of a library that are in readable memory. */
typedef void cuplug__visit_segment(const char *bytes, uint64_t n_bytes, uint64_t alignment,
                                   void *data);
void cuplug__library_visit_notes(void *library, cuplug__visit_segment *visit, void *data);

/* The file that contains an address, by its name in the dynamic linker, or "/proc/self/exe"; ""
 * without one. Does not wait for threads that load a library. */
const char *cuplug__library_of(const void *address);

/* 1 if no code of a library can change how its thread computes (base/rounding.h): it has no such
 * instruction, and calls only functions of the C and C++ libraries, none of which has one. Reading
 * the register takes 5 ns on some CPUs; calls of such libraries skip it. */
int cuplug__library_keeps_rounding(void *library);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The host API: everything that a program includes to find plugins and to call their operators.
 *
 *     cuplug_operator *gather;
 *     cuplug_error error;
 *     if (cuplug_find("gather", &gather, &error)) return puts(error.message), 1;
 *     cuplug_argument args[] = {cuplug_array(&source), cuplug_array(&index), cuplug_absent(),
 *                               cuplug_array(&out)};
 *     if (cuplug_invoke(gather, args, 4, NULL, &error)) return puts(error.message), 1;
 *
 * Conventions. A function with an error record returns a cuplug_status, and fills the record if it
 * is not CUPLUG_OK; the record needs no preparation and may be NULL. Pointers are borrowed until
 * the call returns unless documented otherwise. Operators and their descriptions live until the
 * process exits. Nothing here prints, exits or aborts.
 *
 * Growth. Handles (operators, overloads, signatures, listings) are opaque and read by functions. A
 * structure that a program or the library fills begins with `struct_bytes`, which the program sets
 * to its sizeof: the library reads and writes no further. Errors, arguments and tensors never
 * change.
 *
 * Tags: [thread-safe] any thread at any time; [loads] may load a plugin's code; [no-cuda] never
 * touches CUDA; [stream-ordered] puts work on a stream and returns; [syncs] waits for the device.
 *
 * Constructors of libraries may call [no-cuda] functions, and may wait for threads that call
 * functions that are [no-cuda] and not [loads]: these hold no lock while anything is loaded.
 * Functions that load wait for constructors that other threads run, like dlopen.
 */
#ifndef CUPLUG_HOST_H
#define CUPLUG_HOST_H

#define CUPLUG_VERSION "0.1.0"

#include <cuplug/describe.h>
#include <cuplug/devices.h>
#include <cuplug/operators.h>

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The plugin ABI: everything that the author of a plugin includes.
 *
 * A plugin is a shared library lib<name>.so. Its symbol table is a list of ELF notes in the section
 * `.note.cuplug`: one for the plugin, and one for each operator (or each overload of one), emitted
 * next to the operator's definition, in any source file of the plugin. A note contains only text,
 * is as long as its text, and is read without running the file: docs/abi.md. An operator's note
 * names the entry points that the host calls; all entries have one type, `cuplug_entry`.
 *
 *     CUPLUG_ENTRY int half_host(const cuplug_call *call) { ...; return CUPLUG_OK; }
 *
 *     CUPLUG_HOST_OPERATOR(half_host, "half(x: float32[...]) -> float32[...]", "Half of x.");
 *     CUPLUG_PLUGIN(half, "1.0.0");
 *
 * Growth: structures only grow at their end. Before you read a field that is newer than ABI 2.0,
 * test CUPLUG_HAS_FIELD(object, field). Reserved fields are zero.
 *
 * An entry never exits, prints, throws, synchronizes or resets the device, or keeps a pointer that
 * it received, and leaves the current device unchanged. It may run on several threads at once. */
#ifndef CUPLUG_PLUGIN_H
#define CUPLUG_PLUGIN_H

#include <cuplug/abi.h>
#include <cuplug/entry.h>
#include <cuplug/table.h>
#ifdef __CUDACC__
#include <cuplug/kernels.h>
#endif

#endif

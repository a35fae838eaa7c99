/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions that are also compiled for wider vectors. */
#ifndef CUPLUG_PLUGINS_VECTORS_H
#define CUPLUG_PLUGINS_VECTORS_H

/* Before a function. The copy for this CPU is selected when the plugin is loaded. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef VECTORS
#define VECTORS
#endif

#endif

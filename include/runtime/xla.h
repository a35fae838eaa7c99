/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that XLA calls for operators, all operators by the same ones; for jax.ffi. Not
 * installed. runtime/jax/xla.h declares the arguments from XLA.
 *
 * The attributes of a call are
 *
 *     operator    "plugin.operator", as cuplug_find takes it; or
 *     address     the address of an operator created in memory, an integer, and
 *     process     the number passed to cuplug_xla_begin, without which the address has no meaning
 *     row         1 + the number of the only overload that may be used, an integer; optional
 *     arguments   a letter for each argument, in the order of the signature's parameters:
 *         a       an array: the next operand
 *         t       a scalar: the next operand, which is read
 *         v       a value: the next of the attributes value00, value01 ...
 *         c       a complex value: such an attribute of two numbers
 *         n       None
 *         -       absent
 *         [aa]    a list of arrays
 *         e       an empty list
 *
 * The results are the in-out arrays, which have the memory of their operands, then the outputs. */
#ifndef CUPLUG_RUNTIME_XLA_H
#define CUPLUG_RUNTIME_XLA_H

#include <cuplug/host.h>

CUPLUG__BEGIN_C

struct cuplug__xla_call;
struct cuplug__xla_error;
typedef struct cuplug__xla_error *cuplug_xla_handler(struct cuplug__xla_call *call);

/* Sets the number that identifies attributes of this process. [no-cuda] */
CUPLUG_API void cuplug_xla_begin(uint64_t process);

/* Once for each place in a program where an operator is called: finds it, and reads the
 * attributes. [thread-safe] [no-cuda] */
CUPLUG_API cuplug_xla_handler cuplug_xla_instantiate_cpu;
CUPLUG_API cuplug_xla_handler cuplug_xla_instantiate_cuda;
/* Each call. [thread-safe] [loads] */
CUPLUG_API cuplug_xla_handler cuplug_xla_execute_cpu;
/* On the stream from XLA; its work may be captured and replayed. [thread-safe] [loads]
 * [stream-ordered] */
CUPLUG_API cuplug_xla_handler cuplug_xla_execute_cuda;
/* The same for calls with scalars that are operands: it waits for them. [thread-safe] [loads]
 * [syncs] */
CUPLUG_API cuplug_xla_handler cuplug_xla_execute_cuda_waiting;

CUPLUG__END_C
#endif

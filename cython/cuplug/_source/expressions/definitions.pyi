# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

from cuplug._engine.base.public import PublicCall
from cuplug._engine.call.operator import Operator
from cuplug._engine.signature.formula import Term
from cuplug._engine.signature.variant import Variant
from cuplug._source.expressions.kernel_arguments import Pass

MAX_PASSES: int
Compiler = Callable[[Variant], tuple[int, int]]

def load_functions(image: bytes, name: str, symbols: list[str], device: int) -> list[int]: ...
def define_elementwise(
    overloads: list[tuple[str, Compiler, int, list[Term], int]],
    doc: str,
    in_order: bool,
    is_whole: bool,
    never_waits: bool,
    made: PublicCall,
) -> Operator: ...
def define_reduction(
    signature: str,
    doc: str,
    compile: Compiler,
    in_order: bool,
    n_outputs: int,
    accumulator_bytes: int,
    has_identity: bool,
    strided_below: int,
    never_waits: bool,
    made: PublicCall,
) -> Operator: ...
def define_rows(
    signatures: list[str],
    doc: str,
    compile: Compiler,
    n_outputs: int,
    has_identity: bool,
    made: PublicCall,
) -> Operator: ...
def define_scan(
    signature: str,
    doc: str,
    compile: Compiler,
    n_outputs: int,
    accumulator_bytes: int,
    made: PublicCall,
) -> Operator: ...
def define_function(
    signature: str,
    doc: str,
    compile_host: Compiler | None,
    compile_cuda: Compiler | None,
    made: PublicCall,
) -> Operator: ...
def make_plan(
    grid: list[Term], block: list[Term], shared: Term | None, passes: list[Pass], per_thread: bool
) -> int: ...

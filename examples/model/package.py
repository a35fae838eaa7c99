# SPDX-License-Identifier: Apache-2.0
"""A model as an AOTInductor package, for Python and for a C++ program without Python.

    python package.py FOLDER [--device cuda]

trains a small model, writes the package, and continues a text with both.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import cuplug
import torch
from operators import of_cuplug
from torch.utils import cpp_extension
from transformer import Model, batches, train

MAIN = Path(__file__).resolve().parent / "main.cpp"


def write_package(model, path, length):
    """Compile a model for texts of up to `length` bytes."""
    device = model.table.device
    tokens = torch.zeros((1, length // 2), dtype=torch.int64, device=device)
    sizes = {"tokens": {1: torch.export.Dim("n", min=2, max=length)}}
    program = torch.export.export(model, (tokens,), dynamic_shapes=sizes)
    calls = {x.target for x in program.graph.nodes if str(x.target).startswith("cuplug.")}
    schemas = "\n".join(sorted(str(x._schema) for x in calls))
    metadata = {"cuplug": schemas, "length": str(length), "device": device.type}
    configs = {"aot_inductor.metadata": metadata}
    return torch._inductor.aoti_compile_and_package(
        program, package_path=str(path), inductor_configs=configs
    )


def go_on(model, text, n, length, device):
    """Return bytes and n more, each the most probable one."""
    for _ in range(n):
        tokens = torch.tensor([list(text[-length:])], device=device)
        text += bytes([model(tokens)[0, -1].argmax().item()])
    return text


def build_program(folder):
    """Compile `main.cpp` with the headers and libraries of PyTorch, and return its path."""
    program, (libraries,) = str(folder / "main"), cpp_extension.library_paths()
    flags = [f"-I{x}" for x in (*cpp_extension.include_paths(), cuplug.get_include())]
    flags += run(sys.executable, "-m", "cuplug", "--libs").split()
    flags += [f"-L{libraries}", f"-Wl,-rpath,{libraries},--no-as-needed"]
    flags += ["-ltorch", "-ltorch_cpu", "-lc10"]
    run("g++", "-std=c++20", str(MAIN), "-o", program, *flags)
    return program


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=200)
    given = parser.parse_args(arguments)
    device, length, text = given.device, 64, "## What a call "
    model = Model(of_cuplug(), length=length).to(device)
    train(model, model.loss, batches(given.steps, 8, length, device))
    model.requires_grad_(False)
    given.folder.mkdir(exist_ok=True)
    package = write_package(model, given.folder / "model.pt2", length)
    loaded = torch._inductor.aoti_load_package(package)
    print(go_on(loaded, text.encode(), 80, length, device).decode(errors="replace"))
    program = build_program(given.folder)
    print(run(program, package, text, "80"), end="")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
# With nixpkgs: nix-build -E 'with import <nixpkgs> { }; python3Packages.callPackage packaging/nix/package.nix { }'
# CUDA code is compiled where cudaSupport is set.
{
  lib,
  config,
  buildPythonPackage,
  pythonOlder,
  setuptools,
  cython,
  numpy,
  ml-dtypes,
  click,
  rich,
  pyelftools,
  cudaPackages ? { },
  cudaSupport ? config.cudaSupport or false,
  cudaArchs ? "all",
}:

let
  header = builtins.readFile ../../include/cuplug/host.h;
  version = builtins.head (
    builtins.match ".*#define CUPLUG_VERSION \"([0-9.a-z]+)\".*" header
  );
in
buildPythonPackage {
  pname = "cuplug";
  inherit version;
  pyproject = true;
  disabled = pythonOlder "3.11";

  src = lib.cleanSource ../..;

  build-system = [
    setuptools
    cython
    numpy
  ];

  nativeBuildInputs = lib.optionals cudaSupport [ cudaPackages.cuda_nvcc ];
  buildInputs = lib.optionals cudaSupport [ cudaPackages.cuda_cudart ];

  dependencies = [
    numpy
    ml-dtypes
    click
    rich
    pyelftools
  ];

  env = if cudaSupport then { CUDA_ARCHS = cudaArchs; } else { NVCC = ""; };

  pythonImportsCheck = [
    "cuplug"
    "cuplug.ops"
  ];

  meta = {
    description = "CUDA operators as plugins";
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
    mainProgram = "cuplug";
  };
}

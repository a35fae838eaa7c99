# SPDX-License-Identifier: Apache-2.0
# In a repository of Spack packages this file lies in packages/py_cuplug/, or packages/py-cuplug/
# where its API is older than 2.0. From a checkout: `spack dev-build py-cuplug@0.1.0`.

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class PyCuplug(PythonPackage, CudaPackage):
    """CUDA operators as plugins: shared libraries that are found, checked and called from Python,
    Cython and C."""

    pypi = "cuplug/cuplug-0.1.0.tar.gz"

    license("Apache-2.0")

    version("develop")
    version("0.1.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("gmake", type="build")

    depends_on("python@3.11:", type=("build", "link", "run"))
    depends_on("py-setuptools@77.0.3:", type="build")
    depends_on("py-cython@3.1:", type="build")
    depends_on("py-numpy@2.0:", type="build")

    depends_on("py-numpy@1.26:", type=("build", "run"))
    depends_on("py-ml-dtypes@0.4:", type=("build", "run"))
    depends_on("py-click@8.1:", type=("build", "run"))
    depends_on("py-rich@13:", type=("build", "run"))
    depends_on("py-pyelftools@0.29:", type=("build", "run"))

    conflicts("cuda_arch=none", when="+cuda", msg="name the GPUs: cuda_arch=90")

    import_modules = ["cuplug", "cuplug.ops"]

    def setup_build_environment(self, env: EnvironmentModifications) -> None:
        env.set("NVCC", self.spec["cuda"].prefix.bin.nvcc if "+cuda" in self.spec else "")
        env.set("CUDA_ARCHS", " ".join(self.spec.variants["cuda_arch"].value))

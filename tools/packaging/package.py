# SPDX-License-Identifier: Apache-2.0
"""Spack recipe. In a repository of your own (`spack repo create my`), as packages/ranktune/package.py; then
`spack dev-build ranktune@main` in a clone, or `spack install ranktune@main` with `git` set to where the clone is."""

from spack.package import *


class Ranktune(MesonPackage):
    """Hyper-parameter optimisation and distributed training as one MPI program, for Slurm clusters."""

    license("Apache-2.0")

    version("main", branch="main")

    variant("cuda", default=False, description="Train the built-in models on NVIDIA GPUs")
    variant("nccl", default=True, when="+cuda", description="Trials of several GPUs")

    depends_on("cxx", type="build")
    depends_on("meson@0.63:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")
    depends_on("mpi@3.1:")
    depends_on("hdf5@1.10:")
    depends_on("openblas")
    depends_on("hwloc@2.0:")
    depends_on("boost@1.71:", type="build")
    depends_on("eigen@3.3:", type="build")
    depends_on("nlopt@2.4:")
    depends_on("pcre2@10.30:")
    depends_on("zlib@1.2:")
    depends_on("tomlplusplus@3.0:", type="build")
    depends_on("cli11@2.0:", type="build")
    depends_on("fmt@8.0:")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("cuda@13.0:", when="+cuda")
    depends_on("nccl@2.14:", when="+nccl")
    conflicts("%gcc@:10", msg="ranktune needs C++20 as of GCC 11")

    def meson_args(self):
        def feature(name, on):
            return f"-D{name}={'enabled' if on else 'disabled'}"

        spec = self.spec
        return ["-Dtests=disabled", feature("cuda", "+cuda" in spec), feature("nccl", "+nccl" in spec)]

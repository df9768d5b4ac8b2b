# UNTESTED: Spack was not at hand when this was written. Put this file into a repository of Spack's as packages/sonde/package.py,
# and say where the sources are: `spack dev-build sonde@main` in the tree needs no address.
from spack.package import *


class Sonde(Package):
    """Measures and emulates networks of distributed computing, from the wire to MPI, PVM and the NAS kernels."""

    version("main", branch="main")

    license("Apache-2.0 OR MIT")

    depends_on("rust@1.85:", type="build")
    depends_on("node-js@18.15:", type="build")
    depends_on("npm", type="build")
    depends_on("gmake", type="build")

    def install(self, spec, prefix):
        Executable("scripts/build.sh")()
        mkdirp(prefix.bin)
        install("target/static/sonde", prefix.bin)
        install("target/release/sonde-rank", prefix.bin)
        mkdirp(prefix.share.man.man1)
        Executable("target/static/sonde")("man", prefix.share.man.man1)

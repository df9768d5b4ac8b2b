//! What ssh, srun, PVM and the launchers of MPI print, and the report of a rank among it.

pub fn run(bytes: &[u8]) {
    sonde_fleet::fuzz::printed(bytes);
}

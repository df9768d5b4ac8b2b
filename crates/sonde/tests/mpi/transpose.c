/* Transposes within the rows of a grid: ROUNDS times MPI_Alltoall of BYTES to each of the COLUMNS ranks of a row. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int columns = atoi(argv[1]), bytes = atoi(argv[2]), rounds = atoi(argv[3]), me;
    MPI_Comm row;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_split(MPI_COMM_WORLD, me / columns, me, &row);
    char *out = calloc(columns, bytes), *in = calloc(columns, bytes);
    for (int round = 0; round < rounds; round++) MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, row);
    MPI_Finalize();
    return 0;
}

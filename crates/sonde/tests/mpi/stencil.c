/* A stencil in two dimensions: ROUNDS exchanges of BYTES with each neighbour in a grid of ROWS by COLUMNS. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int sides[2] = {atoi(argv[1]), atoi(argv[2])}, bytes = atoi(argv[3]), rounds = atoi(argv[4]);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, sides, (int[2]){0, 0}, 0, &grid);
    char *out = calloc(1, bytes), *in = calloc(4, bytes);
    for (int round = 0; round < rounds; round++) {
        MPI_Request r[8];
        int count = 0;
        for (int d = 0; d < 2; d++) {
            int near[2];
            MPI_Cart_shift(grid, d, 1, &near[0], &near[1]);
            for (int side = 0; side < 2; side++) {
                MPI_Irecv(in + (2 * d + side) * (size_t)bytes, bytes, MPI_CHAR, near[side], 0, grid, &r[count++]);
                MPI_Isend(out, bytes, MPI_CHAR, near[side], 0, grid, &r[count++]);
            }
        }
        MPI_Waitall(count, r, MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}

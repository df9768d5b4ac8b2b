/* A ping-pong of 8 bytes straight over MPI: the median of batches, half a round trip in nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { BATCHES = 400, ROUNDS = 500 };
static int order(const void *a, const void *b) { return *(double *)a < *(double *)b ? -1 : *(double *)a > *(double *)b; }
int main(int argc, char **argv)
{
    static double each[BATCHES];
    char data[8] = {0};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = MPI_Wtime();
        for (int i = 0; i < ROUNDS; i++)
            if (rank == 0) {
                MPI_Send(data, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
                MPI_Recv(data, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(data, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(data, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
            }
        each[batch] = (MPI_Wtime() - begin) * 1e9 / ROUNDS / 2;
    }
    qsort(each, BATCHES, sizeof *each, order);
    if (rank == 0)
        printf("\nns %.1f\n", each[BATCHES / 2]);
    MPI_Finalize();
}

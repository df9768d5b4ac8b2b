/* Half a round trip of two ranks with blocking calls, as osu_latency has it; or, with a third word, an allreduce of one number by
 * all ranks, from the last entry to the last end: all have one clock. Prints median and mean of the rounds, in ns.
 * Usage: pingpong BYTES ROUNDS [allreduce]. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WARM_UP = 1000 };

static int by_time(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int rank, bytes = argc > 1 ? atoi(argv[1]) : 8, rounds = argc > 2 ? atoi(argv[2]) : 10000, is_collective = argc > 3;
    double one = 1, sum = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *buffer = calloc(bytes, 1);
    double *begins = malloc(sizeof(double) * rounds), *ends = malloc(sizeof(double) * rounds);
    for (int i = -WARM_UP; i < rounds; i++) {
        double began = MPI_Wtime();
        if (is_collective) {
            MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        } else if (rank == 0) {
            MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
        if (i >= 0) {
            begins[i] = began;
            ends[i] = MPI_Wtime();
        }
        if (is_collective)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    if (is_collective) {
        MPI_Allreduce(MPI_IN_PLACE, begins, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, ends, rounds, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    }
    sum = 0;
    for (int i = 0; i < rounds; i++)
        sum += ends[i] = (ends[i] - begins[i]) * 1e9 / (is_collective ? 1 : 2);
    qsort(ends, rounds, sizeof(double), by_time);
    if (rank == 0)
        printf("%.1f %.1f\n", ends[rounds / 2], sum / rounds);
    MPI_Finalize();
    return 0;
}

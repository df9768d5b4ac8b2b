/* Half round trips between two MPI ranks: the median of COUNT, of SIZE bytes, in nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int by_time(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
int main(int argc, char **argv) {
    int rank, size = argc > 1 ? atoi(argv[1]) : 8, count = argc > 2 ? atoi(argv[2]) : 10000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *buffer = calloc(1, size);
    double *times = malloc(sizeof(double) * count);
    for (int i = -1000; i < count; i++) {
        double begin = MPI_Wtime();
        if (rank == 0) {
            MPI_Send(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        if (i >= 0) times[i] = (MPI_Wtime() - begin) / 2;
    }
    qsort(times, count, sizeof(double), by_time);
    if (rank == 0) printf("%.1f\n", times[count / 2] * 1e9);
    MPI_Finalize();
    return 0;
}

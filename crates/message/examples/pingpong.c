/* Ping-pong of two ranks, as pingpong.rs: half the median round trip of 8 B in ns, then MB/s of 1 MiB and 16 MiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int order(const void *a, const void *b) { double d = *(double *)a - *(double *)b; return (d > 0) - (d < 0); }
int main(int argc, char **argv) {
    static double times[20000];
    const int sizes[3][3] = {{8, 2000, 20000}, {1 << 20, 20, 100}, {16 << 20, 3, 12}};
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int s = 0; s < 3; s++) {
        int bytes = sizes[s][0], before = sizes[s][1], counted = sizes[s][2], peer = 1 - rank;
        char *ping = calloc(bytes, 1), *pong = calloc(bytes, 1);
        for (int i = 0; i < bytes; i++) ping[i] = 1;
        for (int turn = 0; turn < before + counted; turn++) {
            double begin = now();
            if (rank == 0) MPI_Send(ping, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            MPI_Recv(pong, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (rank == 1) MPI_Send(ping, bytes, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            if (turn >= before) times[turn - before] = now() - begin;
        }
        qsort(times, counted, sizeof(double), order);
        double half = times[counted / 2] / 2;
        if (rank == 0) printf(s ? " %.0f" : "%.0f", s ? bytes / half * 1e3 : half);
        free(ping), free(pong);
    }
    if (rank == 0) printf("\n");
    MPI_Finalize();
}

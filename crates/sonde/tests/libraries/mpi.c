/* Says where each rank is, and can fail or wait. Usage: mpi [fail RANK CODE | wait]. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, sum, twice[2], before[2] = {0, 0};
    char host[64] = "";
    cpu_set_t cpus;
    const char *told = getenv("SONDE_HOST");

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    gethostname(host, sizeof host - 1);
    sched_getaffinity(0, sizeof cpus, &cpus);
    if (argc > 1 && !strcmp(argv[1], "wait")) {
        MPI_Barrier(MPI_COMM_WORLD);
        printf("waiting\n");
        fflush(stdout);
        /* One rank waits in the library, the others outside of it. */
        if (rank == 0)
            MPI_Recv(&sum, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (;;)
            pause();
    }
    /* A message goes round and counts the hosts' messages; one more does not fit into an eager one. */
    twice[0] = rank;
    MPI_Sendrecv(twice, 1, MPI_INT, (rank + 1) % size, 0, before, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    static char much[1 << 18], came[1 << 18];
    memset(much, rank, sizeof much);
    MPI_Sendrecv(much, sizeof much, MPI_CHAR, (rank + 1) % size, 0, came, sizeof came, MPI_CHAR,
                 (rank + size - 1) % size, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int right = before[0] == (rank + size - 1) % size;
    for (size_t i = 0; i < sizeof came; i++)
        right &= came[i] == (rank + size - 1) % size;
    MPI_Allreduce(&right, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d on %s, told %s, cpus %d, right %d\n", rank, size, host, told ? told : "nothing",
           CPU_COUNT(&cpus), sum);
    fprintf(stderr, "error of %d\n", rank);
    fflush(stdout);
    /* MPICH 4.0 never ends where its connections are still being made at the end (github.com/pmodels/mpich/pull/6596). */
    static int from[256], to[256];
    for (int i = 0; i < 20; i++) {
        MPI_Alltoall(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD);
        usleep(10000);
    }
    MPI_Finalize();
    return argc > 3 && !strcmp(argv[1], "fail") && rank == atoi(argv[2]) ? atoi(argv[3]) : 0;
}

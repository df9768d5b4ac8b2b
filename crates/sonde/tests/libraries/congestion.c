/* A congestion benchmark of GPCNeT's kind: the ranks are split at random, one half is measured alone and then beside the other
 * half, which loads the network. Prints the latencies of both, for each pattern of load.
 *
 * Source: Chunduri et al., "GPCNeT: Designing a Benchmark Suite for Inducing and Measuring Contention in HPC Networks", SC 2019:
 *         random ring latency and allreduce, isolated and congested; congestors all-to-all, incast by two-sided and by one-sided
 *         operations both ways. Deviations: one pattern at a time, halves (there 80 % of the nodes congest), ranks instead of
 *         nodes, and allreduce as a congestor too.
 * Usage:  congestion [SEED]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 32768, ROUNDS = 40, STOP = 9 };

static const char *const PATTERNS[] = {"alltoall", "incast", "get-incast", "put-incast", "allreduce"};
enum { PATTERN_COUNT = sizeof PATTERNS / sizeof *PATTERNS };

static MPI_Comm half;
static int rank, size;
static char *mine, *theirs, *base;
static MPI_Win window;

/* One round of a congestor: the last of the half is what the others fall upon. */
static void congest(int pattern)
{
    int target = size - 1, other;

    switch (pattern) {
    case 0:
        MPI_Alltoall(mine, PIECE / 2, MPI_CHAR, theirs, PIECE / 2, MPI_CHAR, half);
        break;
    case 1:
        if (rank != target)
            MPI_Send(mine, PIECE, MPI_CHAR, target, 0, half);
        else
            for (other = 0; other < target; other++)
                MPI_Recv(theirs, PIECE, MPI_CHAR, other, 0, half, MPI_STATUS_IGNORE);
        break;
    case 2:
    case 3:
        MPI_Win_fence(0, window);
        if (rank != target && pattern == 2)
            MPI_Get(theirs, PIECE, MPI_CHAR, target, 0, PIECE, MPI_CHAR, window);
        else if (rank != target)
            MPI_Put(mine, PIECE, MPI_CHAR, target, (MPI_Aint)rank * PIECE, PIECE, MPI_CHAR, window);
        MPI_Win_fence(0, window);
        break;
    default:
        MPI_Allreduce(mine, theirs, PIECE / sizeof(int), MPI_INT, MPI_MAX, half);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the mean and the 99th percentile of all measured ranks' times. */
static void print(const char *state, const char *what, const double *took)
{
    double *all = malloc(sizeof *all * ROUNDS * size), sum = 0;
    int count = ROUNDS * size, i;

    MPI_Gather(took, ROUNDS, MPI_DOUBLE, all, ROUNDS, MPI_DOUBLE, 0, half);
    if (rank == 0) {
        qsort(all, count, sizeof *all, compare);
        for (i = 0; i < count; i++)
            sum += all[i];
        printf("%s %s mean %.1f us, 99%% %.1f us\n", state, what, 1e6 * sum / count, 1e6 * all[count * 99 / 100]);
        fflush(stdout);
    }
    free(all);
}

/* A ring in the half's order, which is random, and an allreduce, both of 8 bytes. */
static void measure(const char *state)
{
    double ring[ROUNDS], reduce[ROUNDS], from = 0, to = 0, began;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        began = MPI_Wtime();
        MPI_Sendrecv(&to, 1, MPI_DOUBLE, (rank + 1) % size, 1, &from, 1, MPI_DOUBLE, (rank + size - 1) % size, 1, half, MPI_STATUS_IGNORE);
        ring[i] = MPI_Wtime() - began;
        began = MPI_Wtime();
        MPI_Allreduce(&to, &from, 1, MPI_DOUBLE, MPI_SUM, half);
        reduce[i] = MPI_Wtime() - began;
    }
    print(state, "ring", ring);
    print(state, "allreduce", reduce);
}

int main(int argc, char **argv)
{
    int world_rank, world_size, i, *order, place = 0, is_measured, is_over, pattern, rounds, stop;
    char state[64];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    /* All shuffle alike. */
    srand(argc > 1 ? atoi(argv[1]) : 1);
    order = malloc(sizeof *order * world_size);
    for (i = 0; i < world_size; i++)
        order[i] = i;
    for (i = world_size - 1; i > 0; i--) {
        int with = rand() % (i + 1), kept = order[i];
        order[i] = order[with];
        order[with] = kept;
    }
    while (order[place] != world_rank)
        place++;
    is_measured = place < world_size / 2;
    MPI_Comm_split(MPI_COMM_WORLD, is_measured, place, &half);
    MPI_Comm_rank(half, &rank);
    MPI_Comm_size(half, &size);
    mine = calloc(size, PIECE);
    theirs = calloc(size, PIECE);
    MPI_Win_allocate((MPI_Aint)size * PIECE, 1, MPI_INFO_NULL, half, &base, &window);

    if (is_measured)
        measure("isolated");
    MPI_Barrier(MPI_COMM_WORLD);
    for (pattern = 0; pattern < PATTERN_COUNT; pattern++) {
        rounds = stop = is_over = 0;
        if (is_measured) {
            /* The load is there before it is measured: the first congestor says so. */
            if (rank == 0)
                MPI_Recv(&stop, 1, MPI_INT, order[world_size / 2], STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Barrier(half);
            snprintf(state, sizeof state, "congested %s", PATTERNS[pattern]);
            measure(state);
            if (rank == 0)
                MPI_Send(&stop, 1, MPI_INT, order[world_size / 2], STOP, MPI_COMM_WORLD);
        }
        while (!is_measured && !is_over) {
            for (i = 0; i < 4; i++)
                congest(pattern);
            rounds += 4;
            if (rank == 0 && rounds == 4)
                MPI_Send(&rounds, 1, MPI_INT, order[0], STOP, MPI_COMM_WORLD);
            if (rank == 0)
                MPI_Iprobe(order[0], STOP, MPI_COMM_WORLD, &is_over, MPI_STATUS_IGNORE);
            MPI_Bcast(&is_over, 1, MPI_INT, 0, half);
        }
        if (!is_measured && rank == 0) {
            MPI_Recv(&stop, 1, MPI_INT, order[0], STOP, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            printf("load %s of %d ranks, %d rounds\n", PATTERNS[pattern], size, rounds);
            fflush(stdout);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&window);
    if (world_rank == 0)
        printf("to its end\n");
    fflush(stdout);
    MPI_Finalize();
    return 0;
}

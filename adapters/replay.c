/* A program that talks as a communication matrix says: what `sonde place --verify` runs where no program is given.
 *
 * Build:   mpicc.openmpi -O2 -o replay replay.c
 * Use:     mpirun -np N replay PLAN RESULT. PLAN: ranks, rounds, then one line "from to bytes" for each pair, of one
 *          round. In a round each rank sends to and receives from its partners at once (MPI_Isend, MPI_Irecv,
 *          MPI_Waitall); rounds are not synchronised otherwise. One round comes before the time is taken.
 *          RESULT: {"time_ns": N}, the longest time of any rank for all rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { int from, to; long bytes; } Pair;

static void stop(const char *what, const char *name) {
    fprintf(stderr, "replay: %s %s\n", what, name);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int ranks, me, wanted = 0, rounds = 0, count = 0, room = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    if (argc != 3) stop("use: replay", "PLAN RESULT");
    FILE *plan = fopen(argv[1], "r");
    if (!plan || fscanf(plan, "%d %d", &wanted, &rounds) != 2 || wanted != ranks) stop("no plan for these ranks:", argv[1]);
    Pair *pairs = NULL, one;
    long most = 1;
    while (fscanf(plan, "%d %d %ld", &one.from, &one.to, &one.bytes) == 3) {
        if (one.from != me && one.to != me) continue;
        if (count == room) pairs = realloc(pairs, sizeof *pairs * (size_t)(room = 2 * room + 16));
        pairs[count++] = one;
        most = one.bytes > most ? one.bytes : most;
    }
    fclose(plan);
    char *out = calloc(1, (size_t)most);
    MPI_Request *requests = malloc(sizeof *requests * (size_t)(count + 1));
    char **in = malloc(sizeof *in * (size_t)(count + 1));
    for (int i = 0; i < count; i++) in[i] = pairs[i].to == me ? malloc((size_t)pairs[i].bytes + 1) : NULL;
    double begun = 0;
    for (int round = 0; round <= rounds; round++) {
        if (round == 1) {
            MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
        }
        for (int i = 0; i < count; i++)
            if (in[i]) MPI_Irecv(in[i], (int)pairs[i].bytes, MPI_CHAR, pairs[i].from, 1, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < count; i++)
            if (!in[i]) MPI_Isend(out, (int)pairs[i].bytes, MPI_CHAR, pairs[i].to, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    double took = MPI_Wtime() - begun, longest = 0;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (!me) {
        FILE *result = fopen(argv[2], "w");
        if (!result || fprintf(result, "{\"time_ns\": %.0f}\n", longest * 1e9) < 0 || fclose(result)) stop("cannot write", argv[2]);
    }
    MPI_Finalize();
    return 0;
}

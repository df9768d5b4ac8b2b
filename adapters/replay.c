/* A program that talks as a communication matrix says: what `sonde place --verify` runs where no program is given.
 *
 * Build:   mpicc.openmpi -O2 -o replay replay.c
 * Use:     mpirun -np N replay PLAN RESULT. PLAN: ranks, rounds, then for each message of a round one line "bytes hops
 *          rank ... rank": from the first rank to the last by those between, which take it whole and send it on. In a round
 *          each rank receives, sends and forwards at once, as messages come; rounds are not synchronised otherwise. One
 *          round comes before the time is taken.
 *          RESULT: {"time_ns": N}, the longest time of any rank for all rounds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct { long bytes; int hops, at, tag, *ranks; char *data; } Route; /* at: this rank's place on it */

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
    Route *routes = NULL, one = {0};
    long most = 1;
    for (; fscanf(plan, "%ld %d", &one.bytes, &one.hops) == 2; one.tag++) {
        one.ranks = malloc(sizeof(int) * (size_t)(one.hops + 1));
        one.at = -1;
        for (int i = 0; i <= one.hops; i++) {
            if (fscanf(plan, "%d", &one.ranks[i]) != 1) stop("a line is not whole in", argv[1]);
            if (one.ranks[i] == me) one.at = i;
        }
        if (one.at < 0) {
            free(one.ranks);
            continue;
        }
        one.data = one.at ? malloc((size_t)one.bytes + 1) : NULL;
        if (count == room) routes = realloc(routes, sizeof *routes * (size_t)(room = 2 * room + 16));
        routes[count++] = one;
        most = one.bytes > most ? one.bytes : most;
    }
    fclose(plan);
    char *out = calloc(1, (size_t)most);
    MPI_Request *in = malloc(sizeof *in * (size_t)(count + 1)), *sent = malloc(sizeof *sent * (size_t)(count + 1));
    double begun = 0;
    for (int round = 0; round <= rounds; round++) {
        int sending = 0, done;
        if (round == 1) {
            MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
        }
        for (int i = 0; i < count; i++) {
            Route *r = &routes[i];
            in[i] = MPI_REQUEST_NULL;
            if (r->at) MPI_Irecv(r->data, (int)r->bytes, MPI_CHAR, r->ranks[r->at - 1], r->tag, MPI_COMM_WORLD, &in[i]);
        }
        for (int i = 0; i < count; i++) {
            Route *r = &routes[i];
            if (!r->at) MPI_Isend(out, (int)r->bytes, MPI_CHAR, r->ranks[1], r->tag, MPI_COMM_WORLD, &sent[sending++]);
        }
        while (MPI_Waitany(count, in, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != MPI_UNDEFINED) {
            Route *r = &routes[done];
            if (r->at < r->hops) MPI_Isend(r->data, (int)r->bytes, MPI_CHAR, r->ranks[r->at + 1], r->tag, MPI_COMM_WORLD, &sent[sending++]);
        }
        MPI_Waitall(sending, sent, MPI_STATUSES_IGNORE);
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

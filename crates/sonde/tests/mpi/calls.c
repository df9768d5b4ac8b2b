/* Calls whose counts are known: for 4 ranks. See `calls_are_counted_as_stated` in lab_place.rs. */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int me, given;
    if (argc > 1) MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &given);
    else MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    static char b[4096], in[4096];
    static int counts[4] = {1, 2, 3, 4}, at[4] = {0, 16, 32, 48};
    MPI_Request r[6];
    MPI_Comm world = MPI_COMM_WORLD;
    /* From 0 to 1: seven messages of 100 bytes, and two starts of a persistent one; to nobody. */
    if (me == 0) {
        char *room = malloc(4096);
        MPI_Buffer_attach(room, 4096);
        MPI_Send(b, 100, MPI_CHAR, 1, 1, world);
        MPI_Ssend(b, 100, MPI_CHAR, 1, 1, world);
        MPI_Bsend(b, 100, MPI_CHAR, 1, 1, world);
        MPI_Isend(b, 50, MPI_SHORT, 1, 1, world, &r[0]);
        MPI_Issend(b, 100, MPI_CHAR, 1, 1, world, &r[1]);
        MPI_Ibsend(b, 100, MPI_CHAR, 1, 1, world, &r[2]);
        MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
        MPI_Send(b, 100, MPI_CHAR, MPI_PROC_NULL, 1, world);
        MPI_Send_init(b, 100, MPI_CHAR, 1, 1, world, &r[3]);
        MPI_Start(&r[3]);
        MPI_Wait(&r[3], MPI_STATUS_IGNORE);
        MPI_Startall(1, &r[3]);
        MPI_Wait(&r[3], MPI_STATUS_IGNORE);
        MPI_Request_free(&r[3]);
        MPI_Buffer_detach(&room, &given);
    } else if (me == 1) {
        for (int i = 0; i < 8; i++) MPI_Recv(in, 4096, MPI_CHAR, 0, 1, world, MPI_STATUS_IGNORE);
    }
    /* Round: 10 bytes to the next, twice; the second time by ranks of a communicator in reverse order. */
    MPI_Sendrecv(b, 10, MPI_CHAR, (me + 1) % 4, 2, in, 10, MPI_CHAR, (me + 3) % 4, 2, world, MPI_STATUS_IGNORE);
    MPI_Comm reverse;
    MPI_Comm_split(world, 0, 3 - me, &reverse);
    int own = 3 - me;
    MPI_Sendrecv_replace(b, 10, MPI_CHAR, (own + 3) % 4, 2, (own + 1) % 4, 2, reverse, MPI_STATUS_IGNORE);
    /* Collectives of all. */
    MPI_Bcast(b, 1000, MPI_CHAR, 2, world);
    MPI_Reduce(b, in, 10, MPI_INT, MPI_SUM, 3, world);
    MPI_Allreduce(b, in, 20, MPI_INT, MPI_SUM, world);
    MPI_Gather(b, 5, MPI_CHAR, in, 5, MPI_CHAR, 0, world);
    MPI_Scatterv(b, counts, at, MPI_CHAR, in, counts[me], MPI_CHAR, 0, world);
    MPI_Allgather(b, 7, MPI_CHAR, in, 7, MPI_CHAR, world);
    MPI_Alltoall(b, 3, MPI_CHAR, in, 3, MPI_CHAR, world);
    MPI_Alltoallv(b, counts, at, MPI_CHAR, in, (int[4]){counts[me], counts[me], counts[me], counts[me]}, at, MPI_CHAR, world);
    MPI_Scan(b, in, 2, MPI_INT, MPI_SUM, world);
    MPI_Iallreduce(b, in, 20, MPI_INT, MPI_SUM, world, &r[4]);
    MPI_Wait(&r[4], MPI_STATUS_IGNORE);
    MPI_Barrier(world);
    /* Of a part: the even ranks. */
    MPI_Comm part;
    MPI_Comm_split(world, me % 2, me, &part);
    if (me % 2 == 0) MPI_Allgather(b, 11, MPI_CHAR, in, 11, MPI_CHAR, part);
    MPI_Comm_free(&part);
    /* Neighbours in a row. */
    MPI_Comm row;
    MPI_Cart_create(world, 1, (int[1]){4}, (int[1]){0}, 0, &row);
    MPI_Neighbor_alltoall(b, 13, MPI_CHAR, in, 13, MPI_CHAR, row);
    MPI_Finalize();
    return 0;
}

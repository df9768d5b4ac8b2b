/* One-sided operations: put and fence, accumulate and get under a lock. Each rank says what it found. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    int rank, size;
    long *base, own, one = 1, sum = 0;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Win_allocate(2 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    base[0] = base[1] = 0;
    MPI_Win_fence(0, window);
    own = rank + 1;
    MPI_Put(&own, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, window);
    MPI_Win_fence(0, window);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_unlock(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    MPI_Get(&sum, 1, MPI_LONG, 0, 1, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
    printf("rank %d got %ld of its neighbour, sum %ld\n", rank, base[0], sum);
    fflush(stdout);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}

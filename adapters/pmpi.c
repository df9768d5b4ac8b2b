/* Who sends how much to whom in an unmodified MPI program: a library for LD_PRELOAD that counts at MPI's profiling
 * interface and writes the communication matrix at MPI_Finalize.
 *
 * Build:   mpicc.openmpi -O2 -shared -fPIC -o pmpi-openmpi.so pmpi.c -lpthread
 *          mpicc.mpich   -O2 -shared -fPIC -o pmpi-mpich.so   pmpi.c -lpthread
 * Use:     SONDE_MATRIX=FILE LD_PRELOAD=.../pmpi-openmpi.so in the environment of each rank; without SONDE_MATRIX it counts
 *          nothing. Rank 0 of MPI_COMM_WORLD writes FILE: {"schema": "sonde-matrix/1", ...}, with `time_ns`, the longest
 *          time of any rank from the end of MPI_Init to the beginning of MPI_Finalize.
 * Counted: sends of each kind, started persistent sends, and collectives, at the rank that sends, in ranks of
 *          MPI_COMM_WORLD. A collective counts as what has to get from whom to whom, whatever the library does:
 *            bcast, scatter(v)        from the root to each, its part        reduce, gather(v)   from each to the root
 *            allgather(v), alltoall(v,w), neighbour ones                     from each to each that gets it, its part
 *            allreduce                to each other twice n/p bytes (reduced in parts, parts gathered)
 *            reduce_scatter(_block)   to each other its part                 scan, exscan        n bytes to the next rank
 *            barrier                  no bytes, a message to rank + 1, 2, 4, ... (dissemination)
 *          A message to MPI_PROC_NULL or to oneself counts nothing. Not counted: one-sided communication, files, ranks
 *          outside MPI_COMM_WORLD, and Fortran programs of Open MPI 4, whose bindings go past this interface.
 * Source:  MPI 3.1, chapter 14 (profiling interface). */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef unsigned long long u64;
typedef struct { int ranks, me, inter; int *world; } Group; /* of a communicator: whom one sends to, in world ranks */

static int ranks, me, group_key = MPI_KEYVAL_INVALID;
static u64 *sent_bytes, *sent_messages, begun;
static const char *file;

static u64 now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (u64)t.tv_sec * 1000000000ULL + (u64)t.tv_nsec;
}

static int forget(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)extra;
    free(((Group *)value)->world);
    free(value);
    return MPI_SUCCESS;
}

/* The ranks of a communicator, kept with it. */
static const Group *group_of(MPI_Comm comm) {
    Group *group;
    int found = 0;
    PMPI_Comm_get_attr(comm, group_key, &group, &found);
    if (found) return group;
    group = calloc(1, sizeof *group);
    MPI_Group others, all;
    PMPI_Comm_test_inter(comm, &group->inter);
    if (group->inter) PMPI_Comm_remote_group(comm, &others);
    else PMPI_Comm_group(comm, &others);
    PMPI_Comm_group(MPI_COMM_WORLD, &all);
    PMPI_Group_size(others, &group->ranks);
    PMPI_Comm_rank(comm, &group->me);
    int *own = malloc(sizeof(int) * (size_t)(group->ranks + 1));
    group->world = malloc(sizeof(int) * (size_t)(group->ranks + 1));
    for (int i = 0; i < group->ranks; i++) own[i] = i;
    PMPI_Group_translate_ranks(others, group->ranks, own, all, group->world);
    free(own);
    PMPI_Group_free(&others);
    PMPI_Group_free(&all);
    PMPI_Comm_set_attr(comm, group_key, group);
    return group;
}

/* Counts to a rank of a group. */
static void count(const Group *group, int to, u64 bytes, u64 messages) {
    if (to < 0 || to >= group->ranks) return; /* MPI_PROC_NULL */
    int world = group->world[to];
    if (world < 0 || world >= ranks || world == me) return;
    __atomic_fetch_add(&sent_bytes[world], bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&sent_messages[world], messages, __ATOMIC_RELAXED);
}

static u64 size_of(MPI_Datatype type, int n) {
    int size = 0;
    if (n > 0 && type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &size);
    return (u64)size * (u64)(n > 0 ? n : 0);
}

static void point(MPI_Comm comm, int to, MPI_Datatype type, int n) {
    if (file) count(group_of(comm), to, size_of(type, n), 1);
}

static void each(MPI_Comm comm, u64 bytes, u64 messages) {
    const Group *group = group_of(comm);
    for (int to = 0; to < group->ranks; to++) count(group, to, bytes, messages);
}

/* From one to all, or from all to one. Of an inter-communicator the root's side names it by MPI_ROOT. */
static void from_root(MPI_Comm comm, int root, u64 bytes) {
    const Group *group = group_of(comm);
    if (root == MPI_ROOT || (!group->inter && root == group->me)) each(comm, bytes, 1);
}
static void to_root(MPI_Comm comm, int root, u64 bytes) {
    const Group *group = group_of(comm);
    if (root >= 0) count(group, root, bytes, 1);
}
static int is_root(MPI_Comm comm, int root) {
    const Group *group = group_of(comm);
    return root == MPI_ROOT || (!group->inter && root == group->me);
}
static void parts(MPI_Comm comm, const int *n, MPI_Datatype type) {
    const Group *group = group_of(comm);
    for (int to = 0; to < group->ranks; to++) count(group, to, size_of(type, n[to]), 1);
}
static void allreduce(MPI_Comm comm, u64 bytes) {
    const Group *group = group_of(comm);
    if (group->ranks > 0) each(comm, 2 * bytes / (u64)group->ranks, 2);
}
static void next(MPI_Comm comm, u64 bytes) {
    const Group *group = group_of(comm);
    count(group, group->me + 1, bytes, 1);
}
static void barrier(MPI_Comm comm) {
    const Group *group = group_of(comm);
    for (int step = 1; step < group->ranks; step *= 2) count(group, (group->me + step) % group->ranks, 0, 1);
}
/* Neighbours of a cartesian or graph topology: what goes to each. */
static void neighbours(MPI_Comm comm, const int *n, int same, MPI_Datatype type) {
    const Group *group = group_of(comm);
    int kind, degree = 0;
    PMPI_Topo_test(comm, &kind);
    if (kind == MPI_CART) {
        PMPI_Cartdim_get(comm, &degree);
        for (int d = 0; d < degree; d++) {
            int down, up;
            PMPI_Cart_shift(comm, d, 1, &down, &up);
            count(group, down, size_of(type, n ? n[2 * d] : same), 1);
            count(group, up, size_of(type, n ? n[2 * d + 1] : same), 1);
        }
    } else if (kind == MPI_GRAPH || kind == MPI_DIST_GRAPH) {
        int in = 0, weighted = 0;
        if (kind == MPI_GRAPH) PMPI_Graph_neighbors_count(comm, group->me, &degree);
        else PMPI_Dist_graph_neighbors_count(comm, &in, &degree, &weighted);
        int *to = malloc(sizeof(int) * (size_t)(degree + in + 1) * 4), *rest = to + degree;
        if (kind == MPI_GRAPH) PMPI_Graph_neighbors(comm, group->me, degree, to);
        else PMPI_Dist_graph_neighbors(comm, in, rest, rest + in, degree, to, rest + 2 * in);
        for (int i = 0; i < degree; i++) count(group, to[i], size_of(type, n ? n[i] : same), 1);
        free(to);
    }
}

/* Persistent sends: by their handle, which stays theirs until it is freed. */
typedef struct Sending { MPI_Request request; MPI_Comm comm; int to; u64 bytes; struct Sending *next; } Sending;
static Sending *sendings;
static pthread_mutex_t sendings_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(MPI_Request request, MPI_Comm comm, int to, MPI_Datatype type, int n) {
    if (!file) return;
    Sending *one = malloc(sizeof *one);
    pthread_mutex_lock(&sendings_lock);
    *one = (Sending){request, comm, to, size_of(type, n), sendings};
    sendings = one;
    pthread_mutex_unlock(&sendings_lock);
}
static void started(MPI_Request request) {
    pthread_mutex_lock(&sendings_lock);
    Sending *one = sendings;
    while (one && one->request != request) one = one->next;
    if (one) count(group_of(one->comm), one->to, one->bytes, 1);
    pthread_mutex_unlock(&sendings_lock);
}
static void drop(MPI_Request request) {
    pthread_mutex_lock(&sendings_lock);
    Sending **one = &sendings;
    while (*one && (*one)->request != request) one = &(*one)->next;
    if (*one) {
        Sending *gone = *one;
        *one = gone->next;
        free(gone);
    }
    pthread_mutex_unlock(&sendings_lock);
}

/* From the start to the end. */
static void begin(void) {
    if (file || !getenv("SONDE_MATRIX") || !*getenv("SONDE_MATRIX")) return;
    PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    sent_bytes = calloc((size_t)ranks, sizeof(u64));
    sent_messages = calloc((size_t)ranks, sizeof(u64));
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &group_key, NULL);
    file = getenv("SONDE_MATRIX");
    begun = now();
}
static void table(FILE *out, const char *name, const u64 *cells) {
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < (size_t)ranks * (size_t)ranks; i++) {
        size_t column = i % (size_t)ranks;
        fprintf(out, "%s%llu%s", column ? "," : i ? ",[" : "[", cells[i], column + 1 == (size_t)ranks ? "]" : "");
    }
    fputc(']', out);
}
static void end(void) {
    if (!file) return;
    u64 took = now() - begun, longest = 0;
    size_t all = (size_t)ranks * (size_t)ranks;
    u64 *bytes = me ? NULL : malloc(all * sizeof(u64)), *messages = me ? NULL : malloc(all * sizeof(u64));
    PMPI_Gather(sent_bytes, ranks, MPI_UNSIGNED_LONG_LONG, bytes, ranks, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    PMPI_Gather(sent_messages, ranks, MPI_UNSIGNED_LONG_LONG, messages, ranks, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
    PMPI_Reduce(&took, &longest, 1, MPI_UNSIGNED_LONG_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me) return;
    FILE *out = fopen(file, "w");
    if (!out) {
        fprintf(stderr, "sonde: cannot write the matrix %s: ", file);
        perror("");
        return;
    }
    fprintf(out, "{\"schema\":\"sonde-matrix/1\",\"ranks\":%d,\"time_ns\":%llu", ranks, longest);
    table(out, "bytes", bytes);
    table(out, "messages", messages);
    if (fputs("}\n", out) < 0 || fclose(out)) fprintf(stderr, "sonde: the matrix %s is not whole\n", file);
}

int MPI_Init(int *argc, char ***argv) {
    int code = PMPI_Init(argc, argv);
    begin();
    return code;
}
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given) {
    int code = PMPI_Init_thread(argc, argv, wanted, given);
    begin();
    return code;
}
int MPI_Finalize(void) {
    end();
    file = NULL;
    return PMPI_Finalize();
}

/* WRAP(name, its parameters, what is counted, its arguments): counts, then calls the library. */
#define WRAP(name, parameters, counted, ...) \
    int MPI_##name parameters { if (file) { counted; } return PMPI_##name(__VA_ARGS__); }
#define SEND_PARAMETERS const void *b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c
#define SEND(name) WRAP(name, (SEND_PARAMETERS), point(c, to, t, n), b, n, t, to, tag, c)
SEND(Send) SEND(Ssend) SEND(Bsend) SEND(Rsend)
#define ISEND(name) WRAP(name, (SEND_PARAMETERS, MPI_Request *r), point(c, to, t, n), b, n, t, to, tag, c, r)
ISEND(Isend) ISEND(Issend) ISEND(Ibsend) ISEND(Irsend)
#define SEND_INIT(name) \
    int MPI_##name(SEND_PARAMETERS, MPI_Request *r) { \
        int code = PMPI_##name(b, n, t, to, tag, c, r); \
        keep(*r, c, to, t, n); \
        return code; \
    }
SEND_INIT(Send_init) SEND_INIT(Ssend_init) SEND_INIT(Bsend_init) SEND_INIT(Rsend_init)
WRAP(Start, (MPI_Request *r), started(*r), r)
WRAP(Startall, (int n, MPI_Request r[]), for (int i = 0; i < n; i++) started(r[i]), n, r)
WRAP(Request_free, (MPI_Request *r), drop(*r), r)
WRAP(Sendrecv, (const void *b, int n, MPI_Datatype t, int to, int tag, void *rb, int rn, MPI_Datatype rt, int from, int rtag, MPI_Comm c, MPI_Status *s),
     point(c, to, t, n), b, n, t, to, tag, rb, rn, rt, from, rtag, c, s)
WRAP(Sendrecv_replace, (void *b, int n, MPI_Datatype t, int to, int tag, int from, int rtag, MPI_Comm c, MPI_Status *s),
     point(c, to, t, n), b, n, t, to, tag, from, rtag, c, s)

/* A collective and its non-blocking form, which has a request at its end. */
#define BOTH(name, iname, parameters, counted, ...) \
    WRAP(name, (UNPACK parameters), counted, __VA_ARGS__) \
    WRAP(iname, (UNPACK parameters, MPI_Request *r), counted, __VA_ARGS__, r)
#define UNPACK(...) __VA_ARGS__
#define FROM_TO const void *b, int n, MPI_Datatype t, void *rb
BOTH(Barrier, Ibarrier, (MPI_Comm c), barrier(c), c)
BOTH(Bcast, Ibcast, (void *b, int n, MPI_Datatype t, int root, MPI_Comm c), from_root(c, root, size_of(t, n)), b, n, t, root, c)
BOTH(Reduce, Ireduce, (const void *b, void *rb, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm c),
     to_root(c, root, size_of(t, n)), b, rb, n, t, op, root, c)
BOTH(Allreduce, Iallreduce, (const void *b, void *rb, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     allreduce(c, size_of(t, n)), b, rb, n, t, op, c)
BOTH(Gather, Igather, (FROM_TO, int rn, MPI_Datatype rt, int root, MPI_Comm c),
     to_root(c, root, size_of(t, n)), b, n, t, rb, rn, rt, root, c)
BOTH(Gatherv, Igatherv, (FROM_TO, const int rn[], const int at[], MPI_Datatype rt, int root, MPI_Comm c),
     to_root(c, root, size_of(t, n)), b, n, t, rb, rn, at, rt, root, c)
BOTH(Scatter, Iscatter, (FROM_TO, int rn, MPI_Datatype rt, int root, MPI_Comm c),
     from_root(c, root, size_of(t, n)), b, n, t, rb, rn, rt, root, c)
BOTH(Scatterv, Iscatterv, (const void *b, const int n[], const int at[], MPI_Datatype t, void *rb, int rn, MPI_Datatype rt, int root, MPI_Comm c),
     if (is_root(c, root)) parts(c, n, t), b, n, at, t, rb, rn, rt, root, c)
BOTH(Allgather, Iallgather, (FROM_TO, int rn, MPI_Datatype rt, MPI_Comm c),
     each(c, b == MPI_IN_PLACE ? size_of(rt, rn) : size_of(t, n), 1), b, n, t, rb, rn, rt, c)
BOTH(Allgatherv, Iallgatherv, (FROM_TO, const int rn[], const int at[], MPI_Datatype rt, MPI_Comm c),
     each(c, b == MPI_IN_PLACE ? size_of(rt, rn[group_of(c)->me]) : size_of(t, n), 1), b, n, t, rb, rn, at, rt, c)
BOTH(Alltoall, Ialltoall, (FROM_TO, int rn, MPI_Datatype rt, MPI_Comm c),
     each(c, b == MPI_IN_PLACE ? size_of(rt, rn) : size_of(t, n), 1), b, n, t, rb, rn, rt, c)
BOTH(Alltoallv, Ialltoallv, (const void *b, const int n[], const int at[], MPI_Datatype t, void *rb, const int rn[], const int rat[], MPI_Datatype rt, MPI_Comm c),
     if (b == MPI_IN_PLACE) parts(c, rn, rt); else parts(c, n, t), b, n, at, t, rb, rn, rat, rt, c)
BOTH(Alltoallw, Ialltoallw, (const void *b, const int n[], const int at[], const MPI_Datatype t[], void *rb, const int rn[], const int rat[], const MPI_Datatype rt[], MPI_Comm c),
     const Group *g = group_of(c); for (int to = 0; to < g->ranks; to++) count(g, to, b == MPI_IN_PLACE ? size_of(rt[to], rn[to]) : size_of(t[to], n[to]), 1),
     b, n, at, t, rb, rn, rat, rt, c)
BOTH(Reduce_scatter, Ireduce_scatter, (const void *b, void *rb, const int n[], MPI_Datatype t, MPI_Op op, MPI_Comm c),
     parts(c, n, t), b, rb, n, t, op, c)
BOTH(Reduce_scatter_block, Ireduce_scatter_block, (const void *b, void *rb, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     each(c, size_of(t, n), 1), b, rb, n, t, op, c)
BOTH(Scan, Iscan, (const void *b, void *rb, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     next(c, size_of(t, n)), b, rb, n, t, op, c)
BOTH(Exscan, Iexscan, (const void *b, void *rb, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
     next(c, size_of(t, n)), b, rb, n, t, op, c)
BOTH(Neighbor_allgather, Ineighbor_allgather, (FROM_TO, int rn, MPI_Datatype rt, MPI_Comm c),
     neighbours(c, NULL, n, t), b, n, t, rb, rn, rt, c)
BOTH(Neighbor_alltoall, Ineighbor_alltoall, (FROM_TO, int rn, MPI_Datatype rt, MPI_Comm c),
     neighbours(c, NULL, n, t), b, n, t, rb, rn, rt, c)
BOTH(Neighbor_alltoallv, Ineighbor_alltoallv, (const void *b, const int n[], const int at[], MPI_Datatype t, void *rb, const int rn[], const int rat[], MPI_Datatype rt, MPI_Comm c),
     neighbours(c, n, 0, t), b, n, at, t, rb, rn, rat, rt, c)

/* Open MPI and MPICH, from one source: mpicc.openmpi and mpicc.mpich make two adapters of it.
 *
 * Model:  groups are communicators, requests are MPI_Requests in 64 bits. Transfers are begun without blocking and tested
 *         until they are done, so that every wait has an end; the clock is read at each 1,024th test. Collectives, split,
 *         init and finalize are the library's blocking ones, which sonde's watch bounds.
 * Source: MPI 3.1 §3.7 (requests), §6.4 (groups). Options: idle.
 * Found:  with more ranks than CPUs a test that never yields costs a scheduler's slice a message; neither library yields by
 *         itself in MPI_Test (MPICH has no switch for it at all), so the loop here does: option idle=auto|spin|yield.
 *         MPICH 4.0.2 compares MPI_UINT8_T and MPI_UNSIGNED_CHAR as signed in MPI_MIN and MPI_MAX: tried at the begin by
 *         MPI_Reduce_local; then there is no such reduction of the library's own. Open MPI 4.1's component op/avx adds
 *         bytes with saturation (200 + 100 = 255) in long enough arrays, on CPUs that have it: it never sums them here.
 *         MPICH 4.0.2 over UCX's tcp does not come back from MPI_Finalize now and then, of three ranks one time in ten, of
 *         five every second time: it flushes, which wants the other side to move, and the other side already waits for the
 *         end otherwise. Below 4.1 a rank ends without it.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <link.h>
#include <mpi.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "sonde_adapter.h"

#ifdef OMPI_MAJOR_VERSION
#define NAME "openmpi"
#else
#define NAME "mpich"
#endif

/* `idle=auto`: so many tests without a yield, about 100 us; none where ranks outnumber CPUs. */
#define SPINS 2000u
/* Requests of one exchange that need no memory of their own. */
#define FEW 16

struct sonde_rank {
    struct sonde_error *error;
    const volatile int32_t *lost;
    uint64_t timeout_ns;
    uint64_t spins; /* tests before each of them yields; UINT64_MAX: never */
    uint32_t tag_max;
    uint32_t level; /* of threads, as in the header */
    int ranks, local; /* of the world; of them on this machine, 0: unknown */
    int bytes_compare; /* MIN and MAX of bytes are right */
    uint32_t comm_count;
    MPI_Comm *comms;
    int *numbers; /* counts and displacements of a collective: 4 x the world */
};

_Static_assert(sizeof(MPI_Request) <= sizeof(uint64_t), "a request fits in 64 bits");

static int32_t fail(struct sonde_error *e, int32_t code, const char *what, const char *why)
{
    snprintf(e->what, sizeof e->what, "%s", what);
    snprintf(e->why, sizeof e->why, "%s", why);
    return code;
}

static int32_t refused(struct sonde_rank *r, int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(rc, text, &length);
    return fail(r->error, SONDE_REFUSED, what, text);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Tests until it is done; `bytes`: the message or the room for it. */
static int32_t finished(struct sonde_rank *r, MPI_Request *request, MPI_Status *status, int peer, uint64_t bytes, const char *what)
{
    uint64_t until = 0;
    for (uint64_t tests = 0;; tests++) {
        int done = 0, rc = MPI_Test(request, &done, status);
        if (rc != MPI_SUCCESS) {
            int class = 0, count = 0;
            MPI_Error_class(rc, &class);
            if (class != MPI_ERR_TRUNCATE || status == MPI_STATUS_IGNORE)
                return refused(r, rc, what);
            MPI_Get_count(status, MPI_BYTE, &count);
            *r->error = (struct sonde_error){.rank = status->MPI_SOURCE, .tag = (uint32_t)status->MPI_TAG, .room = bytes,
                                             .bytes = count > 0 && (uint64_t)count > bytes ? (uint64_t)count : 0};
            return SONDE_TRUNCATED;
        }
        if (done)
            return SONDE_OK;
        int yields = tests >= r->spins;
        if (yields)
            sched_yield();
        if ((tests + 1) % (yields ? 64 : 1024))
            continue;
        if (r->lost && *r->lost >= 0) {
            r->error->rank = *r->lost;
            return fail(r->error, SONDE_LOST, what, "its process ended");
        }
        uint64_t now = now_ns();
        if (!until)
            until = now + r->timeout_ns + bytes * SONDE_NS_A_BYTE;
        else if (now > until) {
            r->error->rank = peer;
            return fail(r->error, SONDE_SILENT, what, "");
        }
    }
}

static inline int source(int32_t from) { return from == SONDE_ANY ? MPI_ANY_SOURCE : from; }
static inline int tagged(int32_t tag) { return tag == SONDE_ANY ? MPI_ANY_TAG : tag; }

/* Bytes of a message: what MPI_Get_count reads, without the 5 to 10 ns of its checks. */
static inline uint64_t bytes_of(const MPI_Status *s)
{
#ifdef OMPI_MAJOR_VERSION
    return (uint64_t)s->_ucount;
#else
    return (uint64_t)(uint32_t)s->count_lo | (uint64_t)((uint32_t)s->count_hi_and_cancelled >> 1) << 32;
#endif
}

static inline void envelope(const MPI_Status *s, struct sonde_status *status)
{
    *status = (struct sonde_status){.from = s->MPI_SOURCE, .tag = (uint32_t)s->MPI_TAG, .bytes = bytes_of(s)};
}

static int32_t mpi_send(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes)
{
    MPI_Request request;
    int rc = MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, r->comms[comm], &request);
    if (rc != MPI_SUCCESS)
        return refused(r, rc, "MPI_Isend");
    return finished(r, &request, MPI_STATUS_IGNORE, to, bytes, "sending");
}

static int32_t mpi_recv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                        struct sonde_status *status)
{
    MPI_Request request;
    MPI_Status s;
    int rc = MPI_Irecv(data, (int)room, MPI_BYTE, source(from), tagged(tag), r->comms[comm], &request);
    if (rc != MPI_SUCCESS)
        return refused(r, rc, "MPI_Irecv");
    int32_t code = finished(r, &request, &s, from, room, "receiving");
    if (code == SONDE_OK)
        envelope(&s, status);
    return code;
}

static int32_t begin(struct sonde_rank *r, uint32_t comm, const struct sonde_op *op, MPI_Request *request)
{
    int rc = op->kind == 0
                 ? MPI_Isend(op->data, (int)op->bytes, MPI_BYTE, op->peer, op->tag, r->comms[comm], request)
                 : MPI_Irecv(op->data, (int)op->bytes, MPI_BYTE, source(op->peer), tagged(op->tag), r->comms[comm], request);
    return rc == MPI_SUCCESS ? SONDE_OK : refused(r, rc, op->kind == 0 ? "MPI_Isend" : "MPI_Irecv");
}

static int32_t mpi_exchange(struct sonde_rank *r, uint32_t comm, struct sonde_op *ops, uint64_t count)
{
    MPI_Request few[FEW], *requests = few;
    MPI_Status status;
    int32_t code = SONDE_OK;
    if (count > FEW && !(requests = malloc(count * sizeof *requests)))
        return fail(r->error, SONDE_REFUSED, "exchange", "no memory");
    uint64_t begun = 0;
    while (begun < count && (code = begin(r, comm, &ops[begun], &requests[begun])) == SONDE_OK)
        begun++;
    /* One that does not fit is told when the others are done. */
    for (uint64_t i = 0; i < begun && (code == SONDE_OK || code == SONDE_TRUNCATED); i++) {
        int32_t one = finished(r, &requests[i], &status, ops[i].peer, ops[i].bytes, "exchanging");
        if (one != SONDE_OK)
            code = one;
        else if (ops[i].kind == 1)
            envelope(&status, &ops[i].status);
    }
    if (requests != few)
        free(requests);
    return code;
}

static uint64_t handle(MPI_Request request)
{
    uint64_t bits = 0;
    memcpy(&bits, &request, sizeof request);
    return bits;
}

static int32_t mpi_isend(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                         uint64_t *request)
{
    MPI_Request made;
    struct sonde_op op = {.kind = 0, .peer = to, .tag = tag, .data = (void *)data, .bytes = bytes};
    int32_t code = begin(r, comm, &op, &made);
    *request = handle(made);
    return code;
}

static int32_t mpi_irecv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room, uint64_t *request)
{
    MPI_Request made;
    struct sonde_op op = {.kind = 1, .peer = from, .tag = tag, .data = data, .bytes = room};
    int32_t code = begin(r, comm, &op, &made);
    *request = handle(made);
    return code;
}

static int32_t mpi_test(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    MPI_Request one;
    MPI_Status s;
    memcpy(&one, request, sizeof one);
    int done = 0, rc = MPI_Test(&one, &done, &s);
    if (rc != MPI_SUCCESS || done) {
        int32_t code = SONDE_OK;
        if (rc == MPI_SUCCESS)
            envelope(&s, status);
        else {
            int class = 0;
            MPI_Error_class(rc, &class);
            *r->error = (struct sonde_error){.rank = s.MPI_SOURCE, .tag = (uint32_t)s.MPI_TAG};
            code = class == MPI_ERR_TRUNCATE ? SONDE_TRUNCATED : refused(r, rc, "MPI_Test");
        }
        return code;
    }
    return SONDE_NOT;
}

static int32_t mpi_wait(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    MPI_Request one;
    MPI_Status s;
    memcpy(&one, request, sizeof one);
    int32_t code = finished(r, &one, &s, SONDE_ANY, status->bytes, "waiting");
    if (code == SONDE_OK)
        envelope(&s, status);
    return code;
}

static int32_t mpi_iprobe(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, struct sonde_status *status)
{
    MPI_Status s;
    int there = 0, rc = MPI_Iprobe(source(from), tagged(tag), r->comms[comm], &there, &s);
    if (rc != MPI_SUCCESS)
        return refused(r, rc, "MPI_Iprobe");
    if (!there)
        return SONDE_NOT;
    envelope(&s, status);
    return SONDE_OK;
}

static int32_t mpi_split(struct sonde_rank *r, uint32_t comm, int32_t colour, int32_t key, uint32_t *new_comm)
{
    MPI_Comm made;
    MPI_Comm *comms = realloc(r->comms, (r->comm_count + 1) * sizeof *comms);
    if (!comms)
        return fail(r->error, SONDE_REFUSED, "split", "no memory");
    r->comms = comms;
    int rc = MPI_Comm_split(comms[comm], colour < 0 ? MPI_UNDEFINED : colour, key, &made);
    if (rc != MPI_SUCCESS)
        return refused(r, rc, "MPI_Comm_split");
    if (made == MPI_COMM_NULL)
        return SONDE_NOT;
    comms[r->comm_count] = made;
    *new_comm = r->comm_count++;
    return SONDE_OK;
}

/* Bytes of each rank as counts and displacements. */
static void parts(int *counts, int *begins, const uint64_t *each, uint64_t even, int ranks)
{
    uint64_t at = 0;
    for (int i = 0; i < ranks; i++) {
        uint64_t bytes = each ? each[i] : even;
        counts[i] = (int)bytes;
        begins[i] = (int)at;
        at += bytes;
    }
}

static int32_t mpi_collective(struct sonde_rank *r, uint32_t comm, struct sonde_collective *c)
{
    MPI_Comm on = r->comms[comm];
    int reduces = c->kind == SONDE_REDUCE || c->kind == SONDE_ALLREDUCE || c->kind == SONDE_SCAN;
    if (reduces && c->element == SONDE_U8 && (c->operation == SONDE_MIN || c->operation == SONDE_MAX) && !r->bytes_compare)
        return SONDE_NOT;
#ifdef OMPI_MAJOR_VERSION
    if (reduces && c->element == SONDE_U8 && c->operation == SONDE_SUM)
        return SONDE_NOT;
#endif
    const MPI_Datatype types[SONDE_ELEMENTS] = {MPI_UINT8_T, MPI_INT32_T, MPI_INT64_T, MPI_FLOAT, MPI_DOUBLE};
    const MPI_Op ops[SONDE_OPERATIONS] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR};
    static const int element_bytes[SONDE_ELEMENTS] = {1, 4, 8, 4, 8};
    MPI_Datatype type = types[c->element];
    MPI_Op op = ops[c->operation];
    int elements = (int)(c->bytes / (uint64_t)element_bytes[c->element]), ranks = 0, own = 0, rc = MPI_SUCCESS;
    MPI_Comm_size(on, &ranks);
    MPI_Comm_rank(on, &own);
    int *sent = r->numbers, *sent_at = sent + ranks, *got = sent_at + ranks, *got_at = got + ranks;
    int each_sent = (int)c->sent_each, each_got = (int)c->received_each;
    if (c->sent)
        parts(sent, sent_at, c->sent, c->sent_each, ranks);
    if (c->received)
        parts(got, got_at, c->received, c->received_each, ranks);
    switch (c->kind) {
    case SONDE_BARRIER:
        rc = MPI_Barrier(on);
        break;
    case SONDE_BROADCAST:
        rc = MPI_Bcast(c->output, (int)c->bytes, MPI_BYTE, c->root, on);
        break;
    case SONDE_REDUCE:
        rc = MPI_Reduce(c->input, c->output, elements, type, op, c->root, on);
        break;
    case SONDE_ALLREDUCE:
        rc = MPI_Allreduce(c->input, c->output, elements, type, op, on);
        break;
    case SONDE_SCAN:
        rc = MPI_Scan(c->input, c->output, elements, type, op, on);
        break;
    case SONDE_GATHER:
        rc = c->received ? MPI_Gatherv(c->input, got[own], MPI_BYTE, c->output, got, got_at, MPI_BYTE, c->root, on)
                         : MPI_Gather(c->input, each_got, MPI_BYTE, c->output, each_got, MPI_BYTE, c->root, on);
        break;
    case SONDE_SCATTER:
        rc = c->sent ? MPI_Scatterv(c->input, sent, sent_at, MPI_BYTE, c->output, sent[own], MPI_BYTE, c->root, on)
                     : MPI_Scatter(c->input, each_sent, MPI_BYTE, c->output, each_sent, MPI_BYTE, c->root, on);
        break;
    case SONDE_ALLGATHER:
        rc = c->received ? MPI_Allgatherv(c->input, got[own], MPI_BYTE, c->output, got, got_at, MPI_BYTE, on)
                         : MPI_Allgather(c->input, each_got, MPI_BYTE, c->output, each_got, MPI_BYTE, on);
        break;
    case SONDE_ALLTOALL:
        if (c->sent || c->received) {
            parts(sent, sent_at, c->sent, c->sent_each, ranks);
            parts(got, got_at, c->received, c->received_each, ranks);
            rc = MPI_Alltoallv(c->input, sent, sent_at, MPI_BYTE, c->output, got, got_at, MPI_BYTE, on);
        } else
            rc = MPI_Alltoall(c->input, each_sent, MPI_BYTE, c->output, each_got, MPI_BYTE, on);
        break;
    default:
        return SONDE_NOT;
    }
    return rc == MPI_SUCCESS ? SONDE_OK : refused(r, rc, "a collective call");
}

static int32_t mpi_about(struct sonde_rank *r, struct sonde_about *about)
{
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    about->rank = rank;
    about->ranks = r->ranks;
    about->thread_level = r->level;
    about->capabilities = SONDE_WILDCARDS | SONDE_PROBE | SONDE_SPLIT | SONDE_BOUNDED;
    about->collectives = (1u << (SONDE_SCAN + 1)) - 1;
    about->mem_kinds = 1u << SONDE_HOST;
    about->message_bytes_max = INT_MAX;
    about->tag_max = r->tag_max;
    return SONDE_OK;
}

#ifdef OMPI_MAJOR_VERSION
/* The components of Open MPI that are loaded: those that were not selected are unloaded again. */
static int loaded(struct dl_phdr_info *info, size_t size, void *to)
{
    char(*lists)[256] = to;
    static const char *const kinds[3] = {"mca_pml_", "mca_btl_", "mca_mtl_"};
    const char *file = strrchr(info->dlpi_name, '/');
    (void)size;
    for (int i = 0; file && i < 3; i++)
        if (!strncmp(file + 1, kinds[i], 8)) {
            size_t used = strlen(lists[i]);
            snprintf(lists[i] + used, 256 - used, "%s%.*s", used ? "," : "", (int)strcspn(file + 9, "."), file + 9);
        }
    return 0;
}
#endif

static int32_t mpi_facts(struct sonde_rank *r, void (*tell)(void *, const char *, const char *), void *to)
{
    static const char *const levels[4] = {"single", "funneled", "serialized", "multiple"};
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "", number[32];
    int length = 0, version = 0, subversion = 0;
    tell(to, "library", NAME);
    MPI_Get_library_version(text, &length);
#ifdef OMPI_MAJOR_VERSION
    text[strcspn(text, ",\n")] = 0;
    tell(to, "version", text);
    char lists[3][256] = {"", "", ""};
    dl_iterate_phdr(loaded, lists);
    tell(to, "pml", lists[0]);
    tell(to, "btl", lists[1]);
    tell(to, "mtl", lists[2]);
    /* ob1 takes vader (shared memory) between ranks of one machine where it is loaded, else tcp. */
    const char *rest = strstr(lists[1], "tcp") ? "tcp" : lists[1];
    int memory = strstr(lists[1], "vader") != NULL, all_here = r->local == r->ranks;
    tell(to, "transport", strcmp(lists[0], "ob1") ? lists[0] : memory && all_here ? "vader" : memory && r->local != 1 ? "vader and tcp" : rest);
#else
    char *device = strstr(text, "MPICH Device:");
    if (device) {
        device += strlen("MPICH Device:");
        device += strspn(device, " \t");
        device[strcspn(device, "\n")] = 0;
    }
    text[strcspn(text, "\n")] = 0;
    char *tabs = strpbrk(text, "0123456789");
    tell(to, "version", tabs ? tabs : text);
    tell(to, "device", device ? device : "unknown");
    tell(to, "transport", getenv("UCX_TLS") ? getenv("UCX_TLS") : "as the device chose");
#endif
    MPI_Get_version(&version, &subversion);
    snprintf(number, sizeof number, "%d.%d", version, subversion);
    tell(to, "standard", number);
    tell(to, "thread_level", levels[r->level]);
    tell(to, "idle", r->spins == UINT64_MAX ? "spin" : r->spins ? "auto" : "yield");
    return SONDE_OK;
}

static int32_t mpi_memory(struct sonde_rank *r, uint32_t mem_kind)
{
    return mem_kind == SONDE_HOST ? SONDE_OK : fail(r->error, SONDE_MISSING, "memory other than the host's", "");
}

static int32_t mpi_group(struct sonde_rank *r, uint32_t comm, int32_t *rank, int32_t *ranks)
{
    int own = 0, size = 0;
    if (comm >= r->comm_count)
        return fail(r->error, SONDE_ARGUMENT, "the group", "no such group");
    MPI_Comm_rank(r->comms[comm], &own);
    MPI_Comm_size(r->comms[comm], &size);
    *rank = own;
    *ranks = size;
    return SONDE_OK;
}

static int32_t mpi_progress(struct sonde_rank *r)
{
    struct sonde_status nobody;
    int32_t code = mpi_iprobe(r, 0, SONDE_ANY, SONDE_ANY, &nobody);
    return code < 0 ? code : SONDE_OK;
}

static void mpi_abort(struct sonde_rank *r, const char *why)
{
    (void)r;
    fprintf(stderr, NAME ": %s\n", why);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

/* The library's end, after a barrier. */
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
/* MPICH 4.0.2 over UCX hangs in MPI_Finalize when ranks leave that have just met, on busy CPUs one time in four, whatever is waited
 * for before (mpich 6596). Nothing is under way: only its launcher is told (PMI-1, by the descriptor it gave), who kills all
 * when a rank ends without a word. */
static int end(void)
{
    static const char word[] = "cmd=finalize\n";
    const char *number = getenv("PMI_FD");
    struct pollfd launcher = {.fd = number ? atoi(number) : -1, .events = POLLIN};
    char answer[64];
    if (!number)
        return MPI_Finalize();
    if (write(launcher.fd, word, sizeof word - 1) < 0 || poll(&launcher, 1, 2000) != 1)
        return MPI_ERR_OTHER;
    return read(launcher.fd, answer, sizeof answer) > 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}
#else
static int end(void)
{
    return MPI_Finalize();
}
#endif

static int32_t mpi_finish(struct sonde_rank *r)
{
    for (uint32_t i = 1; i < r->comm_count; i++)
        MPI_Comm_free(&r->comms[i]);
    int rc = MPI_Barrier(MPI_COMM_WORLD);
    if (rc == MPI_SUCCESS)
        rc = end();
    if (rc != MPI_SUCCESS)
        return fail(r->error, SONDE_REFUSED, "MPI_Finalize", "");
    free(r->comms);
    free(r->numbers);
    free(r);
    return SONDE_OK;
}

/* idle=auto|spin|yield; `local` and `cpus` decide what auto is. */
static int32_t options(struct sonde_rank *r, const char *const *option)
{
    cpu_set_t cpus;
    int count = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    r->spins = r->local > count ? 0 : SPINS;
    for (; option && option[0]; option += 2) {
        if (strcmp(option[0], "idle"))
            return fail(r->error, SONDE_ARGUMENT, option[0], "the options of " NAME " are: idle");
        if (!strcmp(option[1], "spin"))
            r->spins = UINT64_MAX;
        else if (!strcmp(option[1], "yield"))
            r->spins = 0;
        else if (strcmp(option[1], "auto"))
            return fail(r->error, SONDE_ARGUMENT, "idle", "it is auto, spin or yield");
    }
    return SONDE_OK;
}

static int32_t mpi_open(const struct sonde_start *start, struct sonde_rank **rank)
{
    static const int levels[4] = {MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
    const char *names[2] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"};
    int begun = 0, provided = 0, there = 0, *bound = NULL, rc;
    if (start->size < sizeof *start || start->thread_level > SONDE_MULTIPLE)
        return fail(start->error, SONDE_ARGUMENT, "the start", "it is of another version");
    MPI_Initialized(&begun);
    if (begun)
        return fail(start->error, SONDE_REFUSED, "MPI_Init_thread", "this process has begun with MPI before");
    struct sonde_rank *r = calloc(1, sizeof *r);
    if (!r || !(r->comms = calloc(1, sizeof *r->comms)))
        return fail(start->error, SONDE_REFUSED, "open", "no memory");
    r->error = start->error;
    r->lost = start->lost;
    r->timeout_ns = start->timeout_ns;
    for (int i = 0; i < 2 && !r->local; i++)
        r->local = getenv(names[i]) ? atoi(getenv(names[i])) : 0;
    int32_t code = options(r, start->options);
    if (code != SONDE_OK)
        return code;
    if ((rc = MPI_Init_thread(NULL, NULL, levels[start->thread_level], &provided)) != MPI_SUCCESS)
        return fail(r->error, SONDE_REFUSED, "MPI_Init_thread", "was this rank started by the mpirun of the same library?");
    while (r->level < SONDE_MULTIPLE && levels[r->level + 1] <= provided)
        r->level++;
    if (r->level < start->thread_level)
        return fail(r->error, SONDE_MISSING, "such a thread level", "");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    r->comms[0] = MPI_COMM_WORLD;
    r->comm_count = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &r->ranks);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &bound, &there);
    r->tag_max = there ? (uint32_t)*bound : 32767;
    uint8_t low = 94, high = 177;
    r->bytes_compare = MPI_Reduce_local(&low, &high, 1, MPI_UINT8_T, MPI_MAX) == MPI_SUCCESS && high == 177;
    if (!(r->numbers = calloc((size_t)r->ranks * 4, sizeof *r->numbers)))
        return fail(r->error, SONDE_REFUSED, "open", "no memory");
    *rank = r;
    return SONDE_OK;
}

static const struct sonde_adapter table = {
    .abi = SONDE_ADAPTER_ABI,
    .size = sizeof table,
    .name = NAME,
    .open = mpi_open,
    .about = mpi_about,
    .facts = mpi_facts,
    .memory = mpi_memory,
    .group = mpi_group,
    .send = mpi_send,
    .recv = mpi_recv,
    .exchange = mpi_exchange,
    .isend = mpi_isend,
    .irecv = mpi_irecv,
    .test = mpi_test,
    .wait = mpi_wait,
    .iprobe = mpi_iprobe,
    .split = mpi_split,
    .collective = mpi_collective,
    .progress = mpi_progress,
    .abort = mpi_abort,
    .finish = mpi_finish,
};

const struct sonde_adapter *sonde_adapter(uint32_t abi)
{
    return abi == SONDE_ADAPTER_ABI ? &table : NULL;
}

/* PVM 3.4: ranks are tasks, rank 0 spawns the others or they were spawned with it.
 *
 * Model:  rank 0 is the task without a parent; it spawns `ranks` - 1 more by `command` and tells all tids. A group is a
 *         context of PVM, a tag is a tag, a rank its tid. PVM has no posted receives: those that are posted wait in a list
 *         here, and what comes goes to the first of them that it fits. Waits are pvm_trecv in slices, between which the
 *         message of pvm_notify tells of tasks that ended. A wait blocks in PVM's select: it never spins.
 * Source: PVM 3 User's Guide (ORNL/TM-12187), pvm_setopt(3), pvm_notify(3), pvm_newcontext(3).
 * Options: route=default|direct, encoding=default|raw|inplace, hosts=a,b,... (rank i on the i-th, round).
 *          PvmDataDefault (XDR) rounds bytes up to four: its messages carry their length before them, an int more on the wire.
 * Found:  by the direct route first messages may be overtaken, see meet(); a cancelled notice is sent, see let_go();
 *         a pair that was switched from PvmDontRoute to PvmRouteDirect hangs: the route is set once, before any message.
 *         pvm_send may block as long as the peer does not read: not SONDE_BOUNDED.
 */
#include <limits.h>
#include <stdio.h>
/* It declares pvm_catchout only behind stdio.h. */
#include <pvm3.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include "sonde_adapter.h"

/* Tags beyond those of programs, in the context of the world. */
#define TAG_MAX 0x00ffffff
#define TAG_TABLE 0x01000001
#define TAG_GONE 0x01000002
#define TAG_LEAVE 0x01000003
#define TAG_MEET 0x01000004
/* A lost task is noticed after so long. */
#define SLICE_NS 200000000u

struct posted {
    struct posted *next;
    uint32_t comm;
    int32_t from, tag, done; /* SONDE_NOT until it is */
    void *data;
    uint64_t room;
    struct sonde_status status;
};

struct sonde_rank {
    struct sonde_error *error;
    const volatile int32_t *lost;
    uint64_t timeout_ns;
    int encoding, direct, rank, ranks, context;
    int *tids;
    struct posted *posted; /* not done yet, in the order in which they were posted */
};

static int32_t fail(struct sonde_error *e, int32_t code, const char *what, const char *why)
{
    snprintf(e->what, sizeof e->what, "%s", what);
    snprintf(e->why, sizeof e->why, "%s", why);
    return code;
}

static int32_t refused(struct sonde_error *e, int rc, const char *what)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {{PvmSysErr, "the pvmd does not answer: is it running?"}, {PvmNoTask, "no such task"}, {PvmNoHost, "no such host in the virtual machine"},
                 {PvmNoFile, "the program is not there: PVM looks in `ep` of its host file, or wants an absolute name"},
                 {PvmNoMem, "no memory"}, {PvmOutOfRes, "out of resources"}, {PvmHostFail, "the host failed"}, {PvmNoData, "the message ended early"}};
    char why[96];
    snprintf(why, sizeof why, "error %d", rc);
    for (unsigned i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == rc)
            return fail(e, SONDE_REFUSED, what, texts[i].text);
    return fail(e, SONDE_REFUSED, what, why);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int rank_of(struct sonde_rank *r, int tid)
{
    for (int i = 0; i < r->ranks; i++)
        if (r->tids[i] == tid)
            return i;
    return -1;
}

/* Groups are kept apart by contexts: the world's, and those above it. */
static void within(struct sonde_rank *r, uint32_t comm) { pvm_setcontext(r->context + (int)comm); }

static int32_t gone(struct sonde_rank *r, const char *what)
{
    int tid = 0;
    if (r->lost && *r->lost >= 0) {
        r->error->rank = *r->lost;
        return fail(r->error, SONDE_LOST, what, "its process ended");
    }
    within(r, 0);
    if (pvm_nrecv(-1, TAG_GONE) <= 0)
        return SONDE_OK;
    pvm_upkint(&tid, 1, 1);
    r->error->rank = rank_of(r, tid);
    return fail(r->error, SONDE_LOST, what, "PVM says that its task ended");
}

/* The bytes of the message in the receive buffer, which is the current one; then it stands before them. */
static int described(struct sonde_rank *r, int buffer, int *bytes, int *tag, int *tid)
{
    int rc = pvm_bufinfo(buffer, bytes, tag, tid);
    return rc < 0 || r->encoding != PvmDataDefault ? rc : pvm_upkint(bytes, 1, 1);
}

/* Unpacks the message in the receive buffer. */
static int32_t unpack(struct sonde_rank *r, int buffer, void *data, uint64_t room, struct sonde_status *status)
{
    int bytes = 0, tag = 0, tid = 0, rc = described(r, buffer, &bytes, &tag, &tid);
    if (rc < 0)
        return refused(r->error, rc, "pvm_bufinfo");
    *status = (struct sonde_status){.from = rank_of(r, tid), .tag = (uint32_t)tag, .bytes = (uint64_t)bytes};
    if ((uint64_t)bytes > room) {
        *r->error = (struct sonde_error){.rank = status->from, .tag = (uint32_t)tag, .bytes = (uint64_t)bytes, .room = room};
        return SONDE_TRUNCATED;
    }
    if (bytes > 0 && (rc = pvm_upkbyte(data, bytes, 1)) < 0)
        return refused(r->error, rc, "pvm_upkbyte");
    return SONDE_OK;
}

/* Gives the message to the first posted receive of its group that it fits; `own` is the last of them. */
static int32_t deliver(struct sonde_rank *r, int buffer, uint32_t comm)
{
    int bytes = 0, tag = 0, tid = 0;
    pvm_bufinfo(buffer, &bytes, &tag, &tid);
    int from = rank_of(r, tid);
    for (struct posted **at = &r->posted, *p; (p = *at); at = &p->next)
        if (p->comm == comm && (p->from == SONDE_ANY || p->from == from) && (p->tag == SONDE_ANY || p->tag == tag)) {
            p->done = unpack(r, buffer, p->data, p->room, &p->status);
            *at = p->next;
            return p->done < 0 && p->done != SONDE_TRUNCATED ? p->done : SONDE_OK;
        }
    return fail(r->error, SONDE_REFUSED, "a receive", "a message came that nobody waits for");
}

static int tid_of(struct sonde_rank *r, int32_t rank) { return rank == SONDE_ANY ? -1 : r->tids[rank]; }

/* Takes what is there for the posted receives, in their order. */
static int32_t sweep(struct sonde_rank *r)
{
    for (struct posted *p = r->posted, *next; p; p = next) {
        next = p->next;
        within(r, p->comm);
        int buffer = pvm_nrecv(tid_of(r, p->from), p->tag);
        if (buffer < 0)
            return refused(r->error, buffer, "pvm_nrecv");
        if (buffer > 0) {
            int32_t code = deliver(r, buffer, p->comm);
            if (code != SONDE_OK)
                return code;
            next = r->posted; /* it may have gone to an earlier one */
        }
    }
    return SONDE_OK;
}

static void post(struct sonde_rank *r, struct posted *p)
{
    struct posted **last = &r->posted;
    while (*last)
        last = &(*last)->next;
    *last = p;
}

/* Waits until this posted receive is done. */
static int32_t finished(struct sonde_rank *r, struct posted *own, const char *what)
{
    uint64_t begin = 0;
    while (own->done == SONDE_NOT) {
        int32_t code = r->posted == own && !own->next ? SONDE_OK : sweep(r);
        if (code != SONDE_OK)
            return code;
        if (own->done != SONDE_NOT)
            break;
        struct timeval slice = {0, SLICE_NS / 1000};
        within(r, own->comm);
        int buffer = pvm_trecv(tid_of(r, own->from), own->tag, &slice);
        if (buffer < 0)
            return refused(r->error, buffer, "pvm_trecv");
        if (buffer > 0) {
            if ((code = deliver(r, buffer, own->comm)) != SONDE_OK)
                return code;
            continue;
        }
        if ((code = gone(r, what)) != SONDE_OK)
            return code;
        uint64_t now = now_ns();
        if (!begin)
            begin = now;
        else if (now - begin > r->timeout_ns + own->room * SONDE_NS_A_BYTE) {
            r->error->rank = own->from;
            return fail(r->error, SONDE_SILENT, what, "");
        }
    }
    return own->done;
}

static int32_t put(struct sonde_rank *r, uint32_t comm, int tid, int tag, const void *data, uint64_t bytes)
{
    int rc = pvm_initsend(r->encoding);
    if (rc < 0)
        return refused(r->error, rc, "pvm_initsend");
    int length = (int)bytes;
    if (r->encoding == PvmDataDefault && (rc = pvm_pkint(&length, 1, 1)) < 0)
        return refused(r->error, rc, "pvm_pkint");
    if (bytes && (rc = pvm_pkbyte((char *)data, (int)bytes, 1)) < 0)
        return refused(r->error, rc, "pvm_pkbyte");
    within(r, comm);
    return (rc = pvm_send(tid, tag)) < 0 ? refused(r->error, rc, "pvm_send") : SONDE_OK;
}

static int32_t pvm_adapter_send(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes)
{
    return put(r, comm, r->tids[to], tag, data, bytes);
}

static int32_t pvm_adapter_recv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                                struct sonde_status *status)
{
    struct posted own = {.comm = comm, .from = from, .tag = tag, .done = SONDE_NOT, .data = data, .room = room};
    post(r, &own);
    int32_t code = finished(r, &own, "receiving");
    if (own.done == SONDE_NOT) { /* it must not outlive this call */
        struct posted **at = &r->posted;
        while (*at && *at != &own)
            at = &(*at)->next;
        if (*at)
            *at = own.next;
    }
    *status = own.status;
    return code;
}

static int32_t pvm_adapter_irecv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                                 uint64_t *request)
{
    struct posted *p = calloc(1, sizeof *p);
    if (!p)
        return fail(r->error, SONDE_REFUSED, "irecv", "no memory");
    *p = (struct posted){.comm = comm, .from = from, .tag = tag, .done = SONDE_NOT, .data = data, .room = room};
    post(r, p);
    *request = (uint64_t)(uintptr_t)p;
    return SONDE_OK;
}

static int32_t pvm_adapter_isend(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                                 uint64_t *request)
{
    *request = 0; /* pvm_send has copied or sent it */
    return put(r, comm, r->tids[to], tag, data, bytes);
}

static int32_t over(struct sonde_rank *r, struct posted *p, uint64_t *request, struct sonde_status *status)
{
    int32_t code = p->done;
    *status = p->status;
    if (code == SONDE_TRUNCATED)
        *r->error = (struct sonde_error){.rank = p->status.from, .tag = p->status.tag, .bytes = p->status.bytes, .room = p->room};
    free(p);
    *request = 0;
    return code;
}

static int32_t pvm_adapter_test(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request;
    if (!p)
        return SONDE_OK;
    int32_t code = p->done == SONDE_NOT ? sweep(r) : SONDE_OK;
    if (code != SONDE_OK)
        return code;
    return p->done == SONDE_NOT ? SONDE_NOT : over(r, p, request, status);
}

static int32_t pvm_adapter_wait(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request;
    if (!p)
        return SONDE_OK;
    int32_t code = finished(r, p, "waiting");
    return p->done == SONDE_NOT ? code : over(r, p, request, status);
}

static int32_t pvm_adapter_exchange(struct sonde_rank *r, uint32_t comm, struct sonde_op *ops, uint64_t count)
{
    struct posted *receives = calloc(count, sizeof *receives);
    int32_t code = SONDE_OK, truncated = SONDE_OK;
    struct sonde_error first = {0};
    if (!receives)
        return fail(r->error, SONDE_REFUSED, "exchange", "no memory");
    for (uint64_t i = 0; i < count; i++) {
        receives[i] = (struct posted){.comm = comm, .from = ops[i].peer, .tag = ops[i].tag, .done = SONDE_NOT, .data = ops[i].data, .room = ops[i].bytes};
        if (ops[i].kind == 1)
            post(r, &receives[i]);
    }
    for (uint64_t i = 0; i < count && code == SONDE_OK; i++)
        if (ops[i].kind == 0)
            code = put(r, comm, r->tids[ops[i].peer], ops[i].tag, ops[i].data, ops[i].bytes);
    for (uint64_t i = 0; i < count && code == SONDE_OK; i++)
        if (ops[i].kind == 1) {
            code = finished(r, &receives[i], "exchanging");
            ops[i].status = receives[i].status;
            if (code == SONDE_TRUNCATED) { /* told when the others are done */
                first = (struct sonde_error){.rank = receives[i].status.from, .tag = receives[i].status.tag,
                                             .bytes = receives[i].status.bytes, .room = receives[i].room};
                truncated = code;
                code = SONDE_OK;
            }
        }
    for (struct posted **at = &r->posted; *at;)
        if (*at >= receives && *at < receives + count)
            *at = (*at)->next;
        else
            at = &(*at)->next;
    free(receives);
    if (code == SONDE_OK && truncated != SONDE_OK)
        *r->error = first;
    return code != SONDE_OK ? code : truncated;
}

static int32_t pvm_adapter_iprobe(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, struct sonde_status *status)
{
    int32_t code = sweep(r);
    if (code != SONDE_OK)
        return code;
    within(r, comm);
    int bytes = 0, got = 0, tid = 0, buffer = pvm_probe(tid_of(r, from), tag);
    if (buffer < 0)
        return refused(r->error, buffer, "pvm_probe");
    if (buffer == 0)
        return SONDE_NOT;
    /* To look into a buffer takes nothing of it: pvm_recv begins it anew. */
    int before = pvm_setrbuf(buffer), rc = described(r, buffer, &bytes, &got, &tid);
    pvm_setrbuf(before);
    if (rc < 0)
        return refused(r->error, rc, "pvm_bufinfo");
    *status = (struct sonde_status){.from = rank_of(r, tid), .tag = (uint32_t)got, .bytes = (uint64_t)bytes};
    return SONDE_OK;
}

static int32_t pvm_adapter_progress(struct sonde_rank *r)
{
    int32_t code = sweep(r);
    return code != SONDE_OK ? code : gone(r, "moving messages");
}

static int32_t pvm_adapter_split(struct sonde_rank *r, uint32_t comm, int32_t colour, int32_t key, uint32_t *new_comm)
{
    (void)comm, (void)colour, (void)key, (void)new_comm;
    return fail(r->error, SONDE_MISSING, "groups that need no server", "");
}

static int32_t pvm_adapter_collective(struct sonde_rank *r, uint32_t comm, struct sonde_collective *call)
{
    (void)r, (void)comm, (void)call; /* those of PVM need its group server */
    return SONDE_NOT;
}

static int32_t pvm_adapter_memory(struct sonde_rank *r, uint32_t mem_kind)
{
    return mem_kind == SONDE_HOST ? SONDE_OK : fail(r->error, SONDE_MISSING, "memory other than the host's", "");
}

static int32_t pvm_adapter_group(struct sonde_rank *r, uint32_t comm, int32_t *rank, int32_t *ranks)
{
    (void)comm;
    *rank = r->rank;
    *ranks = r->ranks;
    return SONDE_OK;
}

static int32_t pvm_adapter_about(struct sonde_rank *r, struct sonde_about *about)
{
    about->rank = r->rank;
    about->ranks = r->ranks;
    about->thread_level = SONDE_SERIALIZED;
    about->capabilities = SONDE_WILDCARDS | SONDE_PROBE;
    about->collectives = 0;
    about->mem_kinds = 1u << SONDE_HOST;
    about->message_bytes_max = INT_MAX;
    about->tag_max = TAG_MAX;
    return SONDE_OK;
}

static int32_t pvm_adapter_facts(struct sonde_rank *r, void (*tell)(void *, const char *, const char *), void *to)
{
    static const char *const encodings[] = {"default", "raw", "inplace"};
    char text[64];
    int route = pvm_getopt(PvmRoute), hosts = 0, archs = 0;
    struct pvmhostinfo *all = NULL;
    tell(to, "library", "pvm");
    tell(to, "version", pvm_version());
    tell(to, "transport", route == PvmRouteDirect ? "task to task" : "by the daemons");
    tell(to, "route", route == PvmRouteDirect ? "direct" : "default");
    tell(to, "encoding", encodings[r->encoding]);
    tell(to, "thread_level", "serialized");
    if (pvm_config(&hosts, &archs, &all) >= 0) {
        snprintf(text, sizeof text, "%d", hosts);
        tell(to, "hosts", text);
    }
    snprintf(text, sizeof text, "%d", pvm_getopt(PvmFragSize));
    tell(to, "fragment_bytes", text);
    return SONDE_OK;
}

/* Rank 0 is left to learn it from pvm_notify: what it says is what whoever started it hears. */
static void pvm_adapter_abort(struct sonde_rank *r, const char *why)
{
    fprintf(stderr, "pvm: %s\n", why);
    for (int i = 1; i < r->ranks; i++)
        if (i != r->rank)
            pvm_kill(r->tids[i]);
}

/*
 * Waits until rank 0 says that all may go, or is gone itself: nothing is left to do for it then. That others end by now is no
 * loss, and PVM's notices are not cancelled for it: pvm_notify answers a cancel with the notice itself.
 */
static int32_t let_go(struct sonde_rank *r)
{
    struct timeval slice = {0, SLICE_NS / 1000};
    uint64_t begin = now_ns();
    int rc, tid = 0;
    within(r, 0);
    while ((rc = pvm_trecv(r->tids[0], TAG_LEAVE, &slice)) == 0) {
        if (pvm_nrecv(-1, TAG_GONE) > 0 && pvm_upkint(&tid, 1, 1) == 0 && tid == r->tids[0])
            return SONDE_OK;
        if (now_ns() - begin > r->timeout_ns) {
            r->error->rank = 0;
            return fail(r->error, SONDE_SILENT, "leaving", "");
        }
    }
    return rc < 0 ? refused(r->error, rc, "pvm_trecv") : SONDE_OK;
}

/* All tell rank 0 that they leave, and go when it says so: none ends while another still waits for it. */
static int32_t pvm_adapter_finish(struct sonde_rank *r)
{
    int32_t code = SONDE_OK;
    struct sonde_status status;
    pvm_catchout(0);
    for (int i = 1; r->rank == 0 && i < r->ranks && code == SONDE_OK; i++)
        code = pvm_adapter_recv(r, 0, i, TAG_LEAVE, NULL, 0, &status);
    for (int i = 1; r->rank == 0 && i < r->ranks && code == SONDE_OK; i++)
        code = put(r, 0, r->tids[i], TAG_LEAVE, NULL, 0);
    if (r->rank != 0 && (code = put(r, 0, r->tids[0], TAG_LEAVE, NULL, 0)) == SONDE_OK)
        code = let_go(r);
    pvm_exit();
    if (code == SONDE_OK) {
        free(r->tids);
        free(r);
    }
    return code;
}

static int32_t choose(struct sonde_rank *r, const char *const *option, char **hosts)
{
    static const char *const all = "the options of pvm are: route, encoding, hosts";
    for (; option && option[0]; option += 2) {
        const char *value = option[1];
        if (!strcmp(option[0], "route")) {
            if (strcmp(value, "default") && strcmp(value, "direct"))
                return fail(r->error, SONDE_ARGUMENT, "route", "it is default or direct");
            r->direct = !strcmp(value, "direct");
        } else if (!strcmp(option[0], "encoding")) {
            r->encoding = !strcmp(value, "default") ? PvmDataDefault : !strcmp(value, "raw") ? PvmDataRaw : !strcmp(value, "inplace") ? PvmDataInPlace : -1;
            if (r->encoding < 0)
                return fail(r->error, SONDE_ARGUMENT, "encoding", "it is default, raw or inplace");
        } else if (!strcmp(option[0], "hosts"))
            *hosts = strdup(value);
        else
            return fail(r->error, SONDE_ARGUMENT, option[0], all);
    }
    return SONDE_OK;
}

/* Rank 0: starts the others and tells each the tids of all. */
static int32_t spawn(struct sonde_rank *r, const char *const *command, char *hosts)
{
    char *names[256];
    int count = 0, rc;
    for (char *name = hosts ? strtok(hosts, ",") : NULL; name && count < 256; name = strtok(NULL, ","))
        names[count++] = name;
    if (r->ranks > 1 && (!command || !command[0]))
        return fail(r->error, SONDE_ARGUMENT, "command", "PVM must be told which program to spawn");
    /* Where what they print goes; rank 0's own stdout is for its results. */
    pvm_catchout(stderr);
    for (int i = 1; i < r->ranks; i++) {
        char *where = count ? names[i % count] : "";
        rc = pvm_spawn((char *)command[0], (char **)command + 1, count ? PvmTaskHost : PvmTaskDefault, where, 1, &r->tids[i]);
        if (rc != 1) {
            for (int begun = 1; begun < i; begun++)
                pvm_kill(r->tids[begun]);
            return refused(r->error, rc < 0 ? rc : r->tids[i], "pvm_spawn");
        }
    }
    if ((rc = pvm_initsend(PvmDataDefault)) < 0 || (rc = pvm_pkint(&r->context, 1, 1)) < 0 || (rc = pvm_pkint(&r->ranks, 1, 1)) < 0 ||
        (rc = pvm_pkint(r->tids, r->ranks, 1)) < 0)
        return refused(r->error, rc, "pvm_pkint");
    for (int i = 1; i < r->ranks; i++)
        if ((rc = pvm_send(r->tids[i], TAG_TABLE)) < 0)
            return refused(r->error, rc, "pvm_send");
    return SONDE_OK;
}

/*
 * Makes the direct connections before anything is sent by them. Where two tasks send to each other for the first time at once, PVM
 * lets one of them go on before its connection is there: its first messages go by the daemons, and later ones overtake them. So of
 * each two the lower rank sends first, and the higher one nothing before that has come, which is by the connection. Rank 0 met all
 * others when it told them the tids.
 */
static int32_t meet(struct sonde_rank *r)
{
    int32_t code = SONDE_OK;
    struct sonde_status status;
    if (!r->direct || r->rank == 0)
        return SONDE_OK;
    for (int i = 1; i < r->rank && code == SONDE_OK; i++)
        code = pvm_adapter_recv(r, 0, i, TAG_MEET, NULL, 0, &status);
    for (int i = r->rank + 1; i < r->ranks && code == SONDE_OK; i++)
        code = put(r, 0, r->tids[i], TAG_MEET, NULL, 0);
    return code;
}

/* The others: what rank 0 tells. */
static int32_t learn(struct sonde_rank *r, int parent)
{
    struct timeval timeout = {(time_t)(r->timeout_ns / 1000000000u), (suseconds_t)(r->timeout_ns % 1000000000u / 1000)};
    int own = pvm_mytid(), buffer = pvm_trecv(parent, TAG_TABLE, &timeout);
    if (buffer < 0)
        return refused(r->error, buffer, "pvm_trecv");
    if (buffer == 0) {
        r->error->rank = 0;
        return fail(r->error, SONDE_SILENT, "waiting to be told the tids of all", "");
    }
    pvm_upkint(&r->context, 1, 1);
    pvm_upkint(&r->ranks, 1, 1);
    if (r->ranks < 1 || !(r->tids = calloc((size_t)r->ranks, sizeof *r->tids)))
        return fail(r->error, SONDE_REFUSED, "open", "no memory");
    pvm_upkint(r->tids, r->ranks, 1);
    r->rank = rank_of(r, own);
    return SONDE_OK;
}

static int32_t pvm_adapter_open(const struct sonde_start *start, struct sonde_rank **rank)
{
    char *hosts = NULL;
    struct sonde_rank *r = calloc(1, sizeof *r);
    if (!r || start->size < sizeof *start)
        return fail(start->error, SONDE_ARGUMENT, "the start", "it is of another version");
    r->error = start->error;
    r->lost = start->lost;
    r->timeout_ns = start->timeout_ns;
    int32_t code = choose(r, start->options, &hosts);
    if (code != SONDE_OK)
        return code;
    pvm_setopt(PvmAutoErr, 0); /* errors are told, not printed */
    int own = pvm_mytid();
    if (own < 0)
        return refused(r->error, own, "joining the virtual machine (pvm_mytid)");
    pvm_setopt(PvmRoute, r->direct ? PvmRouteDirect : PvmAllowDirect);
    int parent = pvm_parent();
    if (parent > 0 && start->rank != 0)
        code = learn(r, parent);
    else {
        r->ranks = start->ranks < 1 ? 1 : start->ranks;
        r->context = pvm_getcontext();
        if (!(r->tids = calloc((size_t)r->ranks, sizeof *r->tids)))
            return fail(r->error, SONDE_REFUSED, "open", "no memory");
        r->tids[0] = own;
        code = spawn(r, start->command, hosts);
    }
    free(hosts);
    if (code != SONDE_OK) {
        pvm_exit();
        return code;
    }
    within(r, 0);
    pvm_notify(PvmTaskExit, TAG_GONE, r->ranks, r->tids);
    if ((code = meet(r)) != SONDE_OK) {
        pvm_exit();
        return code;
    }
    *rank = r;
    return SONDE_OK;
}

static const struct sonde_adapter table = {
    .abi = SONDE_ADAPTER_ABI,
    .size = sizeof table,
    .name = "pvm",
    .open = pvm_adapter_open,
    .about = pvm_adapter_about,
    .facts = pvm_adapter_facts,
    .memory = pvm_adapter_memory,
    .group = pvm_adapter_group,
    .send = pvm_adapter_send,
    .recv = pvm_adapter_recv,
    .exchange = pvm_adapter_exchange,
    .isend = pvm_adapter_isend,
    .irecv = pvm_adapter_irecv,
    .test = pvm_adapter_test,
    .wait = pvm_adapter_wait,
    .iprobe = pvm_adapter_iprobe,
    .split = pvm_adapter_split,
    .collective = pvm_adapter_collective,
    .progress = pvm_adapter_progress,
    .abort = pvm_adapter_abort,
    .finish = pvm_adapter_finish,
};

const struct sonde_adapter *sonde_adapter(uint32_t abi)
{
    return abi == SONDE_ADAPTER_ABI ? &table : NULL;
}

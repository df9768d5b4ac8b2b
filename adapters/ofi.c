/* libfabric: tagged messages of a reliable endpoint (FI_EP_RDM).
 *
 * Model:  ranks exchange the names of their endpoints and insert them in the order of ranks. A tag is 16 bits of the group,
 *         24 of the sender in the world, 24 of the tag, so that wildcards are masks to ignore. Each transfer has a context
 *         that its completion names; the completion queue is read until a transfer is done.
 * Source: libfabric 1.17 fi_endpoint(3), fi_tagged(3), fi_cq(3). Options: transport=tcp|shm|udp, provider (instead of it, as
 *         libfabric names it: tcp;ofi_rxm), address (of this rank's interface), idle=auto|spin|yield.
 * Found:  shm tells nothing of a peer that ended: `lost` does. Its provider takes FI_PEEK for a receive, so it has no probe;
 *         in 1.17.0 about every second run of a receive with an ignore mask never completes (exact ones always do), so it
 *         has no wildcards either. tcp;ofi_rxm tells the first message that does not fit its room, and of the next nothing:
 *         so a receive of its has a second part behind the room, which all share and nobody reads; what comes there did not
 *         fit. Its pages take memory only when something comes.
 */
#define _GNU_SOURCE
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "sonde_adapter.h"

/* Of what does not fit its room so much is taken and thrown away. */
#define SPILL (1ull << 30)
#define TAG_BITS 24
#define TAG_MASK ((1ull << TAG_BITS) - 1)
#define SPINS 2000u
#define FEW 16
#define READ 16

/* A transfer under way. The provider owns `context` until `done`. */
struct posted {
    struct fi_context2 context;
    struct posted *next;
    int done, error;
    uint32_t receives;
    int32_t peer;
    uint64_t tag, bytes, room;
};

struct sonde_rank {
    struct sonde_error *error;
    const volatile int32_t *lost;
    uint64_t timeout_ns, spins;
    int rank, ranks;
    int32_t (*exchange)(void *, const void *, uint64_t, void *);
    void *exchange_to;
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    fi_addr_t *addresses;
    struct posted *spare;
    void *spill; /* NULL where the provider tells itself what does not fit */
};

static int32_t fail(struct sonde_error *e, int32_t code, const char *what, const char *why)
{
    snprintf(e->what, sizeof e->what, "%s", what);
    snprintf(e->why, sizeof e->why, "%s", why);
    return code;
}

static int32_t refused(struct sonde_rank *r, int rc, const char *what)
{
    return fail(r->error, SONDE_REFUSED, what, fi_strerror(rc < 0 ? -rc : rc));
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t tag_of(uint32_t comm, int32_t from, int32_t tag)
{
    return (uint64_t)comm << 48 | (from == SONDE_ANY ? 0 : (uint64_t)from << TAG_BITS) | (tag == SONDE_ANY ? 0 : (uint64_t)tag);
}

static uint64_t ignore_of(int32_t from, int32_t tag)
{
    return (from == SONDE_ANY ? TAG_MASK << TAG_BITS : 0) | (tag == SONDE_ANY ? TAG_MASK : 0);
}

static void envelope(const struct posted *p, struct sonde_status *status)
{
    *status = (struct sonde_status){.from = (int32_t)(p->tag >> TAG_BITS & TAG_MASK), .tag = (uint32_t)(p->tag & TAG_MASK), .bytes = p->bytes};
}

/* Reads what was completed. */
static int32_t turn(struct sonde_rank *r)
{
    struct fi_cq_tagged_entry entries[READ];
    ssize_t count = fi_cq_read(r->cq, entries, READ);
    for (ssize_t i = 0; i < count; i++) {
        struct posted *p = entries[i].op_context;
        if (p->receives) {
            p->tag = entries[i].tag;
            p->bytes = entries[i].len;
        }
        p->done = 1;
    }
    if (count == -FI_EAVAIL) {
        struct fi_cq_err_entry entry = {0};
        if (fi_cq_readerr(r->cq, &entry, 0) < 0 || !entry.op_context)
            return refused(r, entry.err ? entry.err : FI_EIO, "a completion");
        struct posted *p = entry.op_context;
        p->tag = entry.tag;
        p->bytes = entry.len + entry.olen;
        p->error = entry.err ? abs(entry.err) : FI_EIO; /* shm tells FI_ETRUNC negative */
        p->done = 1;
        return SONDE_OK;
    }
    return count >= 0 || count == -FI_EAGAIN ? SONDE_OK : refused(r, (int)count, "fi_cq_read");
}

/* One more turn of a wait: its end, where there is one. */
static int32_t again(struct sonde_rank *r, uint64_t turns, uint64_t *until, uint64_t bytes, int32_t peer, const char *what)
{
    int32_t code = turn(r);
    int yields = turns >= r->spins;
    if (yields)
        sched_yield();
    if (code != SONDE_OK || (turns + 1) % (yields ? 64 : 1024))
        return code;
    if (r->lost && *r->lost >= 0) {
        r->error->rank = *r->lost;
        return fail(r->error, SONDE_LOST, what, "its process ended");
    }
    uint64_t now = now_ns();
    if (!*until)
        *until = now + r->timeout_ns + bytes * SONDE_NS_A_BYTE;
    else if (now > *until) {
        r->error->rank = peer;
        return fail(r->error, SONDE_SILENT, what, "");
    }
    return SONDE_OK;
}

static int32_t finished(struct sonde_rank *r, struct posted *p, const char *what)
{
    uint64_t until = 0;
    for (uint64_t turns = 0; !p->done; turns++) {
        int32_t code = again(r, turns, &until, p->room, p->peer, what);
        if (code != SONDE_OK)
            return code;
    }
    if (!p->error && (!p->receives || p->bytes <= p->room))
        return SONDE_OK;
    if (!p->error || p->error == FI_ETRUNC) {
        struct sonde_status got;
        envelope(p, &got);
        *r->error = (struct sonde_error){.rank = got.from, .tag = got.tag, .bytes = got.bytes > p->room ? got.bytes : 0, .room = p->room};
        return SONDE_TRUNCATED;
    }
    if (p->error == FI_ECONNRESET || p->error == FI_ENOTCONN || p->error == FI_ECONNABORTED || p->error == FI_EHOSTUNREACH) {
        r->error->rank = p->peer;
        return fail(r->error, SONDE_LOST, what, fi_strerror(p->error));
    }
    return refused(r, p->error, what);
}

static int32_t begin(struct sonde_rank *r, uint32_t comm, uint32_t receives, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                     struct posted *p)
{
    uint64_t until = 0;
    p->done = p->error = 0;
    p->receives = receives;
    p->peer = peer;
    p->room = bytes;
    p->tag = tag_of(comm, receives ? peer : r->rank, tag);
    for (uint64_t turns = 0;; turns++) {
        ssize_t rc;
        if (receives && r->spill) {
            struct iovec parts[2] = {{data, bytes}, {r->spill, SPILL}};
            rc = fi_trecvv(r->ep, bytes ? parts : parts + 1, NULL, bytes ? 2 : 1, FI_ADDR_UNSPEC, p->tag, ignore_of(peer, tag), &p->context);
        } else if (receives)
            rc = fi_trecv(r->ep, data, bytes, NULL, FI_ADDR_UNSPEC, p->tag, ignore_of(peer, tag), &p->context);
        else if (bytes <= r->info->tx_attr->inject_size) {
            rc = fi_tinject(r->ep, data, bytes, r->addresses[peer], p->tag);
            p->done = rc == 0;
        } else
            rc = fi_tsend(r->ep, data, bytes, NULL, r->addresses[peer], p->tag, &p->context);
        if (rc == 0)
            return SONDE_OK;
        if (rc != -FI_EAGAIN)
            return refused(r, (int)rc, receives ? "fi_trecv" : "fi_tsend");
        int32_t code = again(r, turns, &until, bytes, peer, receives ? "receiving" : "sending");
        if (code != SONDE_OK)
            return code;
    }
}

static struct posted *fresh(struct sonde_rank *r)
{
    struct posted *p = r->spare ? r->spare : malloc(sizeof *p);
    if (p && p == r->spare)
        r->spare = p->next;
    return p;
}

static void back(struct sonde_rank *r, struct posted *p)
{
    p->next = r->spare;
    r->spare = p;
}

/* One transfer from begin to end. What fails otherwise than by its length stays with the provider. */
static int32_t whole(struct sonde_rank *r, uint32_t comm, uint32_t receives, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                     struct sonde_status *status)
{
    struct posted *p = fresh(r);
    if (!p)
        return fail(r->error, SONDE_REFUSED, "a transfer", "no memory");
    int32_t code = begin(r, comm, receives, peer, tag, data, bytes, p);
    if (code == SONDE_OK)
        code = finished(r, p, receives ? "receiving" : "sending");
    if (code == SONDE_OK && receives)
        envelope(p, status);
    if (code == SONDE_OK || code == SONDE_TRUNCATED)
        back(r, p);
    return code;
}

static int32_t ofi_send(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes)
{
    return whole(r, comm, 0, to, tag, (void *)data, bytes, NULL);
}

static int32_t ofi_recv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                        struct sonde_status *status)
{
    return whole(r, comm, 1, from, tag, data, room, status);
}

static int32_t ofi_exchange(struct sonde_rank *r, uint32_t comm, struct sonde_op *ops, uint64_t count)
{
    struct posted *few[FEW], **posted = few;
    int32_t code = SONDE_OK;
    uint64_t begun = 0;
    if (count > FEW && !(posted = malloc(count * sizeof *posted)))
        return fail(r->error, SONDE_REFUSED, "exchange", "no memory");
    for (; begun < count && code == SONDE_OK; begun++)
        code = (posted[begun] = fresh(r)) ? begin(r, comm, ops[begun].kind, ops[begun].peer, ops[begun].tag, ops[begun].data, ops[begun].bytes, posted[begun])
                                          : fail(r->error, SONDE_REFUSED, "exchange", "no memory");
    /* One that does not fit is told when the others are done. */
    for (uint64_t i = 0; i < begun && (code == SONDE_OK || code == SONDE_TRUNCATED); i++) {
        int32_t one = finished(r, posted[i], "exchanging");
        if (one != SONDE_OK)
            code = one;
        else if (ops[i].kind == 1)
            envelope(posted[i], &ops[i].status);
        if (one == SONDE_OK || one == SONDE_TRUNCATED)
            back(r, posted[i]);
    }
    if (posted != few)
        free(posted);
    return code;
}

static int32_t post(struct sonde_rank *r, uint32_t comm, uint32_t receives, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                    uint64_t *request)
{
    struct posted *p = fresh(r);
    *request = (uint64_t)(uintptr_t)p;
    return p ? begin(r, comm, receives, peer, tag, data, bytes, p) : fail(r->error, SONDE_REFUSED, "posting a transfer", "no memory");
}

static int32_t ofi_isend(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes, uint64_t *request)
{
    return post(r, comm, 0, to, tag, (void *)data, bytes, request);
}

static int32_t ofi_irecv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room, uint64_t *request)
{
    return post(r, comm, 1, from, tag, data, room, request);
}

static int32_t ofi_wait(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request;
    int32_t code = finished(r, p, "waiting");
    if (code == SONDE_OK && p->receives)
        envelope(p, status);
    if (code == SONDE_OK || code == SONDE_TRUNCATED)
        back(r, p);
    return code;
}

static int32_t ofi_test(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request;
    int32_t code = p->done ? SONDE_OK : turn(r);
    if (code != SONDE_OK)
        return code;
    return p->done ? ofi_wait(r, request, status) : SONDE_NOT;
}

static int has_probe(const struct sonde_rank *r)
{
    const char *name = r->info->fabric_attr->prov_name;
    return strstr(name, "rxm") || strstr(name, "rxd");
}

static int32_t ofi_iprobe(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, struct sonde_status *status)
{
    if (!has_probe(r))
        return fail(r->error, SONDE_MISSING, "call to probe for a message without receiving it", "");
    struct posted *p = fresh(r);
    if (!p)
        return fail(r->error, SONDE_REFUSED, "iprobe", "no memory");
    *p = (struct posted){.receives = 1, .peer = from};
    struct fi_msg_tagged message = {.addr = FI_ADDR_UNSPEC, .tag = tag_of(comm, from, tag), .ignore = ignore_of(from, tag), .context = &p->context};
    int32_t code = turn(r); /* what came lies in the provider until its queue is read */
    ssize_t rc = code == SONDE_OK ? fi_trecvmsg(r->ep, &message, FI_PEEK) : 0;
    if (code != SONDE_OK || rc == -FI_EAGAIN || rc == -FI_ENOMSG) {
        back(r, p);
        return code != SONDE_OK ? code : SONDE_NOT;
    }
    if (rc != 0)
        return refused(r, (int)rc, "fi_trecvmsg");
    uint64_t until = 0;
    for (uint64_t turns = 0; !p->done; turns++)
        if ((code = again(r, turns, &until, 0, from, "looking for a message")) != SONDE_OK)
            return code;
    int error = p->error;
    envelope(p, status);
    back(r, p);
    return error == FI_ENOMSG ? SONDE_NOT : error ? refused(r, error, "looking for a message") : SONDE_OK;
}

static int32_t ofi_progress(struct sonde_rank *r)
{
    if (r->lost && *r->lost >= 0) {
        r->error->rank = *r->lost;
        return fail(r->error, SONDE_LOST, "moving messages", "its process ended");
    }
    return turn(r);
}

static int32_t ofi_split(struct sonde_rank *r, uint32_t comm, int32_t colour, int32_t key, uint32_t *new_comm)
{
    (void)comm, (void)colour, (void)key, (void)new_comm;
    return fail(r->error, SONDE_MISSING, "groups", "");
}

static int32_t ofi_collective(struct sonde_rank *r, uint32_t comm, struct sonde_collective *call)
{
    (void)r, (void)comm, (void)call;
    return SONDE_NOT;
}

static int32_t ofi_memory(struct sonde_rank *r, uint32_t mem_kind)
{
    return mem_kind == SONDE_HOST ? SONDE_OK : fail(r->error, SONDE_MISSING, "memory other than the host's", "");
}

static int32_t ofi_group(struct sonde_rank *r, uint32_t comm, int32_t *rank, int32_t *ranks)
{
    (void)comm;
    *rank = r->rank;
    *ranks = r->ranks;
    return SONDE_OK;
}

static int32_t ofi_about(struct sonde_rank *r, struct sonde_about *about)
{
    about->rank = r->rank;
    about->ranks = r->ranks;
    about->thread_level = SONDE_SERIALIZED;
    about->capabilities = SONDE_BOUNDED | (has_probe(r) ? SONDE_PROBE | SONDE_WILDCARDS : 0);
    about->collectives = 0;
    about->mem_kinds = 1u << SONDE_HOST;
    about->message_bytes_max = r->info->ep_attr->max_msg_size;
    about->tag_max = (uint32_t)TAG_MASK;
    return SONDE_OK;
}

static int32_t ofi_facts(struct sonde_rank *r, void (*tell)(void *, const char *, const char *), void *to)
{
    char version[32];
    uint32_t number = fi_version();
    snprintf(version, sizeof version, "%u.%u", FI_MAJOR(number), FI_MINOR(number));
    tell(to, "library", "ofi");
    tell(to, "version", version);
    tell(to, "provider", r->info->fabric_attr->prov_name);
    tell(to, "transport", r->info->fabric_attr->prov_name);
    tell(to, "domain", r->info->domain_attr->name);
    tell(to, "thread_level", "serialized");
    tell(to, "idle", r->spins == UINT64_MAX ? "spin" : r->spins ? "auto" : "yield");
    return SONDE_OK;
}

static void ofi_abort(struct sonde_rank *r, const char *why)
{
    (void)r; /* the others learn it from the end of this process */
    fprintf(stderr, "ofi: %s\n", why);
}

static int32_t ofi_finish(struct sonde_rank *r)
{
    unsigned char mine = 0, *all = calloc((size_t)r->ranks, 1);
    int32_t code = SONDE_OK;
    /* What was injected leaves by turns of the queue. */
    for (int i = 0; i < 1024 && code == SONDE_OK; i++)
        code = turn(r);
    if (code == SONDE_OK && all)
        code = r->exchange(r->exchange_to, &mine, 1, all);
    free(all);
    if (code != SONDE_OK)
        return code;
    fi_close(&r->ep->fid);
    fi_close(&r->cq->fid);
    fi_close(&r->av->fid);
    fi_close(&r->domain->fid);
    fi_close(&r->fabric->fid);
    fi_freeinfo(r->info);
    if (r->spill)
        munmap(r->spill, SPILL);
    while (r->spare) {
        struct posted *next = r->spare->next;
        free(r->spare);
        r->spare = next;
    }
    free(r->addresses);
    free(r);
    return SONDE_OK;
}

static int32_t options(struct sonde_rank *r, const char *const *option, struct fi_info *hints, const char **address)
{
    static const char *const all = "the options of ofi are: transport, provider, address, idle";
    static const char *const known[][2] = {{"tcp", "tcp;ofi_rxm"}, {"shm", "shm"}, {"udp", "udp;ofi_rxd"}};
    const char *provider = "tcp;ofi_rxm";
    for (; option && option[0]; option += 2) {
        if (!strcmp(option[0], "transport")) {
            provider = NULL;
            for (int i = 0; i < 3; i++)
                if (!strcmp(option[1], known[i][0]))
                    provider = known[i][1];
            if (!provider)
                return fail(r->error, SONDE_ARGUMENT, "transport", "it is tcp, shm or udp; others by the option provider");
        } else if (!strcmp(option[0], "provider"))
            provider = option[1];
        else if (!strcmp(option[0], "address"))
            *address = option[1];
        else if (strcmp(option[0], "idle"))
            return fail(r->error, SONDE_ARGUMENT, option[0], all);
        else if (!strcmp(option[1], "spin"))
            r->spins = UINT64_MAX;
        else if (!strcmp(option[1], "yield"))
            r->spins = 0;
        else if (strcmp(option[1], "auto"))
            return fail(r->error, SONDE_ARGUMENT, "idle", "it is auto, spin or yield");
    }
    hints->fabric_attr->prov_name = strdup(provider);
    return SONDE_OK;
}

/* Endpoint, queue and table of addresses. */
static int build(struct sonde_rank *r, const char **what)
{
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = (size_t)r->ranks};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};
    int rc;
    if ((*what = "fi_fabric", rc = fi_fabric(r->info->fabric_attr, &r->fabric, NULL)) ||
        (*what = "fi_domain", rc = fi_domain(r->fabric, r->info, &r->domain, NULL)) ||
        (*what = "fi_av_open", rc = fi_av_open(r->domain, &av, &r->av, NULL)) ||
        (*what = "fi_cq_open", rc = fi_cq_open(r->domain, &cq, &r->cq, NULL)) ||
        (*what = "fi_endpoint", rc = fi_endpoint(r->domain, r->info, &r->ep, NULL)) ||
        (*what = "fi_ep_bind", rc = fi_ep_bind(r->ep, &r->av->fid, 0)) ||
        (*what = "fi_ep_bind", rc = fi_ep_bind(r->ep, &r->cq->fid, FI_TRANSMIT | FI_RECV)) || (*what = "fi_enable", rc = fi_enable(r->ep)))
        return rc;
    return 0;
}

static int32_t meet(struct sonde_rank *r)
{
    unsigned char own[512] = {0}, *all = calloc((size_t)r->ranks, sizeof own);
    size_t bytes = sizeof own;
    r->addresses = calloc((size_t)r->ranks, sizeof *r->addresses);
    if (!all || !r->addresses)
        return fail(r->error, SONDE_REFUSED, "open", "no memory");
    int rc = fi_getname(&r->ep->fid, own, &bytes);
    int32_t code = rc ? refused(r, rc, "fi_getname") : r->exchange(r->exchange_to, own, sizeof own, all);
    for (int i = 0; i < r->ranks && code == SONDE_OK; i++)
        if ((rc = fi_av_insert(r->av, all + (size_t)i * sizeof own, 1, &r->addresses[i], 0, NULL)) != 1)
            code = refused(r, rc < 0 ? rc : FI_EIO, "fi_av_insert");
    /* None sends to one that does not know it yet. */
    if (code == SONDE_OK)
        code = r->exchange(r->exchange_to, own, 1, all);
    free(all);
    return code;
}

static int32_t ofi_open(const struct sonde_start *start, struct sonde_rank **rank)
{
    const char *address = NULL, *what = "fi_getinfo";
    struct sonde_rank *r = calloc(1, sizeof *r);
    struct fi_info *hints = fi_allocinfo();
    if (!r || !hints || start->size < sizeof *start)
        return fail(start->error, SONDE_ARGUMENT, "the start", "it is of another version");
    if (!start->exchange || start->rank < 0 || start->ranks < 1 || (uint64_t)start->ranks > TAG_MASK)
        return fail(start->error, SONDE_ARGUMENT, "the start", "ranks of libfabric must be told rank, ranks and a way to exchange addresses");
    r->error = start->error;
    r->lost = start->lost;
    r->timeout_ns = start->timeout_ns;
    r->rank = start->rank;
    r->ranks = start->ranks;
    r->exchange = start->exchange;
    r->exchange_to = start->exchange_to;
    cpu_set_t cpus;
    r->spins = sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1 ? 0 : SPINS;
    int32_t code = options(r, start->options, hints, &address);
    if (code != SONDE_OK)
        return code;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    int rc = fi_getinfo(FI_VERSION(1, 9), address, NULL, address ? FI_SOURCE : 0, hints, &r->info);
    if (rc == 0)
        rc = build(r, &what);
    if (rc == 0 && strstr(r->info->fabric_attr->prov_name, "rxm") && r->info->rx_attr->iov_limit > 1) {
        r->spill = mmap(NULL, SPILL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (r->spill == MAP_FAILED)
            r->spill = NULL;
    }
    char why[256];
    snprintf(why, sizeof why, "provider %s: %s", hints->fabric_attr->prov_name, fi_strerror(-rc));
    fi_freeinfo(hints);
    if (rc != 0)
        return fail(r->error, SONDE_REFUSED, what, why);
    if ((code = meet(r)) == SONDE_OK)
        *rank = r;
    return code;
}

static const struct sonde_adapter table = {
    .abi = SONDE_ADAPTER_ABI,
    .size = sizeof table,
    .name = "ofi",
    .open = ofi_open,
    .about = ofi_about,
    .facts = ofi_facts,
    .memory = ofi_memory,
    .group = ofi_group,
    .send = ofi_send,
    .recv = ofi_recv,
    .exchange = ofi_exchange,
    .isend = ofi_isend,
    .irecv = ofi_irecv,
    .test = ofi_test,
    .wait = ofi_wait,
    .iprobe = ofi_iprobe,
    .split = ofi_split,
    .collective = ofi_collective,
    .progress = ofi_progress,
    .abort = ofi_abort,
    .finish = ofi_finish,
};

const struct sonde_adapter *sonde_adapter(uint32_t abi)
{
    return abi == SONDE_ADAPTER_ABI ? &table : NULL;
}

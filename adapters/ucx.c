/* UCX: tagged messages of UCP.
 *
 * Model:  ranks exchange the addresses of their workers; an endpoint is made with the first message to a rank. A tag of UCX
 *         is 16 bits of the group, 24 of the sender in the world, 24 of the tag, so that wildcards are masks. Transfers are
 *         begun without blocking and the worker is moved on until they are done; the clock is read now and then.
 * Source: UCX 1.13 ucp/api/ucp.h. Options: transport (UCX_TLS; cma and its control messages: posix), device
 *         (UCX_NET_DEVICES), idle=auto|spin|yield.
 * Found:  a receive that is done at once leaves recv_info.tag_info as it was (1.13.1, against its header), so none is let
 *         be done at once. Shared memory tells nothing of a peer that ended: `lost` does. What really ran is in what an endpoint prints of
 *         itself; the fact is complete after the first message only. posix and cma need both processes in one user
 *         namespace. A flush over tcp is done when the other side has moved its worker on: who waited for the end by other means than
 *         messages left those that flushed waiting for ever, one time in two.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include "sonde_adapter.h"

#define TAG_BITS 24
#define TAG_MASK ((1ull << TAG_BITS) - 1)
#define SPINS 2000u
#define FEW 16
/* A group that no split makes: of the messages by which ranks end together. */
#define ENDING 0xfffeu

/* A transfer under way; `request` is null where it was done at once. */
struct posted {
    struct posted *next;
    void *request;
    ucp_tag_recv_info_t info;
    uint64_t room;
    int32_t peer;
    uint32_t receives;
};

struct sonde_rank {
    struct sonde_error *error;
    const volatile int32_t *lost;
    uint64_t timeout_ns, spins;
    int rank, ranks;
    int32_t (*exchange)(void *, const void *, uint64_t, void *);
    void *exchange_to;
    ucp_context_h context;
    ucp_worker_h worker;
    unsigned char *addresses; /* of all ranks, each padded to `stride` */
    uint64_t stride;
    ucp_ep_h *endpoints;
    struct posted *spare;
    char asked[128];
};

static int32_t fail(struct sonde_error *e, int32_t code, const char *what, const char *why)
{
    snprintf(e->what, sizeof e->what, "%s", what);
    snprintf(e->why, sizeof e->why, "%s", why);
    return code;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int32_t refused(struct sonde_rank *r, ucs_status_t status, int32_t peer, const char *what)
{
    if (status == UCS_ERR_CONNECTION_RESET || status == UCS_ERR_ENDPOINT_TIMEOUT || status == UCS_ERR_NOT_CONNECTED) {
        r->error->rank = peer;
        return fail(r->error, SONDE_LOST, what, ucs_status_string(status));
    }
    return fail(r->error, SONDE_REFUSED, what, ucs_status_string(status));
}

static uint64_t tag_of(uint32_t comm, int32_t from, int32_t tag)
{
    return (uint64_t)comm << 48 | (from == SONDE_ANY ? 0 : (uint64_t)from << TAG_BITS) | (tag == SONDE_ANY ? 0 : (uint64_t)tag);
}

static uint64_t mask_of(int32_t from, int32_t tag)
{
    return 0xffffull << 48 | (from == SONDE_ANY ? 0 : TAG_MASK << TAG_BITS) | (tag == SONDE_ANY ? 0 : TAG_MASK);
}

static void envelope(const ucp_tag_recv_info_t *info, struct sonde_status *status)
{
    *status = (struct sonde_status){.from = (int32_t)(info->sender_tag >> TAG_BITS & TAG_MASK),
                                    .tag = (uint32_t)(info->sender_tag & TAG_MASK), .bytes = info->length};
}

/* Moves the worker until the transfer is done. */
static int32_t finished(struct sonde_rank *r, struct posted *p, uint64_t bytes, const char *what)
{
    uint64_t until = 0;
    ucs_status_t status = UCS_OK;
    for (uint64_t turns = 0; p->request; turns++) {
        status = UCS_PTR_IS_ERR(p->request) ? UCS_PTR_STATUS(p->request)
                 : p->receives              ? ucp_tag_recv_request_test(p->request, &p->info)
                                            : ucp_request_check_status(p->request);
        if (status != UCS_INPROGRESS) {
            if (!UCS_PTR_IS_ERR(p->request))
                ucp_request_free(p->request);
            p->request = NULL;
            break;
        }
        ucp_worker_progress(r->worker);
        int yields = turns >= r->spins;
        if (yields)
            sched_yield();
        if ((turns + 1) % (yields ? 64 : 1024))
            continue;
        if (r->lost && *r->lost >= 0) {
            r->error->rank = *r->lost;
            return fail(r->error, SONDE_LOST, what, "its process ended");
        }
        uint64_t now = now_ns();
        if (!until)
            until = now + r->timeout_ns + bytes * SONDE_NS_A_BYTE;
        else if (now > until) {
            r->error->rank = p->peer;
            return fail(r->error, SONDE_SILENT, what, "");
        }
    }
    if (status == UCS_OK)
        return SONDE_OK;
    if (status != UCS_ERR_MESSAGE_TRUNCATED)
        return refused(r, status, p->peer, what);
    struct sonde_status got;
    envelope(&p->info, &got);
    *r->error = (struct sonde_error){.rank = got.from, .tag = got.tag, .bytes = got.bytes > p->room ? got.bytes : 0, .room = p->room};
    return SONDE_TRUNCATED;
}

static ucp_ep_h endpoint(struct sonde_rank *r, int32_t to, ucs_status_t *status)
{
    *status = UCS_OK;
    if (!r->endpoints[to]) {
        ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                  .address = (const ucp_address_t *)(r->addresses + (uint64_t)to * r->stride)};
        *status = ucp_ep_create(r->worker, &params, &r->endpoints[to]);
    }
    return r->endpoints[to];
}

static int32_t begin(struct sonde_rank *r, uint32_t comm, uint32_t receives, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                     struct posted *p)
{
    ucs_status_t status = UCS_OK;
    p->peer = peer;
    p->room = bytes;
    p->receives = receives;
    if (receives) {
        ucp_request_param_t params = {.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL};
        p->request = ucp_tag_recv_nbx(r->worker, data, bytes, tag_of(comm, peer, tag), mask_of(peer, tag), &params);
    } else {
        ucp_request_param_t params = {.op_attr_mask = 0};
        ucp_ep_h to = endpoint(r, peer, &status);
        if (status != UCS_OK)
            return refused(r, status, peer, "ucp_ep_create");
        p->request = ucp_tag_send_nbx(to, data, bytes, tag_of(comm, r->rank, tag), &params);
    }
    return SONDE_OK;
}

static int32_t ucx_send(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes)
{
    struct posted p;
    int32_t code = begin(r, comm, 0, to, tag, (void *)data, bytes, &p);
    return code == SONDE_OK ? finished(r, &p, bytes, "sending") : code;
}

static int32_t ucx_recv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                        struct sonde_status *status)
{
    struct posted p;
    int32_t code = begin(r, comm, 1, from, tag, data, room, &p);
    if (code == SONDE_OK)
        code = finished(r, &p, room, "receiving");
    if (code == SONDE_OK)
        envelope(&p.info, status);
    return code;
}

static int32_t ucx_exchange(struct sonde_rank *r, uint32_t comm, struct sonde_op *ops, uint64_t count)
{
    struct posted few[FEW], *posted = few;
    int32_t code = SONDE_OK;
    uint64_t begun = 0;
    if (count > FEW && !(posted = malloc(count * sizeof *posted)))
        return fail(r->error, SONDE_REFUSED, "exchange", "no memory");
    for (; begun < count && code == SONDE_OK; begun++)
        code = begin(r, comm, ops[begun].kind, ops[begun].peer, ops[begun].tag, ops[begun].data, ops[begun].bytes, &posted[begun]);
    /* One that does not fit is told when the others are done. */
    for (uint64_t i = 0; i < begun && (code == SONDE_OK || code == SONDE_TRUNCATED); i++) {
        int32_t one = finished(r, &posted[i], ops[i].bytes, "exchanging");
        if (one != SONDE_OK)
            code = one;
        else if (ops[i].kind == 1)
            envelope(&posted[i].info, &ops[i].status);
    }
    if (posted != few && (code == SONDE_OK || code == SONDE_TRUNCATED))
        free(posted); /* else a transfer may still write into it */
    return code;
}

static int32_t post(struct sonde_rank *r, uint32_t comm, uint32_t receives, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                    uint64_t *request)
{
    struct posted *p = r->spare ? r->spare : malloc(sizeof *p);
    if (!p)
        return fail(r->error, SONDE_REFUSED, "posting a transfer", "no memory");
    r->spare = p == r->spare ? p->next : r->spare;
    *request = (uint64_t)(uintptr_t)p;
    return begin(r, comm, receives, peer, tag, data, bytes, p);
}

static int32_t ucx_isend(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes, uint64_t *request)
{
    return post(r, comm, 0, to, tag, (void *)data, bytes, request);
}

static int32_t ucx_irecv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room, uint64_t *request)
{
    return post(r, comm, 1, from, tag, data, room, request);
}

static int32_t ucx_wait(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request;
    int32_t code = finished(r, p, p->room, "waiting");
    if (code == SONDE_OK && p->receives)
        envelope(&p->info, status);
    if (code == SONDE_OK || code == SONDE_TRUNCATED) {
        p->next = r->spare;
        r->spare = p;
    }
    return code;
}

static int32_t ucx_test(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request;
    ucp_worker_progress(r->worker);
    if (p->request && !UCS_PTR_IS_ERR(p->request) && ucp_request_check_status(p->request) == UCS_INPROGRESS)
        return SONDE_NOT;
    return ucx_wait(r, request, status);
}

static int32_t ucx_iprobe(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, struct sonde_status *status)
{
    ucp_tag_recv_info_t info;
    ucp_worker_progress(r->worker);
    if (!ucp_tag_probe_nb(r->worker, tag_of(comm, from, tag), mask_of(from, tag), 0, &info))
        return SONDE_NOT;
    envelope(&info, status);
    return SONDE_OK;
}

static int32_t ucx_progress(struct sonde_rank *r)
{
    ucp_worker_progress(r->worker);
    if (r->lost && *r->lost >= 0) {
        r->error->rank = *r->lost;
        return fail(r->error, SONDE_LOST, "moving messages", "its process ended");
    }
    return SONDE_OK;
}

static int32_t ucx_split(struct sonde_rank *r, uint32_t comm, int32_t colour, int32_t key, uint32_t *new_comm)
{
    (void)comm, (void)colour, (void)key, (void)new_comm;
    return fail(r->error, SONDE_MISSING, "groups", "");
}

static int32_t ucx_collective(struct sonde_rank *r, uint32_t comm, struct sonde_collective *call)
{
    (void)r, (void)comm, (void)call;
    return SONDE_NOT;
}

static int32_t ucx_memory(struct sonde_rank *r, uint32_t mem_kind)
{
    return mem_kind == SONDE_HOST ? SONDE_OK : fail(r->error, SONDE_MISSING, "memory other than the host's", "");
}

static int32_t ucx_group(struct sonde_rank *r, uint32_t comm, int32_t *rank, int32_t *ranks)
{
    (void)comm;
    *rank = r->rank;
    *ranks = r->ranks;
    return SONDE_OK;
}

static int32_t ucx_about(struct sonde_rank *r, struct sonde_about *about)
{
    about->rank = r->rank;
    about->ranks = r->ranks;
    about->thread_level = SONDE_SERIALIZED;
    about->capabilities = SONDE_WILDCARDS | SONDE_PROBE | SONDE_BOUNDED;
    about->collectives = 0;
    about->mem_kinds = 1u << SONDE_HOST;
    about->message_bytes_max = INT64_MAX;
    about->tag_max = (uint32_t)TAG_MASK;
    return SONDE_OK;
}

/* Adds `item` to a list with commas, once. */
static void add(char *list, size_t room, const char *item, size_t bytes)
{
    char one[64];
    snprintf(one, sizeof one, "%.*s", (int)bytes, item);
    for (const char *at = list; (at = strstr(at, one)); at += strlen(one))
        if ((at == list || at[-1] == ',') && (at[strlen(one)] == 0 || at[strlen(one)] == ','))
            return;
    size_t used = strlen(list);
    snprintf(list + used, room - used, "%s%s", used ? "," : "", one);
}

static int32_t ucx_facts(struct sonde_rank *r, void (*tell)(void *, const char *, const char *), void *to)
{
    char transports[128] = "", lanes[256] = "", *text = NULL;
    size_t bytes = 0;
    tell(to, "library", "ucx");
    tell(to, "version", ucp_get_version_string());
    tell(to, "asked", r->asked);
    FILE *memory = open_memstream(&text, &bytes);
    for (int i = 0; memory && i < r->ranks; i++)
        if (r->endpoints[i] && i != r->rank)
            ucp_ep_print_info(r->endpoints[i], memory);
    if (memory)
        fclose(memory);
    /* "lane[0]:  1:posix/memory.0 md[1] -> ..." */
    for (char *at = text; at && (at = strstr(at, "lane["));) {
        char *lane = strchr(at, ':');
        lane = lane ? strchr(lane + 1, ':') : NULL;
        at += 5;
        if (lane) {
            add(transports, sizeof transports, lane + 1, strcspn(lane + 1, "/ \n"));
            add(lanes, sizeof lanes, lane + 1, strcspn(lane + 1, ". \n"));
        }
    }
    free(text);
    tell(to, "transport", transports[0] ? transports : "no message to another rank yet");
    tell(to, "provider", lanes);
    tell(to, "thread_level", "serialized");
    tell(to, "idle", r->spins == UINT64_MAX ? "spin" : r->spins ? "auto" : "yield");
    return SONDE_OK;
}

static void ucx_abort(struct sonde_rank *r, const char *why)
{
    (void)r; /* the others learn it from the end of this process */
    fprintf(stderr, "ucx: %s\n", why);
}

/* All have come so far, as messages tell it: whoever waits moves its worker on, without which no other's flush is done. */
static int32_t together(struct sonde_rank *r)
{
    struct sonde_status nobody;
    int32_t code = SONDE_OK;
    if (r->rank > 0)
        code = ucx_send(r, ENDING, 0, 0, NULL, 0);
    for (int from = 1; r->rank == 0 && from < r->ranks && code == SONDE_OK; from++)
        code = ucx_recv(r, ENDING, from, 0, NULL, 0, &nobody);
    for (int to = 1; r->rank == 0 && to < r->ranks && code == SONDE_OK; to++)
        code = ucx_send(r, ENDING, to, 0, NULL, 0);
    return r->rank > 0 && code == SONDE_OK ? ucx_recv(r, ENDING, 0, 0, NULL, 0, &nobody) : code;
}

/* What was sent leaves first; none ends while another still needs it. */
static int32_t ucx_finish(struct sonde_rank *r)
{
    ucp_request_param_t params = {.op_attr_mask = 0};
    struct posted flush = {.request = ucp_worker_flush_nbx(r->worker, &params), .peer = SONDE_ANY};
    int32_t code = finished(r, &flush, 0, "flushing");
    if (code == SONDE_OK)
        code = together(r);
    unsigned char mine = 0, *all = calloc((size_t)r->ranks, 1);
    if (code == SONDE_OK && all)
        code = r->exchange(r->exchange_to, &mine, 1, all);
    free(all);
    if (code != SONDE_OK)
        return code;
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS, .flags = UCP_EP_CLOSE_FLAG_FORCE};
    for (int i = 0; i < r->ranks; i++)
        if (r->endpoints[i]) {
            struct posted closing = {.request = ucp_ep_close_nbx(r->endpoints[i], &force), .peer = i};
            finished(r, &closing, 0, "closing");
        }
    ucp_worker_destroy(r->worker);
    ucp_cleanup(r->context);
    while (r->spare) {
        struct posted *next = r->spare->next;
        free(r->spare);
        r->spare = next;
    }
    free(r->addresses);
    free(r->endpoints);
    free(r);
    return SONDE_OK;
}

static int32_t options(struct sonde_rank *r, const char *const *option, ucp_config_t *config)
{
    static const char *const all = "the options of ucx are: transport, device, idle";
    ucs_status_t status = UCS_OK;
    for (; option && option[0] && status == UCS_OK; option += 2) {
        if (!strcmp(option[0], "transport")) {
            snprintf(r->asked, sizeof r->asked, "%s%s,self", option[1], strcmp(option[1], "cma") ? "" : ",posix");
            status = ucp_config_modify(config, "TLS", r->asked);
        } else if (!strcmp(option[0], "device"))
            status = ucp_config_modify(config, "NET_DEVICES", option[1]);
        else if (strcmp(option[0], "idle"))
            return fail(r->error, SONDE_ARGUMENT, option[0], all);
        else if (!strcmp(option[1], "spin"))
            r->spins = UINT64_MAX;
        else if (!strcmp(option[1], "yield"))
            r->spins = 0;
        else if (strcmp(option[1], "auto"))
            return fail(r->error, SONDE_ARGUMENT, "idle", "it is auto, spin or yield");
        if (status != UCS_OK)
            return fail(r->error, SONDE_ARGUMENT, option[0], ucs_status_string(status));
    }
    return SONDE_OK;
}

/* Context and worker, and the addresses of all. */
static int32_t meet(struct sonde_rank *r, ucp_config_t *config)
{
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS, .features = UCP_FEATURE_TAG,
                           .estimated_num_eps = (size_t)r->ranks};
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SERIALIZED};
    ucp_address_t *own = NULL;
    size_t bytes = 0;
    ucs_status_t status = ucp_init(&params, config, &r->context);
    if (status != UCS_OK)
        return refused(r, status, -1, "ucp_init");
    if ((status = ucp_worker_create(r->context, &worker, &r->worker)) != UCS_OK ||
        (status = ucp_worker_get_address(r->worker, &own, &bytes)) != UCS_OK)
        return refused(r, status, -1, "ucp_worker_create");
    uint64_t mine = bytes, *lengths = calloc((size_t)r->ranks, sizeof *lengths);
    if (!lengths)
        return fail(r->error, SONDE_REFUSED, "open", "no memory");
    int32_t code = r->exchange(r->exchange_to, &mine, sizeof mine, lengths);
    for (int i = 0; code == SONDE_OK && i < r->ranks; i++)
        r->stride = lengths[i] > r->stride ? lengths[i] : r->stride;
    free(lengths);
    unsigned char *padded = calloc(1, r->stride + 1);
    r->addresses = calloc((size_t)r->ranks, r->stride + 1);
    r->endpoints = calloc((size_t)r->ranks, sizeof *r->endpoints);
    if (code == SONDE_OK && (!padded || !r->addresses || !r->endpoints))
        code = fail(r->error, SONDE_REFUSED, "open", "no memory");
    if (code == SONDE_OK) {
        memcpy(padded, own, bytes);
        code = r->exchange(r->exchange_to, padded, r->stride, r->addresses);
    }
    free(padded);
    ucp_worker_release_address(r->worker, own);
    return code;
}

static int32_t ucx_open(const struct sonde_start *start, struct sonde_rank **rank)
{
    ucp_config_t *config = NULL;
    struct sonde_rank *r = calloc(1, sizeof *r);
    if (!r || start->size < sizeof *start)
        return fail(start->error, SONDE_ARGUMENT, "the start", "it is of another version");
    if (!start->exchange || start->rank < 0 || start->ranks < 1 || (uint64_t)start->ranks > TAG_MASK)
        return fail(start->error, SONDE_ARGUMENT, "the start", "ranks of UCX must be told rank, ranks and a way to exchange addresses");
    r->error = start->error;
    r->lost = start->lost;
    r->timeout_ns = start->timeout_ns;
    r->rank = start->rank;
    r->ranks = start->ranks;
    r->exchange = start->exchange;
    r->exchange_to = start->exchange_to;
    cpu_set_t cpus;
    r->spins = sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) == 1 ? 0 : SPINS;
    snprintf(r->asked, sizeof r->asked, "%s", getenv("UCX_TLS") ? getenv("UCX_TLS") : "all");
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK)
        return refused(r, status, -1, "ucp_config_read");
    int32_t code = options(r, start->options, config);
    if (code == SONDE_OK)
        code = meet(r, config);
    ucp_config_release(config);
    if (code == SONDE_OK)
        *rank = r;
    return code;
}

static const struct sonde_adapter table = {
    .abi = SONDE_ADAPTER_ABI,
    .size = sizeof table,
    .name = "ucx",
    .open = ucx_open,
    .about = ucx_about,
    .facts = ucx_facts,
    .memory = ucx_memory,
    .group = ucx_group,
    .send = ucx_send,
    .recv = ucx_recv,
    .exchange = ucx_exchange,
    .isend = ucx_isend,
    .irecv = ucx_irecv,
    .test = ucx_test,
    .wait = ucx_wait,
    .iprobe = ucx_iprobe,
    .split = ucx_split,
    .collective = ucx_collective,
    .progress = ucx_progress,
    .abort = ucx_abort,
    .finish = ucx_finish,
};

const struct sonde_adapter *sonde_adapter(uint32_t abi)
{
    return abi == SONDE_ADAPTER_ABI ? &table : NULL;
}

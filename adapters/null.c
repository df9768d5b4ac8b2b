/* An adapter that carries nothing: one rank that hands its messages back to itself.
 *
 * Model:  a list of messages that nobody has received and a list of posted receives. It shows what the table itself costs,
 *         and is the smallest example of an adapter.
 */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include "sonde_adapter.h"

struct letter {
    struct letter *next;
    uint32_t comm;
    int32_t tag;
    uint64_t bytes;
    unsigned char payload[];
};

/* A posted receive; `done` is SONDE_NOT until a message came. */
struct posted {
    struct posted *next;
    uint32_t comm;
    int32_t tag;
    int32_t done;
    void *data;
    uint64_t room;
    struct sonde_status status;
};

struct sonde_rank {
    struct letter *letters;
    struct posted *posted;
    struct letter *spare;
    struct sonde_error *error;
};

static int32_t fail(struct sonde_rank *r, int32_t code, const char *what, const char *why)
{
    snprintf(r->error->what, sizeof r->error->what, "%s", what);
    snprintf(r->error->why, sizeof r->error->why, "%s", why);
    return code;
}

static int32_t null_open(const struct sonde_start *start, struct sonde_rank **rank)
{
    struct sonde_rank *r = calloc(1, sizeof *r);
    if (!r)
        return SONDE_REFUSED;
    r->error = start->error;
    if (start->options && start->options[0]) {
        int32_t code = fail(r, SONDE_ARGUMENT, start->options[0], "the null adapter has no options");
        free(r);
        return code;
    }
    *rank = r;
    return SONDE_OK;
}

static int32_t null_about(struct sonde_rank *r, struct sonde_about *about)
{
    (void)r;
    about->rank = 0;
    about->ranks = 1;
    about->thread_level = SONDE_SERIALIZED;
    about->capabilities = SONDE_WILDCARDS | SONDE_PROBE | SONDE_BOUNDED;
    about->collectives = 0;
    about->mem_kinds = 1u << SONDE_HOST;
    about->message_bytes_max = UINT64_MAX / 2;
    about->tag_max = INT32_MAX;
    return SONDE_OK;
}

static int32_t null_facts(struct sonde_rank *r, void (*tell)(void *, const char *, const char *), void *to)
{
    (void)r;
    tell(to, "library", "null");
    tell(to, "version", "1");
    tell(to, "transport", "self");
    tell(to, "thread_level", "serialized");
    return SONDE_OK;
}

static int32_t null_memory(struct sonde_rank *r, uint32_t mem_kind)
{
    return mem_kind == SONDE_HOST ? SONDE_OK : fail(r, SONDE_MISSING, "memory other than the host's", "");
}

static int32_t null_group(struct sonde_rank *r, uint32_t comm, int32_t *rank, int32_t *ranks)
{
    (void)r;
    (void)comm;
    *rank = 0;
    *ranks = 1;
    return SONDE_OK;
}

static int32_t take(struct sonde_rank *r, int32_t tag, uint64_t bytes, const void *payload, void *data, uint64_t room,
                    struct sonde_status *status)
{
    *status = (struct sonde_status){.from = 0, .tag = (uint32_t)tag, .bytes = bytes};
    if (bytes > room) {
        *r->error = (struct sonde_error){.rank = 0, .tag = (uint32_t)tag, .bytes = bytes, .room = room};
        return SONDE_TRUNCATED;
    }
    if (bytes)
        memcpy(data, payload, bytes);
    return SONDE_OK;
}

static int32_t null_send(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes)
{
    (void)to;
    for (struct posted *p = r->posted; p; p = p->next)
        if (p->done == SONDE_NOT && p->comm == comm && (p->tag == SONDE_ANY || p->tag == tag)) {
            p->done = take(r, tag, bytes, data, p->data, p->room, &p->status);
            return SONDE_OK;
        }
    struct letter *letter = r->spare;
    r->spare = NULL;
    if (!letter || bytes > 64) {
        free(letter);
        letter = malloc(sizeof *letter + (bytes < 64 ? 64 : bytes));
    }
    if (!letter)
        return fail(r, SONDE_REFUSED, "send", "no memory");
    letter->next = NULL;
    letter->comm = comm;
    letter->tag = tag;
    letter->bytes = bytes;
    if (bytes)
        memcpy(letter->payload, data, bytes);
    struct letter **last = &r->letters;
    while (*last)
        last = &(*last)->next;
    *last = letter;
    return SONDE_OK;
}

static struct letter **first(struct sonde_rank *r, uint32_t comm, int32_t tag)
{
    struct letter **at = &r->letters;
    while (*at && ((*at)->comm != comm || (tag != SONDE_ANY && (*at)->tag != tag)))
        at = &(*at)->next;
    return at;
}

static int32_t null_iprobe(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, struct sonde_status *status)
{
    (void)from;
    struct letter *letter = *first(r, comm, tag);
    if (!letter)
        return SONDE_NOT;
    *status = (struct sonde_status){.from = 0, .tag = (uint32_t)letter->tag, .bytes = letter->bytes};
    return SONDE_OK;
}

static int32_t null_recv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                         struct sonde_status *status)
{
    (void)from;
    struct letter **at = first(r, comm, tag), *letter = *at;
    if (!letter) {
        /* Nobody else could send it. */
        r->error->rank = 0;
        return fail(r, SONDE_SILENT, "receiving", "");
    }
    *at = letter->next;
    int32_t code = take(r, letter->tag, letter->bytes, letter->payload, data, room, status);
    free(r->spare);
    r->spare = letter;
    return code;
}

static int32_t null_isend(struct sonde_rank *r, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                          uint64_t *request)
{
    *request = 0;
    return null_send(r, comm, to, tag, data, bytes);
}

static int32_t null_irecv(struct sonde_rank *r, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room,
                          uint64_t *request)
{
    struct posted *p = calloc(1, sizeof *p), **last = &r->posted;
    if (!p)
        return fail(r, SONDE_REFUSED, "irecv", "no memory");
    p->comm = comm;
    p->tag = tag;
    p->data = data;
    p->room = room;
    p->done = SONDE_NOT;
    if (*first(r, comm, tag))
        p->done = null_recv(r, comm, from, tag, data, room, &p->status);
    while (*last)
        last = &(*last)->next;
    *last = p;
    *request = (uint64_t)(uintptr_t)p;
    return SONDE_OK;
}

static int32_t null_test(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    struct posted *p = (struct posted *)(uintptr_t)*request, **at = &r->posted;
    if (!p)
        return SONDE_OK;
    if (p->done == SONDE_NOT)
        return SONDE_NOT;
    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    *status = p->status;
    int32_t code = p->done;
    if (code == SONDE_TRUNCATED)
        *r->error = (struct sonde_error){.rank = 0, .tag = p->status.tag, .bytes = p->status.bytes, .room = p->room};
    free(p);
    *request = 0;
    return code;
}

static int32_t null_wait(struct sonde_rank *r, uint64_t *request, struct sonde_status *status)
{
    int32_t code = null_test(r, request, status);
    if (code != SONDE_NOT)
        return code;
    r->error->rank = 0;
    return fail(r, SONDE_SILENT, "waiting", "");
}

static int32_t null_exchange(struct sonde_rank *r, uint32_t comm, struct sonde_op *ops, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (ops[i].kind == 0) {
            int32_t code = null_send(r, comm, ops[i].peer, ops[i].tag, ops[i].data, ops[i].bytes);
            if (code)
                return code;
        }
    for (uint64_t i = 0; i < count; i++)
        if (ops[i].kind == 1) {
            int32_t code = null_recv(r, comm, ops[i].peer, ops[i].tag, ops[i].data, ops[i].bytes, &ops[i].status);
            if (code)
                return code;
        }
    return SONDE_OK;
}

static int32_t null_split(struct sonde_rank *r, uint32_t comm, int32_t colour, int32_t key, uint32_t *new_comm)
{
    (void)comm;
    (void)colour;
    (void)key;
    (void)new_comm;
    return fail(r, SONDE_MISSING, "groups", "");
}

static int32_t null_collective(struct sonde_rank *r, uint32_t comm, struct sonde_collective *call)
{
    (void)r;
    (void)comm;
    (void)call;
    return SONDE_NOT;
}

static int32_t null_progress(struct sonde_rank *r)
{
    (void)r;
    return SONDE_OK;
}

static void null_abort(struct sonde_rank *r, const char *why)
{
    (void)r;
    fprintf(stderr, "null: %s\n", why);
}

static int32_t null_finish(struct sonde_rank *r)
{
    while (r->letters) {
        struct letter *next = r->letters->next;
        free(r->letters);
        r->letters = next;
    }
    while (r->posted) {
        struct posted *next = r->posted->next;
        free(r->posted);
        r->posted = next;
    }
    free(r->spare);
    free(r);
    return SONDE_OK;
}

static const struct sonde_adapter table = {
    .abi = SONDE_ADAPTER_ABI,
    .size = sizeof table,
    .name = "null",
    .open = null_open,
    .about = null_about,
    .facts = null_facts,
    .memory = null_memory,
    .group = null_group,
    .send = null_send,
    .recv = null_recv,
    .exchange = null_exchange,
    .isend = null_isend,
    .irecv = null_irecv,
    .test = null_test,
    .wait = null_wait,
    .iprobe = null_iprobe,
    .split = null_split,
    .collective = null_collective,
    .progress = null_progress,
    .abort = null_abort,
    .finish = null_finish,
};

const struct sonde_adapter *sonde_adapter(uint32_t abi)
{
    return abi == SONDE_ADAPTER_ABI ? &table : NULL;
}

/* What sonde and the adapter of a message-passing library say to each other.
 *
 * Model:  an adapter is a shared object with one entry, sonde_adapter(), which gives a table of functions. sonde refuses a
 *         table of another number (`abi`), a shorter one (`size`), and one in which a function is missing. What is added
 *         later stands at the end of the table, or is a new capability bit; what changes the meaning of what is here is a
 *         new number.
 * Rules:  fixed-width types only; no globals but the entry; all calls come from the thread that called `open`, unless a
 *         higher thread level was asked for and given; the adapter writes nothing to stdout. A call returns SONDE_OK,
 *         SONDE_NOT, or a negative number with the details in `error`. After SONDE_LOST, SONDE_SILENT and SONDE_REFUSED no
 *         call but `facts` and `abort` is made, so buffers of transfers under way are not touched any more.
 * Waits:  a call waits at most `timeout_ns` and SONDE_NS_A_BYTE for each byte that it moves. An adapter without
 *         SONDE_BOUNDED may not come back from its library in time: sonde's own watch then ends the process with an error.
 *         `lost` is looked at in every wait.
 * Units:  bytes; ranks count from zero; tags 0 to `tag_max`.
 */
#ifndef SONDE_ADAPTER_H
#define SONDE_ADAPTER_H

#include <stdint.h>

#define SONDE_ADAPTER_ABI 1u

/* Results. SONDE_NOT: test: not done yet; iprobe: nothing is there; split: no group for this rank; collective: the library
 * has none for it, nothing was done. */
#define SONDE_OK 0
#define SONDE_NOT 1
#define SONDE_LOST (-1)      /* a rank is gone: error.rank (in the world), error.why */
#define SONDE_SILENT (-2)    /* nothing came in time: error.rank */
#define SONDE_TRUNCATED (-3) /* error.rank, tag, bytes (0: the library does not tell), room */
#define SONDE_ARGUMENT (-4)  /* error.what, error.why */
#define SONDE_MISSING (-5)   /* error.what */
#define SONDE_REFUSED (-6)   /* error.what, error.why */

/* Capabilities. */
#define SONDE_WILDCARDS 1u    /* receives from any rank, of any tag */
#define SONDE_PROBE 2u        /* iprobe */
#define SONDE_ASYNCHRONOUS 4u /* messages move while the program is in no call */
#define SONDE_SPLIT 8u        /* has groups of its own: `comm` is what `split` gave, ranks are within it. Else `comm` is any
                                 number that keeps messages apart, and ranks are those of the world. */
#define SONDE_BOUNDED 16u     /* send, recv, exchange, wait keep the timeout by themselves */

/* Any source, any tag. */
#define SONDE_ANY (-1)

/* Where buffers lie: mem_kind. 1 and 2 are reserved for cuda and rocm. */
#define SONDE_HOST 0u

/* Thread levels, as in MPI: single, funneled, serialized, multiple. */
#define SONDE_SINGLE 0u
#define SONDE_FUNNELED 1u
#define SONDE_SERIALIZED 2u
#define SONDE_MULTIPLE 3u

/* What is waited for beside the timeout: as long as a byte takes at 1 Mbit/s. */
#define SONDE_NS_A_BYTE 8000u

/* Collectives, elements and operations have the numbers of sonde's `Kind`, `Element` and `Operation`. */
enum { SONDE_BARRIER, SONDE_BROADCAST, SONDE_REDUCE, SONDE_ALLREDUCE, SONDE_GATHER, SONDE_SCATTER, SONDE_ALLGATHER, SONDE_ALLTOALL, SONDE_SCAN };
enum { SONDE_U8, SONDE_I32, SONDE_I64, SONDE_F32, SONDE_F64, SONDE_ELEMENTS };
enum { SONDE_SUM, SONDE_PRODUCT, SONDE_MIN, SONDE_MAX, SONDE_AND, SONDE_OR, SONDE_OPERATIONS };

/* What went wrong. Texts end with a zero. */
struct sonde_error {
    int32_t rank;
    uint32_t tag;
    uint64_t bytes;
    uint64_t room;
    char what[64];
    char why[448];
};

/* What was received; of a send `from` is the receiver. */
struct sonde_status {
    int32_t from;
    uint32_t tag;
    uint64_t bytes;
};

/* One of several transfers. */
struct sonde_op {
    uint32_t kind; /* 0 send, 1 receive */
    int32_t peer;
    int32_t tag;
    uint32_t reserved;
    void *data;
    uint64_t bytes;
    struct sonde_status status;
};

/* A collective call. Data of a broadcast are in `output`; otherwise as in MPI. Of each call only what it needs is read. */
struct sonde_collective {
    uint32_t kind;
    uint32_t element;
    uint32_t operation;
    int32_t root;
    const void *input;
    void *output;
    uint64_t bytes;           /* of a broadcast or reduction */
    const uint64_t *sent;     /* bytes to each rank, or NULL: sent_each to all (scatter, alltoall) */
    const uint64_t *received; /* bytes from each rank, or NULL: received_each from all (gather, allgather, alltoall) */
    uint64_t sent_each;
    uint64_t received_each;
};

/* How a rank begins. */
struct sonde_start {
    uint32_t size; /* of this struct, in bytes */
    uint32_t thread_level;
    int32_t rank;  /* in the world, or -1 where the library knows */
    int32_t ranks; /* of the world, or -1 likewise; where the library spawns them: how many */
    uint64_t timeout_ns;
    const char *const *options; /* name, value, name, value, ..., NULL; an unknown one is refused */
    const char *const *command; /* program and arguments by which a library starts a further rank, ..., NULL; or NULL */
    /* Gives each rank's `len` bytes to all, in order of rank; `len` is the same on all ranks. NULL where there is no way
     * but the library's. Returns 0, or the negative result that `open` shall return. */
    int32_t (*exchange)(void *to, const void *mine, uint64_t len, void *all);
    void *exchange_to;
    const volatile int32_t *lost; /* -1, or the rank that is known to be gone */
    struct sonde_error *error;    /* what went wrong last; it outlives the rank */
};

/* What a rank is. */
struct sonde_about {
    uint32_t size; /* of this struct, as sonde knows it */
    int32_t rank;
    int32_t ranks;
    uint32_t thread_level; /* that was given */
    uint64_t capabilities;
    uint64_t collectives; /* bits 1 << kind */
    uint64_t mem_kinds;   /* bits 1 << mem_kind */
    uint64_t message_bytes_max;
    uint32_t tag_max;
    uint32_t reserved;
};

struct sonde_rank; /* the adapter's own */

struct sonde_adapter {
    uint32_t abi;  /* SONDE_ADAPTER_ABI */
    uint32_t size; /* of this table, in bytes */
    const char *name;
    int32_t (*open)(const struct sonde_start *start, struct sonde_rank **rank);
    int32_t (*about)(struct sonde_rank *, struct sonde_about *);
    /* By name: library, version, standard, transport, provider, thread_level, idle, pml, btl, mtl, device, asked, domain,
     * route, encoding, hosts, fragment_bytes. Another name is refused. */
    int32_t (*facts)(struct sonde_rank *, void (*tell)(void *to, const char *name, const char *value), void *to);
    /* The buffers of all later calls lie there. */
    int32_t (*memory)(struct sonde_rank *, uint32_t mem_kind);
    int32_t (*group)(struct sonde_rank *, uint32_t comm, int32_t *rank, int32_t *ranks);
    int32_t (*send)(struct sonde_rank *, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes);
    int32_t (*recv)(struct sonde_rank *, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room, struct sonde_status *);
    int32_t (*exchange)(struct sonde_rank *, uint32_t comm, struct sonde_op *ops, uint64_t count);
    int32_t (*isend)(struct sonde_rank *, uint32_t comm, int32_t to, int32_t tag, const void *data, uint64_t bytes, uint64_t *request);
    int32_t (*irecv)(struct sonde_rank *, uint32_t comm, int32_t from, int32_t tag, void *data, uint64_t room, uint64_t *request);
    /* The status counts for receives only; what comes in with `bytes` of `wait` is the transfer's length, for its timeout. */
    int32_t (*test)(struct sonde_rank *, uint64_t *request, struct sonde_status *);
    int32_t (*wait)(struct sonde_rank *, uint64_t *request, struct sonde_status *);
    int32_t (*iprobe)(struct sonde_rank *, uint32_t comm, int32_t from, int32_t tag, struct sonde_status *);
    /* `colour` -1: none. Without SONDE_SPLIT it returns SONDE_MISSING. */
    int32_t (*split)(struct sonde_rank *, uint32_t comm, int32_t colour, int32_t key, uint32_t *new_comm);
    int32_t (*collective)(struct sonde_rank *, uint32_t comm, struct sonde_collective *);
    int32_t (*progress)(struct sonde_rank *);
    /* Ends all ranks as far as the library can; may not return. */
    void (*abort)(struct sonde_rank *, const char *why);
    /* All ranks call it; frees the rank. */
    int32_t (*finish)(struct sonde_rank *);
};

/* The one entry: the table, or NULL where the adapter does not speak this ABI. */
const struct sonde_adapter *sonde_adapter(uint32_t abi);

#endif

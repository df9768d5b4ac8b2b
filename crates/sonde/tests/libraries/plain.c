/*
 * Sockets without a library:
 *   plain answer              answers each message by TCP, until the client has gone
 *   plain ask HOST ROUNDS     the median of half round trips of a byte by TCP
 *   plain take                counts datagrams until none comes for two seconds, as the receiver of netperf's UDP_STREAM
 *   plain send HOST SECONDS   sends datagrams of 1472 B on a connected socket, one a call
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

enum { PORT = 5999, WARM_UP = 200, DATAGRAM = 1472 };

static double now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct sockaddr_in address_of(const char *host)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    struct hostent *found = host ? gethostbyname(host) : NULL;
    if (host && !found)
        exit(2);
    if (found)
        memcpy(&address.sin_addr, found->h_addr_list[0], 4);
    return address;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int is_stream = !strcmp(what, "answer") || !strcmp(what, "ask"), one = 1;
    struct sockaddr_in address = address_of(argc > 2 ? argv[2] : NULL);
    int fd = socket(AF_INET, is_stream ? SOCK_STREAM : SOCK_DGRAM, 0);
    static char buffer[65536];

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (argc > 2 ? connect(fd, (void *)&address, sizeof address) : bind(fd, (void *)&address, sizeof address)) {
        perror(what);
        return 1;
    }
    if (!strcmp(what, "answer")) {
        listen(fd, 1);
        fd = accept(fd, NULL, NULL);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        while (recv(fd, buffer, 1, 0) == 1)
            send(fd, buffer, 1, 0);
    } else if (!strcmp(what, "ask")) {
        int rounds = atoi(argv[3]);
        double *halves = calloc(rounds, sizeof *halves);
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        for (int i = 0; i < WARM_UP + rounds; i++) {
            double began = now();
            send(fd, buffer, 1, 0);
            if (recv(fd, buffer, 1, 0) != 1)
                return 1;
            if (i >= WARM_UP)
                halves[i - WARM_UP] = (now() - began) / 2;
        }
        qsort(halves, rounds, sizeof *halves, ascending);
        printf("%.3f us\n", halves[rounds / 2] * 1e6);
    } else if (!strcmp(what, "take")) {
        struct timeval silence = {2, 0};
        double first = 0, last = 0, bytes = 0;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
        for (;;) {
            ssize_t came = recv(fd, buffer, sizeof buffer, 0);
            if (came < 0 && bytes > 0)
                break;
            if (came < 0)
                continue;
            last = now();
            if (first == 0)
                first = last;
            else
                bytes += came;
        }
        printf("%.3f Mb/s\n", bytes * 8 / (last - first) / 1e6);
    } else if (!strcmp(what, "send")) {
        for (double end = now() + atof(argv[3]); now() < end;)
            send(fd, buffer, DATAGRAM, 0);
    }
    return 0;
}

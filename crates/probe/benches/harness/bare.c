/* The bare ping-pong that sonde's is held against: the same system calls, socket options and sizes, a clock reading on
 * either side of each round trip, stored into an array, and nothing else.
 *
 * bare tcp|udp SIZE SAMPLES  prints: median of the round trips, time of the whole loop over SAMPLES (both ns).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void options(int fd, int tcp) {
    struct timeval timeout = {10, 0};
    int on = 1;
    if (tcp && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on))
        fail("TCP_NODELAY");
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout))
        fail("time-outs");
}

static void send_all(int fd, const char *bytes, size_t size) {
    size_t sent = 0;
    while (sent < size) {
        ssize_t some = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);
        if (some <= 0)
            fail("send");
        sent += (size_t)some;
    }
}

static int recv_all(int fd, char *bytes, size_t size, int flags) {
    size_t received = 0;
    while (received < size) {
        ssize_t some = recv(fd, bytes + received, size - received, flags);
        if (some < 0)
            fail("recv");
        if (some == 0)
            return 0;
        received += (size_t)some;
    }
    return 1;
}

static int ascending(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

int main(int count, char **arguments) {
    if (count != 4)
        return 64;
    int tcp = !strcmp(arguments[1], "tcp");
    size_t size = strtoul(arguments[2], NULL, 10), samples = strtoul(arguments[3], NULL, 10);
    int type = tcp ? SOCK_STREAM : SOCK_DGRAM, flags = tcp ? 0 : MSG_TRUNC;
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, client = server;
    socklen_t length = sizeof server;
    char *message = calloc(1, size);
    uint64_t *round_trips = malloc(samples * sizeof *round_trips);
    int port = socket(AF_INET, type, 0), fd = socket(AF_INET, type, 0);
    if (port < 0 || fd < 0 || bind(port, (void *)&server, length) || bind(fd, (void *)&client, length))
        fail("bind");
    getsockname(port, (void *)&server, &length);
    getsockname(fd, (void *)&client, &length);
    if (tcp ? listen(port, 1) : connect(port, (void *)&client, length))
        fail("listen or connect");
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fd);
        int peer = tcp ? accept(port, NULL, NULL) : port;
        options(peer, tcp);
        while (recv_all(peer, message, size, flags))
            send_all(peer, message, size);
        _exit(0);
    }
    options(fd, tcp);
    if (connect(fd, (void *)&server, length))
        fail("connect");
    for (int warm = 0; warm < 100; warm++) {
        send_all(fd, message, size);
        recv_all(fd, message, size, flags);
    }
    uint64_t begin = now_ns();
    for (size_t sample = 0; sample < samples; sample++) {
        uint64_t sent = now_ns();
        send_all(fd, message, size);
        recv_all(fd, message, size, flags);
        round_trips[sample] = now_ns() - sent;
    }
    uint64_t whole = now_ns() - begin;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    qsort(round_trips, samples, sizeof *round_trips, ascending);
    printf("%lu %lu\n", round_trips[samples / 2], whole / samples);
    return 0;
}

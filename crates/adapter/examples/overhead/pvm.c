/* A ping-pong of 8 bytes straight over PVM: the median of batches, half a round trip in nanoseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <pvm3.h>
enum { BATCHES = 40, ROUNDS = 50 };
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
static int order(const void *a, const void *b) { return *(double *)a < *(double *)b ? -1 : *(double *)a > *(double *)b; }
static char data[8];
static void put(int to) { pvm_initsend(PvmDataRaw); pvm_pkbyte(data, 8, 1); pvm_send(to, 1); }
static void take(int from) { pvm_recv(from, 1); pvm_upkbyte(data, 8, 1); }
int main(int argc, char **argv)
{
    static double each[BATCHES];
    char *arguments[] = {argv[1], NULL};
    pvm_mytid();
    pvm_setopt(PvmRoute, argc > 1 && !strcmp(argv[1], "direct") ? PvmRouteDirect : PvmAllowDirect);
    int other = pvm_parent(), first = other < 0;
    if (first && pvm_spawn(argv[0], arguments, PvmTaskDefault, "", 1, &other) != 1)
        return 1;
    for (int batch = 0; batch < BATCHES; batch++) {
        double begin = now();
        for (int i = 0; i < ROUNDS; i++)
            if (first) { put(other); take(other); } else { take(other); put(other); }
        each[batch] = (now() - begin) / ROUNDS / 2;
    }
    qsort(each, BATCHES, sizeof *each, order);
    if (first)
        printf("\nns %.1f\n", each[BATCHES / 2]);
    pvm_exit();
}

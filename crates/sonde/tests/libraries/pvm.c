/* A parent spawns one child on each host of the virtual machine and has a message of several sizes go there and back, by the
 * route that its argument names: default or direct. Says where each child ran. */
#include <pvm3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int sizes[] = {1, 5000, 300000};

static int child(int parent)
{
    char host[64] = "";
    static char bytes[300000];
    int i, size;

    pvm_recv(parent, 1);
    pvm_upkint(&size, 1, 1);
    pvm_setopt(PvmRoute, size);
    gethostname(host, sizeof host - 1);
    for (i = 0; i < 3; i++) {
        pvm_recv(parent, 2);
        pvm_upkbyte(bytes, sizes[i], 1);
        pvm_initsend(PvmDataRaw);
        pvm_pkstr(host);
        pvm_pkbyte(bytes, sizes[i], 1);
        pvm_send(parent, 3);
    }
    return pvm_exit();
}

int main(int argc, char **argv)
{
    struct pvmhostinfo *hosts;
    static char sent[300000], came[300000];
    char host[64], program[4096];
    int count, i, k, tid, route, parent = pvm_parent();

    if (parent >= 0)
        return child(parent);
    if (argc < 2 || pvm_config(&count, NULL, &hosts) < 0 || !realpath(argv[0], program))
        return 2;
    route = strcmp(argv[1], "direct") ? PvmDontRoute : PvmRouteDirect;
    pvm_setopt(PvmRoute, route);
    for (i = 0; i < count; i++) {
        if (pvm_spawn(program, NULL, PvmTaskHost, hosts[i].hi_name, 1, &tid) != 1) {
            fprintf(stderr, "%s: no child: %d\n", hosts[i].hi_name, tid);
            return 3;
        }
        pvm_initsend(PvmDataRaw);
        pvm_pkint(&route, 1, 1);
        pvm_send(tid, 1);
        for (k = 0; k < 3; k++) {
            memset(sent, 'a' + i, sizes[k]);
            pvm_initsend(PvmDataRaw);
            pvm_pkbyte(sent, sizes[k], 1);
            pvm_send(tid, 2);
            pvm_recv(tid, 3);
            pvm_upkstr(host);
            pvm_upkbyte(came, sizes[k], 1);
            if (memcmp(sent, came, sizes[k]))
                return 4;
        }
        printf("%s: %s child on %s\n", hosts[i].hi_name, argv[1], host);
    }
    pvm_exit();
    return 0;
}

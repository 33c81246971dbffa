#include "eventlog/server/grpc/grpc_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void set_port(struct sockaddr *address, unsigned port)
{
    if (address->sa_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)address)->sin6_port = htons((uint16_t)port);
    else
        ((struct sockaddr_in *)(void *)address)->sin_port = htons((uint16_t)port);
}

/* A listening socket, or -1 and errno. */
static int listen_on(const struct addrinfo *a, unsigned port)
{
    struct sockaddr_storage address;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, failed;

    if (fd < 0)
        return -1;
    memcpy(&address, a->ai_addr, a->ai_addrlen);
    set_port((struct sockaddr *)&address, port);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&address, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    failed = errno;
    close(fd);
    errno = failed;
    return -1;
}

/* Notes port and address of the first socket. */
static void note_address(struct grpc_listen *l)
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";

    getsockname(l->sockets[0], (struct sockaddr *)&address, &size);
    if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)&address;

        l->port = ntohs(six->sin6_port);
        inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof host);
        snprintf(l->address, sizeof l->address, "[%s]:%u", host, l->port);
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)&address;

        l->port = ntohs(four->sin_port);
        inet_ntop(AF_INET, &four->sin_addr, host, sizeof host);
        snprintf(l->address, sizeof l->address, "%s:%u", host, l->port);
    }
}

int grpc_listen_open(struct grpc_listen *l, const char *host, unsigned port, struct error *e)
{
    const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found;
    int failed = getaddrinfo(*host ? host : NULL, "0", &hints, &found), why = 0;

    memset(l, 0, sizeof *l);
    if (failed)
        return error_set(e, ERR_IO, "failed to bind to (\"%s\", %u): %s", host, port, gai_strerror(failed));
    /* IPv4 first: all clients of "localhost" try it. */
    for (int family = 0; family < 2; family++)
        for (const struct addrinfo *a = found; a && l->count < GRPC_LISTEN_MOST; a = a->ai_next) {
            int fd;

            if (a->ai_family != (family ? AF_INET6 : AF_INET))
                continue;
            if ((fd = listen_on(a, l->count ? l->port : port)) < 0) {
                why = why ? why : errno;
                continue;
            }
            l->sockets[l->count++] = fd;
            if (l->count == 1)
                note_address(l);
        }
    freeaddrinfo(found);
    if (l->count)
        return OK;
    return error_set(e, ERR_IO, "failed to bind to (\"%s\", %u): %s (os error %d)", host, port, strerror(why), why);
}

void grpc_listen_close(struct grpc_listen *l)
{
    while (l->count)
        close(l->sockets[--l->count]);
}

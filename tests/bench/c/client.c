/* The floor: sends stdin to a unix socket as one length-prefixed frame and prints the answer. No key, no spool, nothing. */
#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

static char body[1 << 20], answer[1 << 16];

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    size_t n = 0;
    for (ssize_t got; n < sizeof body && (got = read(0, body + n, sizeof body - n)) > 0;) n += (size_t)got;
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    strncpy(to.sun_path, argv[1], sizeof to.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to)) return 1;
    uint32_t length = htonl((uint32_t)n);
    struct iovec parts[2] = {{&length, 4}, {body, n}};
    for (size_t sent = 0, all = n + 4; sent < all;) {
        ssize_t done = sent == 0 ? writev(fd, parts, 2) : write(fd, body + sent - 4, all - sent);
        if (done <= 0) return 1;
        sent += (size_t)done;
    }
    ssize_t got = read(fd, answer, sizeof answer);
    if (got > 4) (void)!write(1, answer + 4, (size_t)got - 4);
    return 0;
}

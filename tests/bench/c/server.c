/* The floor's other side: answers each frame at once; with a file named, appends it there and fdatasyncs before answering. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char frame[1 << 20];

static int whole(int fd, void *to, size_t n) {
    for (size_t got = 0; got < n;) {
        ssize_t more = read(fd, (char *)to + got, n - got);
        if (more <= 0) return 0;
        got += (size_t)more;
    }
    return 1;
}

int main(int argc, char **argv) {
    int log = argc > 2 ? open(argv[2], O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    strncpy(at.sun_path, argv[1], sizeof at.sun_path - 1);
    unlink(argv[1]);
    int listening = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) || listen(listening, 1024)) return 1;
    for (;;) {
        int fd = accept(listening, 0, 0);
        uint32_t length;
        if (whole(fd, &length, 4) && ntohl(length) <= sizeof frame && whole(fd, frame, ntohl(length))) {
            if (log >= 0 && (write(log, frame, ntohl(length)) < 0 || fdatasync(log))) return 1;
            (void)!write(fd, "HFA1\0\0\0\0", 8);
        }
        close(fd);
    }
}

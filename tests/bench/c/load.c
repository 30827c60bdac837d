/* load SOCKET CLIENTS EVENTS PAYLOAD: CLIENTS connections at a time, one event each, against a Holdfast hook socket. Prints
   "seconds answered" and then one latency in nanoseconds per line. One process, epoll: the load must not cost what it measures. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char frame[1 << 20];
static size_t frame_size;
static char *key_at;
static struct sockaddr_un to = {.sun_family = AF_UNIX};
static long long *latencies, begun[65536];
static int poll_fd, started, answered, total;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void build(const char *path) {
    static char header[512];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    long long ms = t.tv_sec * 1000LL + t.tv_nsec / 1000000;
    int n = sprintf(header, "key=%032d", 0) + 1;
    n += sprintf(header + n, "mode=ask") + 1;
    n += sprintf(header + n, "agent=claude-code") + 1;
    n += sprintf(header + n, "event=PostToolUse") + 1;
    n += sprintf(header + n, "at=%lld", ms) + 1;
    n += sprintf(header + n, "cwd=/") + 1;
    memcpy(frame, "HFQ1", 4);
    memcpy(frame + 12, header, (size_t)n);
    FILE *file = fopen(path, "rb");
    size_t body = fread(frame + 12 + n, 1, sizeof frame - 12 - (size_t)n, file);
    uint32_t sizes[2] = {htonl((uint32_t)n), htonl((uint32_t)body)};
    memcpy(frame + 4, sizes, 8);
    frame_size = 12 + (size_t)n + body;
    key_at = frame + 16;
}

static void begin(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    char key[40];
    sprintf(key, "%012llx%08x%012x", (t.tv_sec * 1000LL + t.tv_nsec / 1000000) & 0xffffffffffffLL, (unsigned)getpid(), started++);
    memcpy(key_at, key, 32);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    long long at = now();
    while (connect(fd, (struct sockaddr *)&to, sizeof to)) if (errno != EAGAIN) exit(1);
    begun[fd] = at;
    if (write(fd, frame, frame_size) != (ssize_t)frame_size) exit(1);
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &wanted);
}

int main(int argc, char **argv) {
    if (argc < 5) return 2;
    strncpy(to.sun_path, argv[1], sizeof to.sun_path - 1);
    int clients = atoi(argv[2]);
    total = atoi(argv[3]);
    build(argv[4]);
    latencies = calloc((size_t)total, sizeof *latencies);
    poll_fd = epoll_create1(0);
    long long began = now();
    for (int i = 0; i < clients && started < total; i++) begin();
    struct epoll_event ready[512];
    while (answered < total) {
        int n = epoll_wait(poll_fd, ready, 512, 10000);
        if (n <= 0) return 1;
        for (int i = 0; i < n; i++) {
            char answer[4096];
            int fd = ready[i].data.fd;
            if (read(fd, answer, sizeof answer) < 8) return 1;
            latencies[answered++] = now() - begun[fd];
            close(fd);
            if (started < total) begin();
        }
    }
    printf("%.6f %d\n", (double)(now() - began) / 1e9, answered);
    for (int i = 0; i < answered; i++) printf("%lld\n", latencies[i]);
    return 0;
}

/* measure ROUNDS AT_ONCE PAYLOAD -- COMMAND… -- COMMAND… : each round runs every command once (AT_ONCE copies), in shuffled
   order; prints one line per run: "index nanoseconds", from posix_spawn to stdout EOF and reaped. stdin is a filled pipe.
   With PAUSE_US in the environment it waits so long before each run, as an agent does between its calls. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static char *payload;
static size_t payload_size;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct run { pid_t pid; int in, out; long long began; size_t fed; };

static struct run begin(char **command) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) exit(1);
    fcntl(in[1], F_SETPIPE_SZ, 1 << 20);
    struct run r = {.in = in[1], .out = out[0]};
    r.fed = (size_t)write(in[1], payload, payload_size);
    close(in[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    r.began = now();
    if (posix_spawn(&r.pid, command[0], &actions, 0, command, environ)) exit(1);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    return r;
}

static void end(struct run *r, int index) {
    char buffer[65536];
    while (read(r->out, buffer, sizeof buffer) > 0) {}
    int status;
    waitpid(r->pid, &status, 0);
    long long took = now() - r->began;
    close(r->out);
    printf("%d %lld %d\n", index, took, WIFEXITED(status) ? WEXITSTATUS(status) : 255);
}

int main(int argc, char **argv) {
    int rounds = atoi(argv[1]), at_once = atoi(argv[2]), count = 0, commands[64], order[64];
    FILE *file = fopen(argv[3], "rb");
    fseek(file, 0, SEEK_END);
    payload_size = (size_t)ftell(file);
    rewind(file);
    payload = malloc(payload_size + 1);
    if (fread(payload, 1, payload_size, file) != payload_size) return 1;
    for (int i = 4; i < argc; i++)
        if (!strcmp(argv[i], "--")) { argv[i] = 0; commands[count++] = i + 1; }
    srand(7);
    useconds_t pause_us = getenv("PAUSE_US") ? (useconds_t)atoi(getenv("PAUSE_US")) : 0;
    struct run running[256];
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) order[i] = i;
        for (int i = count - 1; i > 0; i--) { int j = rand() % (i + 1), t = order[i]; order[i] = order[j]; order[j] = t; }
        for (int i = 0; i < count; i++) {
            if (pause_us) usleep(pause_us);
            for (int n = 0; n < at_once; n++) running[n] = begin(argv + commands[order[i]]);
            for (int n = 0; n < at_once; n++) end(&running[n], order[i]);
        }
    }
    return 0;
}

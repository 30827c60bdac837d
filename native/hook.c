/* holdfast-hook: carries one hook call of an agent to the daemon, or to the spool. The words are in docs/protocol.md.
 *
 * It runs around every tool call, so it parses nothing, allocates nothing on the usual path and makes few system calls.
 * Whatever goes wrong, it ends with exit 0 and without a word on stderr: an agent must never be held up by our faults.
 */
#define _GNU_SOURCE
#define _DARWIN_C_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#else
#include <mach-o/dyld.h>
#endif

#include "shorten.h"

#ifndef HOLDFAST_VERSION
#define HOLDFAST_VERSION "0"
#endif

enum outcome { ANSWERED, REFUSED, TIMED_OUT, BROKEN };
enum {
    ASK_MS = 2000, TELL_MS = 250, START_MS = 5000, SHOW_MS = 200, HOLD_MS = 1500, WAIT_MS = 600000, /* how long each mode waits for the daemon */
    SLOW_MS = 50,
    SLOW_FOR_MS = 5000, FAILED_FOR_MS = 30000,                   /* how long run/slow and run/failed count */
    STDIN_ASK_MS = 2000, STDIN_TELL_MS = 1000,                   /* how long stdin may keep us waiting, in all */
    STDOUT_IDLE_MS = 5000, LOCK_MS = 500,
    VALUE_MAX = 4096, PATH_ROOM = 2 * PATH_MAX + 64,
    RECORD_HEAD = 12, FRAME_HEAD = 12, ANSWER_HEAD = 8,
    HEADER_ROOM = 128 << 10, /* 29 values of at most VALUE_MAX and their names */
    ANSWER_MAX = 16 << 20, SMALL_SEND = 128 << 10, LARGEST_SEND = 2 << 20,
    FALLBACK_FIELDS = 8, FALLBACK_MAX = 1 << 20,
};

static const char *const ENVIRONMENT[] = {
    "env.CLAUDECODE", "env.CLAUDE_PROJECT_DIR", "env.CLAUDE_PID", "env.CLAUDE_CODE_SESSION_ID",
    "env.CLAUDE_CODE_ENTRYPOINT", "env.CLAUDE_PROJECT", "env.GEMINI_SESSION_ID", "env.GEMINI_PROJECT_DIR",
    "env.CODEX_HOME", "env.COPILOT_HOME", "env.CURSOR_VERSION", "env.CURSOR_PROJECT_DIR", "env.QWEN_PROJECT_DIR",
    "env.TERM_PROGRAM", "env.TMUX_PANE", "env.HOLDFAST_PROJECT", "env.HOLDFAST_PAUSE", "env.CLAUDE_SKIP_REQUIREMENTS",
};
static const int IGNORED[] = {SIGPIPE, SIGXFSZ, SIGHUP, SIGINT, SIGTERM};

/* The spool record and, inside it, the frame: one piece of memory, so that either leaves with one write. Nearly every
 * stdin fits into the first room; pages of it that are not touched cost nothing. */
static unsigned char first_room[RECORD_HEAD + FRAME_HEAD + HEADER_ROOM + (1 << 20)];
static unsigned char *record = first_room;
static size_t room = sizeof first_room, used = RECORD_HEAD + FRAME_HEAD, header_end;

static unsigned char first_answer[64 << 10], *answer = first_answer;
static char cwd[PATH_MAX], state[PATH_ROOM], joined[2 * PATH_ROOM], own_log[32 + sizeof ".log"];
static long long deadline, stdin_deadline;
static int connection = -1; /* open after an answer came: what was written out is confirmed on it */
static size_t told_at;      /* where the header says what the agent was told without the daemon */
static int slow; /* the daemon was silent a moment ago: do not make this hook pay for it too */

/* ---- small things ---- */

static long long milliseconds(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

static long long now(void) { return milliseconds(CLOCK_MONOTONIC); }

static int left(void) {
    long long ms = deadline - now();
    return ms > 0 ? (int)ms : 0;
}

static void nap(int ms) {
    struct timespec t = {0, ms * 1000000L};
    nanosleep(&t, NULL);
}

static void put32(unsigned char *to, uint32_t n) {
    for (int i = 3; i >= 0; i--, n >>= 8) to[i] = (unsigned char)n;
}

static uint32_t get32(const unsigned char *from) {
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* The decimal digits of n, without the kilobytes of printf. */
static char *digits(unsigned long long n) {
    static char text[24];
    char *at = text + sizeof text - 1;
    do *--at = (char)('0' + n % 10); while (n /= 10);
    return at;
}

/* a + b + c in one shared buffer; NULL if they do not fit. */
static char *join(const char *a, const char *b, const char *c) {
    if (strlen(a) + strlen(b) + strlen(c) >= sizeof joined) return NULL;
    return strcat(strcat(strcpy(joined, a), b), c);
}

/* Is this file younger than that? One from the future is not: the clock was set back. */
static int young(const char *name, long long ms) {
    struct stat st;
    if (stat(name, &st) != 0) return 0;
    long long age = milliseconds(CLOCK_REALTIME) - st.st_mtime * 1000LL;
    return age >= -1000 && age < ms;
}

static int write_all(int fd, const unsigned char *from, size_t n) {
    while (n > 0) {
        struct pollfd full = {fd, POLLOUT, 0};
        ssize_t done = write(fd, from, n);
        if (done >= 0) from += done, n -= (size_t)done;
        else if (errno == EAGAIN) { if (poll(&full, 1, STDOUT_IDLE_MS) == 0) return 0; }
        else if (errno != EINTR) return 0;
    }
    return 1;
}

/* ---- the command line and the state directory ---- */

static const char *set(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static int choose_state(const char *given) {
    const char *dir = given ? given : set("HOLDFAST_STATE"), *below = "";
    if (!dir && (dir = set("XDG_STATE_HOME"))) below = "/holdfast";
    if (!dir && (dir = set("HOME"))) below = "/.local/state/holdfast";
    if (!dir || !*dir) return 0;
    int relative = dir[0] != '/';
    if (relative && !cwd[0]) return 0;
    if (strlen(cwd) + strlen(dir) + strlen(below) + 2 > sizeof state) return 0;
    if (relative) strcat(strcpy(state, cwd), "/");
    strcat(strcat(state, dir), below);
    return 1;
}

static int wait_of(const char *mode) {
    return !strcmp(mode, "ask") ? ASK_MS : !strcmp(mode, "tell") ? TELL_MS : !strcmp(mode, "start") ? START_MS
         : !strcmp(mode, "show") ? SHOW_MS : !strcmp(mode, "hold") ? HOLD_MS : !strcmp(mode, "wait") ? WAIT_MS : 0;
}

static int asks(const char *mode) {
    return !strcmp(mode, "ask") || !strcmp(mode, "wait"); /* the second is answered when a person has decided */
}

/* ---- the frame ---- */

static void add(const void *bytes, size_t n) {
    memcpy(record + used, bytes, n);
    used += n;
}

static void field(const char *name, const char *value) {
    add(name, strlen(name));
    add("=", 1);
    add(value, strnlen(value, VALUE_MAX));
    add("", 1);
}

/* Field 22 of /proc/PID/stat. The name in field 2 may hold spaces and brackets, so count from the last bracket. */
static const char *start_of(const char *pid) {
    static char line[1024];
    int fd = open(join("/proc/", pid, "/stat"), O_RDONLY); /* without CLOEXEC, for which musl makes a second call */
    ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
    if (fd >= 0) close(fd);
    line[n > 0 ? n : 0] = 0;
    char *at = strrchr(line, ')');
    for (int i = 0; at && i < 20; i++) at = strchr(at + 1, ' ');
    if (!at) return "0";
    at[1 + strspn(at + 1, "0123456789")] = 0;
    return at + 1;
}

/* 48 bits of time, so that keys sort, then 80 random bits. */
static const char *make_key(long long at) {
    unsigned char raw[16];
    for (int i = 5; i >= 0; i--, at >>= 8) raw[i] = (unsigned char)at;
    if (getentropy(raw + 6, 10) != 0) { /* no randomness at all: a clock and a pid are still never the same twice */
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        put32(raw + 6, (uint32_t)t.tv_nsec), put32(raw + 10, (uint32_t)getpid()), raw[14] = raw[15] = 0;
    }
    for (int i = 0; i < 32; i++) own_log[i] = "0123456789abcdef"[raw[i / 2] >> (i % 2 ? 0 : 4) & 15];
    return own_log;
}

static void write_header(const char *mode, const char *agent, const char *event, long long at) {
    field("key", make_key(at));
    strcpy(own_log + 32, ".log");
    field("mode", mode), field("agent", agent), field("event", event);
    field("at", digits((unsigned long long)at));
    const char *pid = digits((unsigned long long)getppid());
    field("pid", pid), field("start", start_of(pid));
    field("cwd", cwd), field("state", state);
    field("client", HOLDFAST_VERSION), field("via", "native"), field("confirms", "1");
    field("told", "none");
    told_at = used - sizeof "none";
    for (size_t i = 0; i < sizeof ENVIRONMENT / sizeof *ENVIRONMENT; i++) {
        const char *value = getenv(ENVIRONMENT[i] + 4);
        if (value) field(ENVIRONMENT[i], value);
    }
    header_end = used;
}

/* Bytes read, 0 at the end (a closed or unreadable stdin is an empty one), -1 when it kept us waiting for too long.
 * What is there already is read also after the deadline: a long body that flows is whole, one that drips is cut. */
static ssize_t read_stdin(void *to, size_t n) {
    for (;;) {
        struct pollfd in = {0, POLLIN, 0};
        long long wait = stdin_deadline - now();
        int ready = poll(&in, 1, wait > 0 ? (int)wait : 0);
        if (ready == 0) return -1;
        if (ready < 0 && errno == EINTR) continue;
        ssize_t got = read(0, to, n);
        if (got >= 0) return got;
        if (errno != EINTR && errno != EAGAIN) return 0;
    }
}

static int grow(size_t more) {
    unsigned char *bigger = realloc(record == first_room ? NULL : record, more);
    if (!bigger) return 0;
    if (record == first_room) memcpy(bigger, first_room, used);
    record = bigger, room = more;
    return 1;
}

/* An agent whose pipe breaks may take that for a failing hook: read to the end, unless there is none. */
static void drain(void) {
    long long until = now() + STDIN_ASK_MS;
    while (now() < until && read_stdin(first_answer, sizeof first_answer) > 0) {}
}

/* The header tells how long a body was that is shortened. */
static void add_whole_length(size_t size, unsigned long long whole) {
    const char *length = digits(whole);
    size_t more = sizeof "whole=" + strlen(length);
    memmove(record + header_end + more, record + header_end, size);
    used = header_end;
    field("whole", length);
    header_end = used;
    used += size;
}

/* A body of many megabytes is shortened while it comes: neither we nor the daemon ever hold all of it. */
static int read_shortened(void) {
    struct shortener s;
    ssize_t got;
    begin_shorten(&s, record + header_end, SHORTEN_ROOM);
    feed_shorten(&s, record + header_end, used - header_end);
    while ((got = read_stdin(first_answer, sizeof first_answer)) > 0) feed_shorten(&s, first_answer, (size_t)got);
    finish_shorten(&s);
    add_whole_length(s.size, s.taken);
    return got == 0;
}

/* Is the body whole? A cut one is kept, but only spooled. */
static int read_body(void) {
    ssize_t got;
    while ((got = read_stdin(record + used, room - used)) > 0) {
        used += (size_t)got;
        if (used < room) continue;
        if (used - header_end < SHORTEN_FROM ? !grow(room * 2) : !grow(header_end + SHORTEN_ROOM + VALUE_MAX)) return drain(), 0;
        if (used - header_end >= SHORTEN_FROM) return read_shortened();
    }
    return got == 0;
}

static void seal_frame(void) {
    unsigned char *frame = record + RECORD_HEAD;
    memcpy(frame, "HFQ1", 4);
    put32(frame + 4, (uint32_t)(header_end - RECORD_HEAD - FRAME_HEAD));
    put32(frame + 8, (uint32_t)(used - header_end));
}

/* ---- directories ---- */

/* Into a directory of ours: one of another user, or behind a link, could show us his socket or take our events. */
static int enter(const char *dir) {
    struct stat st;
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (fd < 0) return 0;
    int inside = fstat(fd, &st) == 0 && fchdir(fd) == 0;
    close(fd);
    errno = EPERM;
    return inside && st.st_uid == geteuid();
}

static void make_state(void) {
    for (char *at = join(state, "/", "") + 1; *at; at++)
        if (*at == '/') *at = 0, mkdir(joined, 0700), *at = '/';
    mkdir(join(state, "/run", ""), 0700);
    mkdir(join(state, "/spool", ""), 0700);
}

static int enter_state(const char *below) {
    if (enter(join(state, below, ""))) return 1;
    if (errno != ENOENT) return 0;
    make_state();
    return enter(join(state, below, ""));
}

/* ---- the daemon ---- */

static int ready(int fd, short events) {
    struct pollfd p = {fd, events, 0};
    int n;
    do n = poll(&p, 1, left()); while (n < 0 && errno == EINTR);
    return n != 0;
}

static int new_socket(void) {
#ifdef __linux__
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
#else
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC), fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
#endif
}

/* A full backlog says EAGAIN at once and nothing can be polled, so ask again. */
static enum outcome dial(int fd) {
    struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "hook.sock"};
    if (fd < 0) return BROKEN;
    while (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        if (errno != EAGAIN && errno != EINTR) return REFUSED;
        if (left() == 0) return TIMED_OUT;
        nap(2);
    }
    return ANSWERED;
}

static enum outcome send_frame(int fd) {
    for (size_t at = RECORD_HEAD; at < used;) {
        ssize_t n = write(fd, record + at, used - at);
        if (n >= 0) at += (size_t)n;
        else if (errno == EAGAIN) { if (!ready(fd, POLLOUT)) return TIMED_OUT; }
        else if (errno != EINTR) return BROKEN;
    }
    return ANSWERED;
}

/* The whole length of an answer by its head; 0 if this is none. */
static size_t answer_length(void) {
    uint32_t length = get32(answer + 4);
    if (memcmp(answer, "HFA1", 4) != 0 || length > ANSWER_MAX) return 0;
    if (ANSWER_HEAD + length <= sizeof first_answer) return ANSWER_HEAD + length;
    unsigned char *bigger = malloc(ANSWER_HEAD + length);
    if (!bigger) return 0;
    answer = memcpy(bigger, first_answer, sizeof first_answer);
    return ANSWER_HEAD + length;
}

static enum outcome receive(int fd) {
    size_t got = 0, want = ANSWER_HEAD, space = sizeof first_answer;
    for (answer = first_answer; got < want;) {
        if (!ready(fd, POLLIN)) return TIMED_OUT;
        ssize_t n = read(fd, answer + got, space - got);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n <= 0) return BROKEN;
        if ((got += (size_t)n) < ANSWER_HEAD || want > ANSWER_HEAD) continue;
        if (!(want = answer_length())) return BROKEN;
        if (answer != first_answer) space = want;
    }
    return ANSWERED;
}

/* By itself a socket takes 208 KB on Linux: of a longer frame the end would wait until the daemon has run and read. */
static void make_room(int fd) {
    int size = (int)(used < LARGEST_SEND ? used : LARGEST_SEND);
    if (fd >= 0 && used > SMALL_SEND) (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
}

static enum outcome deliver(void) {
    int fd = new_socket();
    make_room(fd);
    enum outcome so_far = dial(fd);
    if (so_far == ANSWERED) so_far = send_frame(fd);
    if (so_far == ANSWERED) so_far = receive(fd);
    if (so_far != ANSWERED && fd >= 0) close(fd), fd = -1;
    connection = fd;
    return so_far;
}

/* A verdict counts as delivered when it was written out whole; the daemon notes those that were not. */
static void pass_on(void) {
    uint32_t length = get32(answer + 4);
    if (length && write_all(1, answer + ANSWER_HEAD, length)) (void)!write(connection, "+", 1);
}

static int has(const char *name) { return access(join(state, name, ""), F_OK) == 0; }

/* Requirements are in force, or versions of files are kept: a call is not to begin before the daemon has seen it. */
static int in_force(void) { return has("/gates-in-force") || has("/workspace/content.sqlite"); }

/* A hook that only tells is not made to pay for a daemon that was silent a moment ago. An answer is always waited for. */
static enum outcome ask_daemon(int wait_ms) {
    deadline = now() + wait_ms;
    if (!enter(join(state, "/run", ""))) return errno == ENOENT ? REFUSED : BROKEN;
    if ((slow = wait_ms == TELL_MS && young("slow", SLOW_FOR_MS))) deadline = now() + SLOW_MS;
    return deliver();
}

/* Only a full wait renews the mark, so every few seconds one hook finds out whether the daemon is well again. */
static void mark_slow(void) {
    int fd = slow ? -1 : open("slow", O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd >= 0) futimens(fd, NULL);
}

/* ---- when the daemon cannot be reached ---- */

static int is_on(const char *name) {
    const char *value = set(name);
    return value && strcasecmp(value, "0") && strcasecmp(value, "no") && strcasecmp(value, "false") && strcasecmp(value, "off");
}

static int is_inside(const char *path, const char *folder) {
    size_t n = strlen(folder);
    return !n || (!strncmp(path, folder, n) && (!path[n] || path[n] == '/'));
}

/* Does the first KEY of the body have one of these values (each ended by a newline)? Inside of strings quotes are escaped, so
 * that no text of a tool call is taken for the key. */
static int names_one_of(const char *key, const char *values) {
    unsigned char *body = record + header_end, *end = record + used;
    unsigned char *at = memmem(body, (size_t)(end - body), key, strlen(key));
    if (!at) return 0;
    for (at += strlen(key); at < end && strchr(" :\t\r\n", *at); at++) {}
    for (size_t n; (n = strcspn(values, "\n")) > 0; values += n + 1)
        if ((size_t)(end - at) >= n && !memcmp(at, values, n)) return 1;
    return 0;
}

/* agent, event, folder, until, sense (except or only), key, values, answer. */
static int concerns(char **part, const char *agent, const char *event, const char *where) {
    if (strcmp(part[0], agent) || strcmp(part[1], event) || !is_inside(where, part[2])) return 0;
    long long until = strtoll(part[3], NULL, 10);
    if (until && milliseconds(CLOCK_REALTIME) >= until) return 0;
    return !*part[5] || names_one_of(part[5], part[6]) == !strcmp(part[4], "only");
}

/* The daemon left an answer for this case where a requirement says `when_unsure: deny`; NULL where none does. */
static const char *fallback_answer(const char *agent, const char *event) {
    static char text[FALLBACK_MAX + 1];
    const char *where = set("CLAUDE_PROJECT_DIR");
    if (is_on("HOLDFAST_PAUSE") || is_on("CLAUDE_SKIP_REQUIREMENTS")) return NULL;
    int fd = open(join(state, "/when-unsure", ""), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    size_t size = 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, text + size, FALLBACK_MAX - size)) > 0;) size += (size_t)n;
    if (fd >= 0) close(fd);
    for (char *at = text, *part[FALLBACK_FIELDS]; at < text + size;) {
        for (int i = 0; i < FALLBACK_FIELDS; at += strlen(at) + 1)
            if (at >= text + size) return NULL; else part[i++] = at;
        if (concerns(part, agent, event, where ? where : cwd)) return part[FALLBACK_FIELDS - 1];
    }
    return NULL;
}

/* ---- the spool ---- */

static uint32_t crc32(const unsigned char *at, size_t n) {
    uint32_t table[256], crc = ~0u;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
    }
    while (n--) crc = crc >> 8 ^ table[(crc ^ *at++) & 255];
    return ~crc;
}

static void seal_record(void) {
    memcpy(record, "HFS1", 4);
    put32(record + 4, crc32(record + RECORD_HEAD, used - RECORD_HEAD));
    put32(record + 8, (uint32_t)(used - RECORD_HEAD));
}

static int on_disk(int fd) {
#ifdef F_FULLFSYNC /* macOS: fsync stops at the drive's cache */
    return fcntl(fd, F_FULLFSYNC) == 0 || fsync(fd) == 0;
#else
    return fdatasync(fd) == 0;
#endif
}

/* The name of a new file lives in the directory, which not every file system writes along with the file. */
static void name_on_disk(void) {
    int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) fsync(fd), close(fd);
}

/* A file system without locks (some network ones) still takes a file that nobody else writes to. */
static int lock(int fd, const char *name, long long until) {
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) return name == own_log;
        if (now() >= until) return 0;
        nap(2);
    }
    return 1;
}

/* Append to the locked file; what could not be written whole and durably is taken back. */
static int append_locked(int fd, off_t size) {
    if (!write_all(fd, record, used) || !on_disk(fd)) return ftruncate(fd, size), 0;
    if (size == 0) name_on_disk();
    return 1;
}

/* 1: on disk. 0: this file cannot be used. -1: the daemon has just taken it away to read it. */
static int append_once(const char *name, long long until) {
    struct stat mine, there;
    int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600), done = 0;
    if (fd < 0) return 0;
    if (fstat(fd, &mine) == 0 && S_ISREG(mine.st_mode) && lock(fd, name, until) && fstat(fd, &mine) == 0) {
        int same = lstat(name, &there) == 0 && there.st_ino == mine.st_ino && there.st_dev == mine.st_dev;
        done = same ? append_locked(fd, mine.st_size) : -1;
    }
    close(fd);
    return done;
}

static int append(const char *name) {
    long long until = now() + LOCK_MS;
    int done;
    do done = append_once(name, until); while (done < 0 && now() < until);
    return done > 0;
}

static int append_alone(void) {
    return append(own_log) || (unlink(own_log), 0);
}

/* For a full or read-only disk. Such a place is open to all: it must be a real directory, private and ours. */
static int append_elsewhere(const char *base, const char *name, const char *uid) {
    struct stat st;
    char *dir = base && base[0] == '/' ? join(base, name, uid) : NULL;
    if (!dir) return 0;
    mkdir(dir, 0700);
    if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || (st.st_mode & 077)) return 0;
    return enter(dir) && append_alone();
}

static void spool(void) {
    seal_record();
    if (enter_state("/spool") && (append("spool.log") || append_alone())) return;
    if (append_elsewhere(set("XDG_RUNTIME_DIR"), "/holdfast-spool", "")) return;
    append_elsewhere("/dev/shm", "/holdfast-spool-", digits(geteuid()));
}

/* ---- starting the daemon ---- */

/* The program beside this one, links resolved. */
static const char *daemon_program(void) {
    static char path[PATH_MAX + 32];
#ifdef __linux__
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);
    path[n > 0 ? n : 0] = 0;
#else
    char raw[PATH_MAX];
    uint32_t n = sizeof raw;
    if (_NSGetExecutablePath(raw, &n) != 0 || !realpath(raw, path)) return NULL;
#endif
    char *slash = strrchr(path, '/');
    if (!slash) return NULL;
    strcpy(slash + 1, "holdfast-daemon");
    return access(path, X_OK) == 0 ? path : NULL;
}

static void close_from(int fd) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, fd, ~0u, 0) == 0) return;
#endif
    for (; fd < 65536; fd++) close(fd);
}

/* The agent waits for the end of our stdout: the daemon must hold nothing of ours but the lock. */
static void become_daemon(const char *program, int lock_fd) {
    setsid();
    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++) signal(IGNORED[i], SIG_DFL);
    int held = fcntl(lock_fd, F_DUPFD, 10), null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++) dup2(null, fd);
    dup2(held, 3);
    close_from(4);
    if (chdir("/") == 0 && setenv("HOLDFAST_START_FD", "3", 1) == 0)
        execl(program, program, "--state", state, (char *)NULL);
    _exit(0);
}

/* The process started; 0 if another is starting the daemon or it is there by now; -1 if none will come. */
static pid_t start_daemon(void) {
    const char *program = daemon_program();
    if (!program || !enter_state("/run") || young("failed", FAILED_FOR_MS)) return -1;
    int fd = open("start.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600), probe;
    if (fd < 0) return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) return close(fd), 0;
    /* It may have come up, and let go of the lock, since we were refused. */
    if (dial(probe = new_socket()) != REFUSED) return close(probe), close(fd), 0;
    pid_t child = fork();
    if (child == 0) become_daemon(program, fd);
    close(probe), close(fd);
    return child;
}

/* Somebody is starting the daemon at this moment: who asks then is answered as soon as it is there. */
static int is_coming(void) {
    if (!enter(join(state, "/run", ""))) return 0;
    int fd = open("start.lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    int held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (fd >= 0) close(fd);
    return held;
}

static enum outcome wait_for_daemon(void) {
    pid_t child = start_daemon();
    enum outcome so_far = REFUSED;
    for (int coming = child >= 0; coming && so_far == REFUSED && left() > 0;) {
        nap(5);
        coming = !young("failed", FAILED_FOR_MS) && !(child > 0 && waitpid(child, NULL, WNOHANG) == child);
        so_far = deliver();
    }
    return so_far;
}

/* ---- all of it ---- */

static void hook(const char *mode, const char *agent, const char *event, long long at) {
    int may_wait = !strcmp(mode, "start") || (asks(mode) && in_force());
    write_header(mode, agent, event, at);
    int whole = read_body();
    seal_frame();
    enum outcome end = whole ? ask_daemon(wait_of(mode)) : BROKEN;
    if (end == REFUSED && !may_wait) may_wait = asks(mode) && is_coming();
    if (end == REFUSED && may_wait) {
        if (!strcmp(mode, "wait")) deadline = now() + ASK_MS; /* for a person, not for a daemon */
        end = wait_for_daemon();
    }
    if (!strcmp(mode, "hold")) { /* git reads the exit code; without an answer it goes on, and branches are compared later */
        if (end != ANSWERED || !get32(answer + 4)) return;
        write_all(2, answer + ANSWER_HEAD, get32(answer + 4));
        _exit(1);
    }
    if (end == ANSWERED) { pass_on(); return; }
    if (!strcmp(mode, "show")) { /* a line for the screen: nothing is lost without it */
        static const char failing[] = "Holdfast cannot start: holdfast status\n";
        if (end == REFUSED && enter_state("/run") && young("failing", LLONG_MAX))
            write_all(1, (const unsigned char *)failing, sizeof failing - 1);
        return;
    }
    if (end == TIMED_OUT) mark_slow();
    const char *refusal = strcmp(mode, "ask") ? NULL : fallback_answer(agent, event);
    if (refusal && *refusal && write_all(1, (const unsigned char *)refusal, strlen(refusal))) memcpy(record + told_at, "deny", 4);
    spool();
    if (end == REFUSED && !may_wait) start_daemon();
}

int main(int argc, char **argv) {
    long long at = milliseconds(CLOCK_REALTIME);
    const char *given = NULL;
    for (size_t i = 0; i < sizeof IGNORED / sizeof *IGNORED; i++) signal(IGNORED[i], SIG_IGN);
    if (!getcwd(cwd, sizeof cwd)) cwd[0] = 0;
    if (argc > 2 && !strcmp(argv[1], "--state")) given = argv[2], argc -= 2, argv += 2;
    stdin_deadline = now() + (argc == 4 && !strcmp(argv[1], "tell") ? STDIN_TELL_MS : STDIN_ASK_MS);
    int meant = argc == 4 && wait_of(argv[1]) && *argv[2] && *argv[3] && choose_state(given);
    if (meant) hook(argv[1], argv[2], argv[3], at);
    else drain();
    _exit(0);
}

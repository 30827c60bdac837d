/* Looks at many files in one call: what src/holdfast/core/file_stamps.py asks for before it says that nothing changed.
 *
 * Ten thousand looks from Python would hand the interpreter's lock back and forth as often. No library is called; on
 * systems other than Linux nothing is looked at here, and Python does it. */
#include "bytes.h"

enum { FIELDS = 5 }; /* when it was written, when its entry changed, size, number, kind and mode */

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))

enum { NOT_THERE = 2, NO_FOLDER = 20, NO_FOLLOW = 0x100, NO_AUTOMOUNT = 0x800, WANTED = 0x3c3 };

struct moment {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t unused;
};

/* As the kernel's `struct statx`: the same on every machine. */
struct entry {
    uint32_t mask, block;
    uint64_t attributes;
    uint32_t links, user, group;
    uint16_t mode, unused;
    uint64_t number, size, blocks, known_attributes;
    struct moment read, made, changed, written;
    uint64_t rest[16];
};

static long look_at(int folder, const char *name, struct entry *found) {
#if defined(__x86_64__)
    long result = 332;
    register long flags __asm__("rdx") = NO_FOLLOW | NO_AUTOMOUNT;
    register long wanted __asm__("r10") = WANTED;
    register struct entry *out __asm__("r8") = found;
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"((long)folder), "S"(name), "r"(flags), "r"(wanted), "r"(out)
                     : "rcx", "r11", "memory");
    return result;
#else
    register long result __asm__("x0") = folder;
    register const char *path __asm__("x1") = name;
    register long flags __asm__("x2") = NO_FOLLOW | NO_AUTOMOUNT;
    register long wanted __asm__("x3") = WANTED;
    register struct entry *out __asm__("x4") = found;
    register long number __asm__("x8") = 291;
    __asm__ volatile("svc 0" : "+r"(result) : "r"(path), "r"(flags), "r"(wanted), "r"(out), "r"(number) : "memory");
    return result;
#endif
}

static int read_stamp(int folder, const char *name, int64_t *stamp) {
    struct entry found;
    long failed = look_at(folder, name, &found);
    for (int n = 0; n < FIELDS; n++) stamp[n] = 0;
    if (failed == -NOT_THERE || failed == -NO_FOLDER) return 1;
    if (failed) return 0;
    stamp[0] = found.written.seconds * 1000000000 + found.written.nanoseconds;
    stamp[1] = found.changed.seconds * 1000000000 + found.changed.nanoseconds;
    stamp[2] = (int64_t)found.size;
    stamp[3] = (int64_t)found.number;
    stamp[4] = found.mode;
    return 1;
}

#else

static int read_stamp(int folder, const char *name, int64_t *stamp) {
    (void)folder, (void)name, (void)stamp;
    return 0;
}

#endif

static int differs(const int64_t *one, const int64_t *other) {
    for (int n = 0; n < FIELDS; n++)
        if (one[n] != other[n]) return 1;
    return 0;
}

/* The stamp of each of `count` names, each ended by a zero byte. With `changed` they are compared with `stamps`, and the
 * places of those that differ are written there; without it they are written to `stamps`. -1: a file could not be looked
 * at. One that is not there has a stamp of zeros. */
int64_t holdfast_look_at_files(int folder, const char *names, size_t count, int64_t *stamps, uint32_t *changed) {
    int64_t different = 0, now[FIELDS];
    for (size_t n = 0; n < count; n++, stamps += FIELDS) {
        if (!read_stamp(folder, names, changed ? now : stamps)) return -1;
        if (changed && differs(now, stamps)) changed[different++] = (uint32_t)n;
        while (*names++) {}
    }
    return different;
}

/* Finds every anchor of the redaction rules in a text, in one pass: what src/holdfast/redact/anchors.py asks for.
 *
 * Each anchor is known by four of its bytes. A table says for every four bytes of the text whether an anchor may
 * stand there; only then the anchor itself is compared, and what must follow it. Nothing is allocated, no library is
 * called, so the same file runs under glibc, musl and macOS. */
#include <stddef.h>
#include <stdint.h>

enum { HASH_BITS = 16, BUCKET_BITS = 13, SEEN_BITS = 13, SEEN = 1 << SEEN_BITS, FREE_HITS = 64, BEFORE = 48, AFTER = 64 };

struct anchor {
    uint32_t text;    /* where it lies in `texts` */
    uint32_t number;  /* what is reported */
    uint32_t hash;    /* of the first three of them */
    uint16_t length;
    int16_t key;      /* where its known bytes begin; -1: with the one before it */
    uint16_t follow;  /* how many bytes after it must be of `class` */
    uint16_t class;
    uint16_t left;    /* what may stand before it, as a class; 0: anything. The start of the text always may */
    uint16_t unused;
};

struct tables {
    const uint8_t *filter;          /* by the hash of three bytes: a bit for each fourth one (its lower bits) */
    const uint32_t *first;          /* by the hash's upper bits: its first anchor; the next entry ends them */
    const struct anchor *anchors;
    const uint8_t *texts;
    const uint8_t *classes;         /* 256 bytes each; the third is letters and digits */
    uint32_t run_number;            /* what a long run of them after `_` or `-` is reported as */
    uint32_t run_least, run_most;
};

struct found { uint32_t number, start, end; };

struct search {
    const struct tables *tables;
    const uint8_t *text;
    size_t length, count, room, dropped;
    struct found *out;
    uint64_t *seen;                 /* null: report repetitions too */
    size_t seen_count;
};

static inline uint32_t hash(uint32_t bytes) { return ((bytes & 0xffffff) * 0x9E3779B1u) >> (32 - HASH_BITS); }

static inline uint32_t load(const uint8_t *at) {
    uint32_t value;
    __builtin_memcpy(&value, at, 4);
    return value;
}

/* The lowest bit tells whether an anchor may have these four bytes. */
static inline uint8_t may_be(const uint8_t *filter, uint32_t bytes) { return filter[hash(bytes)] >> (bytes >> 24 & 7); }

static int same(const uint8_t *one, const uint8_t *other, size_t length) {
    for (size_t n = 0; n < length; n++)
        if (one[n] != other[n]) return 0;
    return 1;
}

/* Whether this anchor stood in the same surroundings before. The first few hits of a text are not looked at. */
static int repeats(struct search *s, uint32_t number, size_t start, size_t end) {
    if (!s->seen || s->count < FREE_HITS || s->seen_count > SEEN / 2) return 0;
    if (!s->seen_count) {
        for (size_t n = 0; n < SEEN; n++) s->seen[n] = 0;
        s->seen_count = 1;
    }
    size_t from = start > BEFORE ? start - BEFORE : 0, to = end + AFTER < s->length ? end + AFTER : s->length;
    uint64_t mixed = 0x9E3779B97F4A7C15u ^ number ^ ((uint64_t)(start - from) << 32) ^ ((uint64_t)(to - end) << 48);
    for (; from + 8 <= to; from += 8) {
        uint64_t part;
        __builtin_memcpy(&part, s->text + from, 8);
        mixed = (mixed ^ part) * 0xD6E8FEB86659FD93u;
        mixed ^= mixed >> 32;
    }
    for (; from < to; from++) mixed = (mixed ^ s->text[from]) * 0xD6E8FEB86659FD93u;
    mixed ^= mixed >> 29;
    if (!mixed) mixed = 1;
    for (size_t at = mixed & (SEEN - 1);; at = (at + 1) & (SEEN - 1)) {
        if (s->seen[at] == mixed) return 1;
        if (!s->seen[at]) {
            s->seen[at] = mixed;
            s->seen_count++;
            return 0;
        }
    }
}

/* In undecoded JSON a line begins after the two characters of an escape. */
static int may_begin(const uint8_t *text, size_t start, const uint8_t *left) {
    if (!start || left[text[start - 1]]) return 1;
    uint8_t last = text[start - 1];
    return start > 1 && text[start - 2] == '\\' && (last == 'n' || last == 't' || last == 'r');
}

static void check(struct search *s, size_t at, uint32_t hashed) {
    const struct tables *t = s->tables;
    uint32_t bucket = hashed >> (HASH_BITS - BUCKET_BITS);
    for (uint32_t n = t->first[bucket]; n < t->first[bucket + 1]; n++) {
        const struct anchor *a = &t->anchors[n];
        if (a->hash != hashed || (a->key > 0 && at < (size_t)a->key)) continue;
        size_t start = at - (size_t)(ptrdiff_t)a->key, end = start + a->length;
        if (end + a->follow > s->length || !same(s->text + start, t->texts + a->text, a->length)) continue;
        const uint8_t *allowed = t->classes + 256 * (size_t)a->class;
        if (a->left && !may_begin(s->text, start, t->classes + 256 * (size_t)a->left)) continue;
        size_t follow = 0;
        while (follow < a->follow && allowed[s->text[end + follow]]) follow++;
        if (follow < a->follow) continue;
        if (repeats(s, a->number, start, end)) {
            s->dropped++;
            continue;
        }
        if (s->count < s->room) s->out[s->count] = (struct found){a->number, (uint32_t)start, (uint32_t)end};
        s->count++;
    }
}

/* A run of so many letters and digits holds 16 of them that begin at a multiple of 16: only those are looked at. */
static void find_runs(struct search *s) {
    const struct tables *t = s->tables;
    const uint8_t *member = t->classes + 512, *text = s->text;
    size_t done = 0;
    for (size_t last = 15; last < s->length; last += 16) {
        if (!member[text[last]] || !member[text[last - 8]] || !member[text[last - 4]] || !member[text[last - 12]]) continue;
        size_t start = last, end = last;
        while (start > done && member[text[start - 1]]) start--;
        if (last - start < 15) continue;
        while (end < s->length && member[text[end]]) end++;
        done = end;
        if (end - start >= t->run_least && end - start <= t->run_most && start && (text[start - 1] == '_' || text[start - 1] == '-')) {
            if (s->count < s->room) s->out[s->count] = (struct found){t->run_number, (uint32_t)start, (uint32_t)end};
            s->count++;
        }
        last = (end & ~(size_t)15) + 15 - 16;
    }
}

/* How many anchors there are; the first `room` of them are in `out`. With `seen` (SEEN entries) repetitions are dropped,
 * and `dropped` tells how many. */
size_t holdfast_find_anchors(const struct tables *tables, const uint8_t *text, size_t length, struct found *out,
                             size_t room, uint64_t *seen, size_t *dropped) {
    struct search s = {tables, text, length, 0, room, 0, out, seen, 0};
    const uint8_t *filter = tables->filter;
    size_t at = 0;
    /* The start of the text is the start of a line. */
    uint32_t opening = '\n';
    for (size_t n = 0; n < 3 && n < length; n++) opening |= (uint32_t)text[n] << (8 * n + 8);
    if (may_be(filter, opening) & 1) check(&s, (size_t)-1, hash(opening));
    for (; at + 12 <= length; at += 8) {
        uint32_t mask = 0;
        for (uint32_t n = 0; n < 8; n++) mask |= (uint32_t)(may_be(filter, load(text + at + n)) & 1) << n;
        for (; __builtin_expect(mask, 0); mask &= mask - 1) {
            size_t place = at + (size_t)__builtin_ctz(mask);
            check(&s, place, hash(load(text + place)));
        }
    }
    for (; at < length; at++) {
        uint32_t bytes = text[at];
        if (at + 1 < length) bytes |= (uint32_t)text[at + 1] << 8;
        if (at + 2 < length) bytes |= (uint32_t)text[at + 2] << 16;
        if (at + 3 < length) bytes |= (uint32_t)text[at + 3] << 24;
        if (may_be(filter, bytes) & 1) check(&s, at, hash(bytes));
    }
    if (tables->run_least) find_runs(&s);
    *dropped = s.dropped;
    return s.count;
}

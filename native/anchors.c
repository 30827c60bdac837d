/* Finds every anchor of the redaction rules in a text, in one pass: what src/holdfast/redact/anchors.py asks for.
 *
 * Each anchor is known by four of its bytes. A table says for every four bytes of the text whether an anchor may
 * stand there; only then the anchor itself is compared, and what must stand around it. Nothing is allocated, no library
 * is called, so the same file runs under glibc, musl and macOS. */
#include "guards.h"

static void report(struct search *s, uint32_t number, size_t start, size_t end) {
    if (!s->rest && s->count >= s->room) return;
    if (s->count < s->room) {
        s->out[s->count] = (struct found){number, (uint32_t)start, (uint32_t)end};
    } else {
        if (s->count == s->room || start < s->rest[0]) s->rest[0] = start;
        if (end > s->rest[1]) s->rest[1] = end;
    }
    s->count++;
}

/* Of the lower three bytes: the lowest byte of the factor is zero, so the fourth one has no part in it. */
static inline uint32_t hash(uint32_t bytes) { return (bytes * 0x3779B100u) >> (32 - HASH_BITS); }

static inline uint32_t load(const uint8_t *at) {
    uint32_t value;
    __builtin_memcpy(&value, at, 4);
    return value;
}

/* The lowest bit tells whether an anchor may have these four bytes. */
static inline uint32_t may_be(const uint32_t *filter, uint32_t bytes) { return filter[hash(bytes)] >> (bytes >> 24 & 31); }

/* A closer look at those that pass: nine of ten do so by chance. */
static inline int is_known(const uint8_t *second, uint32_t bytes) {
    uint32_t four = (bytes * 0x85EBCA6Bu) >> 16, three = ((bytes & 0xffffff) * 0xC2B2AE35u) >> 16;
    return (second[four >> 3] >> (four & 7) & 1) | (second[8192 + (three >> 3)] >> (three & 7) & 1);
}

static int same(const uint8_t *one, const uint8_t *other, size_t length) {
    for (size_t n = 0; n < length; n++)
        if (one[n] != other[n]) return 0;
    return 1;
}

/* Whether this anchor stood in the same surroundings before. The first few hits of a text are not looked at. */
static int repeats(struct search *s, uint32_t number, size_t start, size_t end) {
    if (!s->seen || s->count < FREE_HITS || s->count >= s->room || s->seen_count > SEEN / 2) return 0;
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
        /* Before the start of the text, too, where only a key that is borrowed may lie. */
        if (a->hash != hashed || (ptrdiff_t)at < a->key) continue;
        size_t start = at - (size_t)(ptrdiff_t)a->key, end = start + a->length;
        if (end + a->follow > s->length || !same(s->text + start, t->texts + a->text, a->length)) continue;
        if (a->left && !may_begin(s->text, start, t->classes + 256 * (size_t)a->left)) continue;
        if ((a->follow && !is_followed(s, a, end)) || (a->guard && !is_plausible(s, a, start, end))) continue;
        if (repeats(s, a->number, start, end)) {
            s->dropped++;
            continue;
        }
        report(s, a->number, start, end);
    }
}

typedef uint8_t block __attribute__((vector_size(16)));

static inline int is_word(uint8_t c) { return is_letter(c) || is_digit(c); }

/* Which halves of sixteen bytes are letters and digits throughout: 1 for the first, 2 for the second. */
static inline int mark_words(const uint8_t *at) {
    block bytes;
    __builtin_memcpy(&bytes, at, 16);
    block letters = (bytes | 32) - 'a', digits = bytes - '0';
    block members = (block)(letters < 26) | (block)(digits < 10);
#ifdef __SSE2__
    typedef char signed_block __attribute__((vector_size(16)));
    uint32_t mask = (uint32_t)__builtin_ia32_pmovmskb128((signed_block)members);
    return ((mask & 0xff) == 0xff) | (mask >> 8 == 0xff) << 1;
#else
    uint64_t halves[2];
    __builtin_memcpy(halves, &members, 16);
    return (halves[0] == ~(uint64_t)0) | (halves[1] == ~(uint64_t)0) << 1;
#endif
}

/* Whether `prefixed.find_prefixed` could take this run for a token: a prefix that is none of an id's, and enough digits and
 * letters of both cases; or one of the forms that are known by their lengths. */
static int may_be_token(const struct search *s, size_t start, size_t end) {
    const struct tables *t = s->tables;
    const uint8_t *text = s->text;
    size_t length = end - start, digits = 0, uppers = 0, hex = 0, word = start - 1;
    uint8_t before = text[start - 1];
    for (size_t n = start; n < end; n++) {
        digits += (size_t)is_digit(text[n]);
        uppers += (size_t)is_upper(text[n]);
        hex += (size_t)(is_digit(text[n]) || (lowered(text[n]) >= 'a' && lowered(text[n]) <= 'f'));
    }
    int goes_on = end < s->length && is_one_of(text[end], "_-.");
    if (digits < 2 && !goes_on) return 0;
    if (before == '|') return length >= 40 && start > 1 && is_digit(text[start - 2]);
    if (before == '.' && length >= 32 && uppers && uppers + digits < length) return start > 1 && is_lower(text[start - 2]) && !(end < s->length && text[end] == '.');
    if (before == ':' || before == '.') {
        if (hex < length || start < 24 || (length != 32 && length != 64)) return 0;
        for (size_t n = 2; n < 24; n++)
            if (!is_digit(text[start - n]) && text[start - n] != '-' && !(text[start - n] >= 'a' && text[start - n] <= 'f')) return 0;
        return 1;
    }
    while (word && is_word(text[word - 1])) word--;
    if (start > 1 && text[start - 2] == '-') return length == 40 || length == 64;
    if (word && text[word - 1] == '\\') return 1; /* in undecoded JSON its first letter is that of an escape */
    if (is_indexed(t->public_words, text + word, start - 1 - word)) return 0;
    if (is_listed(t->secret_words, text + word, start - 1 - word, 1)) return 1;
    if (!uppers || uppers + digits == length) return (hex < length && length >= 32) || goes_on;
    return 1;
}

/* `<32>-<8>-…` and `<32>.<16>`. */
static int has_tail(const struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t more = end + 1;
    while (more < s->length && more < end + 18 && is_word(text[more])) more++;
    return end < s->length && ((text[end] == '-' && more == end + 9) || (text[end] == '.' && more == end + 17));
}

/* Reports the run around these eight bytes, and tells where it ends. */
static size_t check_run(struct search *s, size_t from, size_t done) {
    const struct tables *t = s->tables;
    const uint8_t *text = s->text;
    size_t start = from, end = from + 8;
    while (start > done && is_word(text[start - 1])) start--;
    while (end < s->length && is_word(text[end])) end++;
    size_t length = end - start;
    if (length >= t->run_least && length <= t->run_most) {
        int joined = start && is_one_of(text[start - 1], "_-|:.") && may_be_token(s, start, end);
        if (joined || (length == 32 && has_tail(s, end))) report(s, t->run_number, start, end);
    }
    return end;
}

/* Runs of letters and digits. One of 15 bytes or more has eight that begin at a multiple of eight: only those are looked at. */
static void find_runs(struct search *s) {
    const uint8_t *text = s->text;
    size_t done = 0, at = 0, tail = 0;
    for (; at + 16 <= s->length; at += 16) {
        int whole = mark_words(text + at);
        if (!whole) continue;
        int first = (whole & 1) && at >= done;
        if (!first && (!(whole & 2) || at + 8 < done)) continue;
        done = check_run(s, first ? at : at + 8, done);
        at = (done & ~(size_t)15) - 16; /* another run may begin in the block in which this one ends */
    }
    while (tail < 8 && at + tail < s->length && is_word(text[at + tail])) tail++;
    if (tail == 8 && at >= done) check_run(s, at, done);
}

/* How many anchors there are; the first `room` of them are in `out`. With `seen` (SEEN entries) repetitions are dropped,
 * and `dropped` tells how many. `rest` tells where the first and the last of those lie that `out` has no room for; without it
 * the search ends when `out` is full. */
size_t holdfast_find_anchors(const struct tables *tables, const uint8_t *text, size_t length, struct found *out,
                             size_t room, uint64_t *seen, size_t *dropped, size_t *rest) {
    struct search s = {tables, text, length, 0, room, 0, out, seen, 0, rest, 0, 0, 0, 0, {0}, 0, 0, 0, {{0, 0, 0}}};
    if (rest) rest[0] = rest[1] = 0;
    const uint32_t *filter = tables->filter;
    size_t at = 0;
    /* The start of the text is the start of a line. */
    uint32_t opening = '\n';
    for (size_t n = 0; n < 3 && n < length; n++) opening |= (uint32_t)text[n] << (8 * n + 8);
    if (may_be(filter, opening) & 1) check(&s, (size_t)-1, hash(opening));
    while (at + 12 <= length && (rest || s.count < room)) {
        /* Without a branch for each byte: a processor guesses wrong at every second hit. */
        uint32_t places[BLOCK + 8];
        size_t count = 0, known = 0;
        for (size_t stop = at + BLOCK; at + 12 <= length && at < stop; at += 8)
            for (size_t n = 0; n < 8; n++) {
                places[count] = (uint32_t)(at + n);
                count += may_be(filter, load(text + at + n)) & 1;
            }
        for (size_t n = 0; n < count; n++) {
            uint32_t place = places[n];
            places[known] = place;
            known += (size_t)is_known(tables->second, load(text + place));
        }
        for (size_t n = 0; n < known && (rest || s.count < room); n++) check(&s, places[n], hash(load(text + places[n])));
    }
    for (; at < length && (rest || s.count < room); at++) {
        uint32_t bytes = text[at];
        if (at + 1 < length) bytes |= (uint32_t)text[at + 1] << 8;
        if (at + 2 < length) bytes |= (uint32_t)text[at + 2] << 16;
        if (at + 3 < length) bytes |= (uint32_t)text[at + 3] << 24;
        if (may_be(filter, bytes) & 1) check(&s, at, hash(bytes));
    }
    if (tables->run_least && (rest || s.count < room)) find_runs(&s);
    *dropped = s.dropped;
    return s.count;
}

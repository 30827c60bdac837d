/* Finds every anchor of the redaction rules in a text, in one pass: what src/holdfast/analysis/redact/anchors.py asks for.
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

static inline uint32_t load(const uint8_t *at) {
    uint32_t value;
    __builtin_memcpy(&value, at, 4);
    return value;
}

/* Whether an anchor may have these bytes. The fourth is given by itself: to load it again takes less than to shift it down. */
static inline int may_be(const uint32_t *filter, uint32_t bytes, uint32_t fourth) { return (filter[hash(bytes)] & 1u << (fourth & 31)) != 0; }

/* A closer look at those that pass: nine of ten do so by chance. */
static inline int is_known(const uint8_t *second, uint32_t bytes) {
    uint32_t four = hash_four(bytes), three = hash_three(bytes);
    return (second[four >> 3] >> (four & 7) & 1) | (second[SECOND + (three >> 3)] >> (three & 7) & 1);
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

/* A text of one letter stands at every place of a longer row of that letter: only where the row begins may it be a token. */
static int is_within_row(const uint8_t *text, size_t start, size_t end) {
    if (end - start < ROW_LEAST || start < ROW_BEFORE) return 0;
    for (size_t n = start - ROW_BEFORE + 1; n < end; n++)
        if (text[n] != text[n - 1]) return 0;
    return 1;
}

static void check(struct search *s, size_t at, uint32_t hashed) {
    const struct tables *t = s->tables;
    uint32_t bucket = hashed >> (HASH_BITS - BUCKET_BITS);
    s->looked += 1 + t->first[bucket + 1] - t->first[bucket];
    for (uint32_t n = t->first[bucket]; n < t->first[bucket + 1]; n++) {
        const struct anchor *a = &t->anchors[n];
        /* Before the start of the text, too, where only a key that is borrowed may lie. */
        if (a->hash != hashed || (ptrdiff_t)at < a->key) continue;
        size_t start = at - (size_t)(ptrdiff_t)a->key, end = start + a->length;
        /* Where marks stand side by side they are not compared one by one. */
        if ((a->guard & GUARD_FAR) && start < s->next[sort_of(a)]) continue;
        if (end + a->follow > s->length) continue;
        /* The last byte first: many anchors begin with the same word. */
        const uint8_t *anchor = t->texts + a->text;
        if (s->text[end - 1] != anchor[a->length - 1] || !same(s->text + start, anchor, a->length - 1u)) continue;
        if (is_within_row(s->text, start, end) || (a->left && !may_begin(s->text, start, t->classes + 256 * (size_t)a->left))) continue;
        if (a->follow && !is_followed(s, a, end)) continue;
        if (a->guard) {
            s->looked += LOOK_OF_GUARD;
            if (!is_plausible(s, a, start, end)) continue;
        }
        if (repeats(s, a->number, start, end)) {
            if (++s->dropped <= MOST_DROPPED + s->length / PER_DROPPED || !s->rest) continue;
            /* A text that is little else: the search ends here, and what was not listed is not judged. */
            s->room = s->count;
            s->ended = 1;
        }
        report(s, a->number, start, end);
    }
}

typedef uint8_t block __attribute__((vector_size(16)));

static inline int is_word(uint8_t c) { return is_letter(c) || is_digit(c); }

/* Which halves of sixteen bytes are members throughout: 1 for the first, 2 for the second. */
static inline int mark_halves(block members) {
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

/* The same for letters and digits. In most places a space or a sign below the digits says at once that there are none. */
static inline int mark_words(const uint8_t *at) {
    block bytes;
    __builtin_memcpy(&bytes, at, 16);
    if (!mark_halves((block)(bytes >= '0'))) return 0;
    block letters = (bytes | 32) - 'a', digits = bytes - '0';
    return mark_halves((block)(letters < 26) | (block)(digits < 10));
}

/* `acme_`, `AB-`, `v2_`: what a vendor writes before a token, as `_VENDOR` in prefixed.py. */
static int is_vendor(const uint8_t *text, size_t at, size_t stop) {
    size_t first = at, mixed = at;
    if (is_upper(text[at])) {
        while (at < stop && at < first + 14 && is_upper(text[at])) at++;
        if (at == first + 1)
            while (at < stop && at < first + 15 && is_lower(text[at])) at++;
        if (at < first + 2) return 0;
    } else {
        while (at < stop && at < first + 14 && is_lower(text[at])) at++;
    }
    for (size_t digits = 0; at < stop && digits < 3 && is_digit(text[at]); digits++) at++;
    if (text[at] == '_' || text[at] == '-') return 1;
    while (mixed < stop && mixed < first + 6 && (is_lower(text[mixed]) || is_digit(text[mixed]))) mixed++;
    return is_lower(text[first]) && mixed > first + 1 && (text[mixed] == '_' || text[mixed] == '-');
}

/* Whether what stands before the sign at `sign` may be the prefix of a token: words, from a place where a token may begin. */
static int has_prefix(const struct search *s, size_t sign, int says_secret) {
    const uint8_t *text = s->text;
    size_t first = sign, least = sign > 96 ? sign - 96 : 0;
    while (first > least && (is_word(text[first - 1]) || text[first - 1] == '_' || text[first - 1] == '-')) first--;
    if (first && text[first - 1] == '\\') return 1; /* in undecoded JSON its first letter is that of an escape */
    if (first && is_one_of(text[first - 1], "./+%&_-")) return 0;
    if (first && text[first - 1] == '=' && (first < 2 || !is_word(text[first - 2]))) return 0;
    if (!is_letter(text[first]) || first + 1 >= sign || !is_word(text[first + 1])) return 0;
    return says_secret || is_vendor(text, first, sign);
}

/* Whether `prefixed.find_prefixed` could take this run for a token: a prefix that is none of an id's, and enough digits and
 * letters of both cases; or one of the forms that are known by their lengths. */
static int may_be_token(const struct search *s, size_t start, size_t end) {
    const struct tables *t = s->tables;
    const uint8_t *text = s->text;
    size_t length = end - start, digits = 0, uppers = 0, hex = 0, flips = 0, word = start - 1;
    uint8_t before = text[start - 1];
    for (size_t n = start; n < end; n++) {
        digits += (size_t)is_digit(text[n]);
        uppers += (size_t)is_upper(text[n]);
        hex += (size_t)(is_digit(text[n]) || (lowered(text[n]) >= 'a' && lowered(text[n]) <= 'f'));
        flips += (size_t)(n > start && (is_digit(text[n]) != is_digit(text[n - 1]) || is_upper(text[n]) != is_upper(text[n - 1])));
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
    if (start - 1 - word >= 15 && is_digit(text[word]) && length >= 35 && length <= 50) return 1; /* `<number>-<run>` */
    int says_secret = is_listed(t->secret_words, text + word, start - 1 - word, 1);
    if (!has_prefix(s, start - 1, says_secret)) return 0;
    if (says_secret) return 1;
    if (digits < 2) return 0;
    if (!uppers || uppers + digits == length) return (hex < length && length >= 32) || goes_on;
    return flips * 4 >= length;
}

/* `<32>-<8>-…` and `<32>.<16>`. */
static int has_tail(const struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t more = end + 1;
    while (more < s->length && more < end + 18 && is_word(text[more])) more++;
    return end < s->length && ((text[end] == '-' && more == end + 9) || (text[end] == '.' && more == end + 17));
}

/* Reports the run around these eight bytes, and tells where it ends. It is read from `done` to `limit`. */
static size_t check_run(struct search *s, size_t from, size_t done, size_t limit) {
    const struct tables *t = s->tables;
    const uint8_t *text = s->text;
    size_t start = from, end = from + 8;
    while (start > done && is_word(text[start - 1])) start--;
    while (end < limit && is_word(text[end])) end++;
    size_t length = end - start;
    if (length >= t->run_least && length <= t->run_most) {
        int joined = start && is_one_of(text[start - 1], "_-|:.") && may_be_token(s, start, end);
        if (joined || (length == 32 && has_tail(s, end))) report(s, t->run_number, start, end);
    }
    return end;
}

/* Runs of letters and digits between two multiples of sixteen, until there are `most` hits. One of 15 bytes or more has eight
 * that begin at a multiple of eight: only those are looked at. */
static void find_runs(struct search *s, size_t at, size_t to, size_t most) {
    const uint8_t *text = s->text;
    size_t reach = 2 * (size_t)s->tables->run_most, done = at > reach ? at - reach : 0, tail = 0;
    size_t limit = to < s->length && to + reach < s->length ? to + reach : s->length;
    for (; at + 16 <= s->length && at < to && s->count < most && !s->ended; at += 16) {
        int whole = mark_words(text + at);
        if (!whole) continue;
        int first = (whole & 1) && at >= done;
        if (!first && (!(whole & 2) || at + 8 < done)) continue;
        done = check_run(s, first ? at : at + 8, done, limit);
        at = (done & ~(size_t)15) - 16; /* another run may begin in the block in which this one ends */
    }
    if (at >= to || s->count >= most) return;
    while (tail < 8 && at + tail < s->length && is_word(text[at + tail])) tail++;
    if (tail == 8 && at >= done) check_run(s, at, done, s->length);
}

/* Anchors from one place of the text to another, until there are `most` hits; tells where it ended. */
static size_t find_between(struct search *s, size_t at, size_t to, size_t most) {
    const uint8_t *text = s->text;
    const uint32_t *filter = s->tables->filter;
    size_t length = s->length;
    while (at + 12 <= length && at < to && s->count < most && !s->ended) {
        /* Without a branch for each byte: a processor guesses wrong at every second hit. */
        uint32_t places[BLOCK + 8];
        size_t count = 0, known = 0;
        for (size_t stop = at + BLOCK < to ? at + BLOCK : to; at + 12 <= length && at < stop; at += 8)
            for (size_t n = 0; n < 8; n++) {
                places[count] = (uint32_t)(at + n);
                count += (size_t)may_be(filter, load(text + at + n), text[at + n + 3]);
            }
        for (size_t n = 0; n < count; n++) {
            uint32_t place = places[n];
            places[known] = place;
            known += (size_t)is_known(s->tables->second, load(text + place));
        }
        for (size_t n = 0; n < known && s->count < most && !s->ended; n++) check(s, places[n], hash(load(text + places[n])));
    }
    for (; at < to && at < length && s->count < most && !s->ended; at++) {
        uint32_t bytes = text[at];
        if (at + 1 < length) bytes |= (uint32_t)text[at + 1] << 8;
        if (at + 2 < length) bytes |= (uint32_t)text[at + 2] << 16;
        if (at + 3 < length) bytes |= (uint32_t)text[at + 3] << 24;
        if (may_be(filter, bytes, bytes >> 24)) check(s, at, hash(bytes));
    }
    return at;
}

/* What was remembered of the bytes that were read last: of no use at another place of the text. */
static void forget_place(struct search *s) {
    s->clear_word = (struct word){0};
    s->clear_from = s->clear_to = s->clear_run = s->clear_flips = s->random_from = s->random_to = 0;
    s->even_from = s->even_to = s->open_from = s->open_to = 0;
    for (size_t n = 0; n < SORTS; n++) s->next[n] = 0;
    for (size_t n = 0; n < RUNS; n++) s->runs[n] = (struct run){0, 0, 0};
}

/* `rest` ends where the last hit does: it is looked for from the end of the text, because all others need not be known. */
static void find_last(struct search *s, size_t from, int runs) {
    size_t found = s->count;
    s->ended = 0;
    for (size_t to = s->length, at; to > from && s->count == found; to = at) {
        at = to > from + CHUNK ? (to - CHUNK) & ~(size_t)15 : from;
        if (at >= to) break;
        forget_place(s);
        if (runs) find_runs(s, at, to, (size_t)-1);
        else find_between(s, at, to, (size_t)-1);
    }
}

/* How many anchors are in `out`: the first ones, at most `room`. With `seen` (SEEN entries) repetitions are dropped,
 * and `told` tells how many, and how much was looked at. `rest` tells where the first and the last of those lie that are not in `out`, zero if all are; the
 * search ends when it knows them; without it the search ends when `out` is full. */
size_t holdfast_find_anchors(const struct tables *tables, const uint8_t *text, size_t length, struct found *out,
                             size_t room, uint64_t *seen, size_t *told, size_t *rest) {
    struct search s;
    /* One by one: for a struct of this size compilers call memset. */
    s.tables = tables, s.text = text, s.length = length, s.room = room, s.out = out, s.seen = seen, s.rest = rest;
    s.count = s.dropped = s.looked = s.seen_count = s.walked = 0;
    s.ended = 0;
    forget_place(&s);
    size_t most = room + (rest != 0);
    if (rest) rest[0] = rest[1] = 0;
    /* The start of the text is the start of a line. */
    uint32_t opening = '\n';
    for (size_t n = 0; n < 3 && n < length; n++) opening |= (uint32_t)text[n] << (8 * n + 8);
    if (may_be(tables->filter, opening, opening >> 24)) check(&s, (size_t)-1, hash(opening));
    size_t at = find_between(&s, 0, length, most);
    int full = s.count >= most || s.ended;
    if (full && rest) find_last(&s, at, 0);
    if (tables->run_least && !full) {
        find_runs(&s, 0, length, most);
        if (s.count >= most && rest) find_last(&s, 0, 1);
    } else if (tables->run_least && rest) {
        size_t last = rest[1] & ~(size_t)15;
        find_runs(&s, 0, rest[0], s.count + 1);
        find_runs(&s, last, length, (size_t)-1);
    }
    told[0] = s.dropped, told[1] = s.looked + s.walked / 2;
    return s.count < s.room ? s.count : s.room;
}

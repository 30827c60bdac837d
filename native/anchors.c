/* Finds every anchor of the redaction rules in a text, in one pass: what src/holdfast/redact/anchors.py asks for.
 *
 * Each anchor is known by four of its bytes. A table says for every four bytes of the text whether an anchor may
 * stand there; only then the anchor itself is compared, and what must stand around it. Nothing is allocated, no library
 * is called, so the same file runs under glibc, musl and macOS. */
#include "bytes.h"

enum { HASH_BITS = 16, BUCKET_BITS = 13, SEEN_BITS = 13, SEEN = 1 << SEEN_BITS, FREE_HITS = 64, BEFORE = 48, AFTER = 64, FAR = 512, SORTS = 4, RUNS = 8 };

struct anchor {
    uint32_t text;    /* where it lies in `texts` */
    uint32_t number;  /* what is reported */
    uint32_t hash;    /* of the first three of them */
    uint16_t length;
    int16_t key;      /* where its known bytes begin; -1: with the one before it */
    uint16_t follow;  /* how many bytes after it must be of `class` */
    uint16_t class;
    uint16_t left;    /* what may stand before it, as a class; 0: anything. The start of the text always may */
    uint16_t guard;   /* what else is asked of it: GUARD_… and, in the upper byte, the width of the name's stem */
};

/* A name is reported only where the rules could find a value: what they would refuse at once is refused here. */
enum {
    GUARD_VALUE = 1,    /* a value may follow */
    GUARD_RANDOM = 2,   /* something random follows */
    GUARD_WORD = 4,     /* it is a word of its own */
    GUARD_KEY = 8,      /* what stands before `key` decides */
    GUARD_TOKEN = 16,   /* the same for `token` */
    GUARD_PASS = 32,    /* may run on from a word where a value follows at once */
    GUARD_SPOKEN = 64,  /* `use … as the password`: the value may stand before it */
    GUARD_PAREN = 128,  /* a closing parenthesis stands just before it */
    GUARD_CODE = 1 << 11,   /* where a value is computed it is none */
    GUARD_PLAIN = 1 << 12,  /* a plain word in lower case is no value of it */
    GUARD_COOKIE = 1 << 13, /* the name of a session's cookie follows */
    GUARD_LOGIN = 1 << 14,  /* `@` follows before a space or a quote */
    GUARD_FAR = 1 << 15 /* one in so many bytes is enough; the upper byte tells of which sort it is */
};

struct tables {
    const uint8_t *filter;          /* by the hash of three bytes: a bit for each fourth one (its lower bits) */
    const uint32_t *first;          /* by the hash's upper bits: its first anchor; the next entry ends them */
    const struct anchor *anchors;
    const uint8_t *texts;
    const uint8_t *classes;         /* 256 bytes each; the third is letters and digits */
    const uint8_t *second;          /* a bit for each hash of four known bytes, then one for each of three */
    const uint8_t *tail_words;      /* lists of words, each after its length, ended by a zero */
    const uint8_t *said_words;
    const uint8_t *glued_key, *glued_token, *plain_words, *cookie_words;
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
    size_t *rest;
    size_t clear_from, clear_to;
    size_t next[SORTS];             /* for GUARD_FAR: where the next one may begin */
    size_t open_from, open_to;      /* between them nothing ends a login */
    struct run { size_t class, from, to; } runs[RUNS]; /* between them all is of the class: each byte is read once */
};

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

static inline uint32_t hash(uint32_t bytes) { return ((bytes & 0xffffff) * 0x9E3779B1u) >> (32 - HASH_BITS); }

static inline uint32_t load(const uint8_t *at) {
    uint32_t value;
    __builtin_memcpy(&value, at, 4);
    return value;
}

/* The lowest bit tells whether an anchor may have these four bytes. */
static inline uint8_t may_be(const uint8_t *filter, uint32_t bytes) { return filter[hash(bytes)] >> (bytes >> 24 & 7); }

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

/* Whether these bytes are a word of the list, in any case. With `ending` they need only end with it. */
static int is_listed(const uint8_t *words, const uint8_t *bytes, size_t length, int ending) {
    for (size_t size; (size = *words++); words += size) {
        if (size != length && !(ending && size < length)) continue;
        const uint8_t *from = bytes + (length - size);
        size_t n = 0;
        while (n < size && lowered(from[n]) == words[n]) n++;
        if (n == size) return 1;
    }
    return 0;
}

static const char NO_VALUE[] = ");.[}+*/!&%^~@#;?$", BEFORE_QUOTED[] = "\"'`\\ \t\n";

/* `_token2` after a stem: where the first further word or number ends; 0 if it is none that names have. */
static size_t skip_tail(const struct tables *t, const uint8_t *text, size_t length, size_t end) {
    size_t at = end + (size_t)is_one_of(text[end], "_.-"), first = at;
    while (at < length && is_letter(text[at])) at++;
    if (at - first > 16 || (at > first && !is_listed(t->tail_words, text + first, at - first, 0))) return 0;
    while (at < length && is_digit(text[at])) at++;
    return at > first ? at : 0;
}

static int follows_space(const struct tables *t, const uint8_t *text, size_t length, size_t at) {
    while (at < length && (text[at] == ' ' || text[at] == '\t')) at++;
    if (at >= length || !(is_letter(text[at]) || is_digit(text[at]))) return 1;
    size_t first = at;
    for (; at < length && at < first + 26 && !is_one_of(text[at], " \t\n\r\v\f"); at++)
        if (is_digit(text[at]) || is_one_of(text[at], "!@#$%^&*") || (at > first && is_upper(text[at]))) return 1;
    for (at = first; at < length && is_letter(text[at]); at++) continue;
    if (at == first + 1 && at < length && text[at] >= 128) return 1; /* `für` */
    return at - first <= 16 && is_listed(t->said_words, text + first, at - first, 0);
}

static int may_follow(const struct tables *t, const uint8_t *text, size_t length, size_t end) {
    uint8_t after = text[end], next = end + 1 < length ? text[end + 1] : 0;
    if (is_one_of(after, NO_VALUE) || (after == '(' && !is_one_of(next, BEFORE_QUOTED))) return 0;
    return (after != ' ' && after != '\t') || follows_space(t, text, length, end);
}

/* `_banco` in `senha_banco=`: one or two further words, then a sign. */
static int has_other_tail(const uint8_t *text, size_t length, size_t at) {
    for (int words = 0; words < 2 && at < length && (text[at] == '_' || text[at] == '-'); words++)
        for (at++; at < length && is_letter(text[at]);) at++;
    while (at < length && is_one_of(text[at], "0123456789\"'`\\ \t")) at++;
    return at < length && is_one_of(text[at], "=:\x1e");
}

static int may_have_value(const struct tables *t, const uint8_t *text, size_t length, size_t end) {
    uint8_t after = end < length ? text[end] : '\n', next = end + 1 < length ? text[end + 1] : 0;
    if (after == '\\' && next == 't') return end + 2 < length && follows_space(t, text, length, end + 2);
    if (after == '\n' || after == '\r' || (after == '\\' && is_one_of(next, "nr"))) {
        size_t at = end;
        while (at < length && at < end + 40 && is_one_of(text[at], " \t\r\n\\nr\"'")) at++;
        return at < length && lowered(text[at]) == 'v';
    }
    if (!is_letter(after) && !is_digit(after) && after != '_' && after != '-') return may_follow(t, text, length, end);
    size_t tail = skip_tail(t, text, length, end);
    if (!tail) return has_other_tail(text, length, end);
    return tail >= length || is_letter(text[tail]) || is_one_of(text[tail], "_.-") || may_follow(t, text, length, tail);
}

/* A run of eight bytes or more with a digit, or with wild case, or that an escape may hide. Where there was none for an
 * earlier anchor, `clear` tells it, and the same bytes are not read again: a text full of names is read once. */
static int has_random(struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t length = s->length, stop = end + 300 < length ? end + 300 : length, run = 0, flips = 0, at = end;
    int digit = 0;
    if (end + 4 < length && text[end] == '(' && (is_one_of(text[end + 1], "\"'`\\ ") || is_one_of(text[end + 2], "\"'`\\"))) return 1;
    if (end >= s->clear_from && end < s->clear_to) at = s->clear_to;
    for (; at < stop; at++) {
        uint8_t c = text[at];
        if (c == ' ' || c == 0x1f) {
            run = flips = 0;
            digit = 0;
            continue;
        }
        run++;
        digit |= is_digit(c) || (c == '\\' && at + 1 < length && is_one_of(text[at + 1], "u\\/bf"));
        flips += is_upper(c) && at > end && (is_lower(text[at - 1]) || (at + 1 < length && is_upper(text[at - 1]) && is_lower(text[at + 1])));
        if (run >= 8 && (digit || flips >= 2)) return 1;
    }
    if (end < s->clear_from || end >= s->clear_to) s->clear_from = end;
    s->clear_to = at - run;
    return stop < length && run > 0;
}

/* The word right before a name: `cache` in `cache_` and in `theCache`. */
static int has_plain_qualifier(const struct tables *t, const uint8_t *text, size_t start) {
    size_t last = start - 1, first = last, least = start > 24 ? start - 24 : 0;
    if (first > least && is_upper(text[first - 1])) {
        while (first > least && is_upper(text[first - 1])) first--;
    } else {
        while (first > least && (is_lower(text[first - 1]) || is_digit(text[first - 1]))) first--;
        if (first > least && first < last && is_upper(text[first - 1])) first--;
    }
    return first < last && is_listed(t->plain_words, text + first, last - first, 0);
}

static int is_part(const struct search *s, const struct anchor *a, size_t start, size_t end) {
    const struct tables *t = s->tables;
    const uint8_t *text = s->text;
    if (!start) return !(a->guard & GUARD_KEY);
    uint8_t first = text[start], last = text[start - 1], before = start > 1 ? text[start - 2] : 0;
    uint8_t after = end < s->length ? text[end] : 0;
    if ((before == '\\' && is_one_of(last, "nrt")) || (last == 'm' && (is_digit(before) || before == '[' || before == ';'))) return 1;
    int glued = is_upper(first) ? is_upper(last) : is_letter(last);
    size_t from = start > 24 ? start - 24 : 0;
    if (glued && (a->guard & (GUARD_KEY | GUARD_TOKEN)))
        return is_listed(a->guard & GUARD_KEY ? t->glued_key : t->glued_token, text + from, start - from, 1);
    if (glued) return (a->guard & GUARD_PASS) && is_one_of(after, "=:\"'\x1e");
    if (a->guard & GUARD_TOKEN) return 1;
    if (a->guard & GUARD_KEY) {
        if (last == '_' || last == '-' || last == '.') return !has_plain_qualifier(t, text, start);
        return last == ' ' || last == '?' || last == '&' || is_letter(last) || is_digit(last);
    }
    return !is_letter(after) || (is_lower(text[end - 1]) && is_upper(after));
}

static int is_blank(const struct search *s, size_t at) {
    if (at >= s->length || is_one_of(s->text[at], " \t\r\n")) return 1;
    return s->text[at] == '\\' && at + 1 < s->length && is_one_of(s->text[at + 1], "nrt");
}

static size_t skip_spaces(const struct search *s, size_t at) {
    size_t stop = at + 40 < s->length ? at + 40 : s->length;
    while (at < stop && (s->text[at] == ' ' || s->text[at] == '\t')) at++;
    return at;
}

/* Where an assigned value begins that is a name of a program; 0 if none does. `name: type = value` is not looked at. */
static size_t find_assigned_name(const struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t at = skip_tail(s->tables, text, s->length, end), quote = at = at ? at : end;
    while (quote < s->length && quote < at + 7 && text[quote] == '\\') quote++;
    at = skip_spaces(s, quote < s->length && is_one_of(text[quote], "\"'`") ? quote + 1 : at);
    if (at + 1 >= s->length || (text[at] != '=' && text[at] != ':') || is_one_of(text[at + 1], "=>~:-")) return 0;
    for (size_t n = at + 1; text[at] == ':' && n < s->length && n < at + 60; n++)
        if (text[n] == '=') return 0;
    at = skip_spaces(s, at + 1);
    return at < s->length && (is_letter(text[at]) || text[at] == '_' || text[at] == '[') ? at : 0;
}

/* `token = next_token()`, `password = given`: code, where the rules ask for a value. */
static int is_assigned_code(const struct search *s, const struct anchor *a, size_t start, size_t end) {
    const uint8_t *text = s->text;
    size_t first = find_assigned_name(s, end), at = first, flips = 0;
    int digit = 0, dotted = 0, lower = 0;
    if (!first) return 0;
    if (text[first] == '[') return (a->guard & GUARD_RANDOM) != 0;
    for (; at < s->length && (is_letter(text[at]) || is_digit(text[at]) || is_one_of(text[at], "_.$:")); at++) {
        digit |= is_digit(text[at]);
        dotted |= is_one_of(text[at], ".$:");
        flips += at > first && is_upper(text[at]) && !(is_upper(text[at - 1]) && at + 1 < s->length && is_upper(text[at + 1]));
    }
    if (at < s->length && (text[at] == '(' || text[at] == '[')) return 1;
    if (digit || !is_blank(s, at)) return 0;
    if (a->guard & GUARD_RANDOM) return flips < 2;
    for (size_t n = start; n < end; n++) lower |= is_lower(text[n]);
    return (a->guard & GUARD_PLAIN) && lower && !dotted && text[skip_spaces(s, end)] == '=';
}

static int has_cookie_name(const struct search *s, size_t end) {
    size_t stop = end + 60 < s->length ? end + 60 : s->length;
    for (size_t at = end + 3; at <= stop; at++)
        if (is_listed(s->tables->cookie_words, s->text + end, at - end, 1)) return 1;
    return 0;
}

/* `user:password@` or `token@`: neither begins with a path. */
static int has_login(struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t stop = end + 404 < s->length ? end + 404 : s->length;
    while (end < stop && !is_one_of(text[end], " \t\n\r\f\v\"'\\<>@/?#:")) end++;
    if (end >= stop || text[end] != ':') return end < stop && text[end] == '@';
    if (end < s->open_from || end > s->open_to) s->open_from = s->open_to = end;
    while (s->open_to < stop && !is_one_of(text[s->open_to], " \t\n\r\f\v\"'\\<>@")) s->open_to++;
    return s->open_to < stop && text[s->open_to] == '@';
}

/* Whether as many bytes of its class follow as the anchor asks for. */
static int is_followed(struct search *s, const struct anchor *a, size_t end) {
    const uint8_t *allowed = s->tables->classes + 256 * (size_t)a->class;
    struct run *run = &s->runs[a->class % RUNS];
    if (run->class != a->class || end < run->from || end > run->to) *run = (struct run){a->class, end, end};
    while (run->to < end + a->follow && allowed[s->text[run->to]]) run->to++;
    return run->to >= end + a->follow;
}

/* Whether a rule could find something here. Never false where it would: the rules themselves decide. */
static int is_plausible(struct search *s, const struct anchor *a, size_t start, size_t end) {
    const uint8_t *text = s->text;
    size_t width = a->guard >> 8 & 7;
    if (a->guard & GUARD_FAR) {
        size_t *next = &s->next[width & (SORTS - 1)];
        if (start < *next) return 0;
        *next = start + FAR;
        return 1;
    }
    if (a->guard & GUARD_LOGIN) return has_login(s, end);
    if (a->guard & GUARD_COOKIE) return has_cookie_name(s, end);
    if (a->guard & GUARD_PAREN) {
        for (size_t n = 1; n <= 5 && n <= start; n++)
            if (text[start - n] == ')') return 1;
        return 0;
    }
    if (width) start = end - width;
    if ((a->guard & (GUARD_WORD | GUARD_KEY | GUARD_TOKEN)) && !is_part(s, a, start, end)) return 0;
    if (!((a->guard & GUARD_RANDOM) && !has_random(s, end)) && may_have_value(s->tables, text, s->length, end) &&
        !((a->guard & GUARD_CODE) && is_assigned_code(s, a, start, end)))
        return 1;
    if (!(a->guard & GUARD_SPOKEN)) return 0;
    for (size_t at = start > 48 ? start - 48 : 0; at + 4 <= start; at++)
        if (text[at] == ' ' && text[at + 1] == 'a' && text[at + 2] == 's' && text[at + 3] == ' ') return 1;
    return 0;
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

/* Whether all sixteen bytes are letters or digits. */
static inline int is_word_block(const uint8_t *at) {
    block bytes;
    __builtin_memcpy(&bytes, at, 16);
    block letters = (bytes | 32) - 'a', digits = bytes - '0';
    block members = (block)(letters < 26) | (block)(digits < 10);
    uint64_t halves[2];
    __builtin_memcpy(halves, &members, 16);
    return (halves[0] & halves[1]) == ~(uint64_t)0;
}

/* A run of 32 letters and digits or more holds sixteen of them that begin at a multiple of 16: only those are looked at. */
static void find_runs(struct search *s) {
    const struct tables *t = s->tables;
    const uint8_t *member = t->classes + 512, *text = s->text;
    size_t done = 0;
    for (size_t at = 0; at + 16 <= s->length; at += 16) {
        if (!is_word_block(text + at)) continue;
        size_t start = at, end = at + 16;
        while (start > done && member[text[start - 1]]) start--;
        while (end < s->length && member[text[end]]) end++;
        done = end;
        int prefixed = start && (text[start - 1] == '_' || text[start - 1] == '-');
        int followed = end - start == 32 && end < s->length && text[end] == '-';
        if (end - start >= t->run_least && end - start <= t->run_most && (prefixed || followed)) report(s, t->run_number, start, end);
        at = end & ~(size_t)15;
    }
}

/* How many anchors there are; the first `room` of them are in `out`. With `seen` (SEEN entries) repetitions are dropped,
 * and `dropped` tells how many. `rest` tells where the first and the last of those lie that `out` has no room for; without it
 * the search ends when `out` is full. */
size_t holdfast_find_anchors(const struct tables *tables, const uint8_t *text, size_t length, struct found *out,
                             size_t room, uint64_t *seen, size_t *dropped, size_t *rest) {
    struct search s = {tables, text, length, 0, room, 0, out, seen, 0, rest, 0, 0, {0}, 0, 0, {{0, 0, 0}}};
    if (rest) rest[0] = rest[1] = 0;
    const uint8_t *filter = tables->filter;
    size_t at = 0;
    /* The start of the text is the start of a line. */
    uint32_t opening = '\n';
    for (size_t n = 0; n < 3 && n < length; n++) opening |= (uint32_t)text[n] << (8 * n + 8);
    if (may_be(filter, opening) & 1) check(&s, (size_t)-1, hash(opening));
    for (; at + 12 <= length; at += 8) {
        if (!rest && s.count >= room) break;
        uint32_t mask = 0;
        for (uint32_t n = 0; n < 8; n++) mask |= (uint32_t)(may_be(filter, load(text + at + n)) & 1) << n;
        for (; __builtin_expect(mask, 0); mask &= mask - 1) {
            size_t place = at + (size_t)__builtin_ctz(mask);
            uint32_t bytes = load(text + place);
            if (is_known(tables->second, bytes)) check(&s, place, hash(bytes));
        }
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

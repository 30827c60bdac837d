/* Shortens a JSON text of many megabytes while it passes by, in memory that does not grow with it: of a long string its
 * beginning and its end, of a long list or object its first items, of a deep one its outer levels. What comes out is JSON
 * again. Used by hook.c for stdin and by spellings.c for frames of other clients. */
#pragma once
#include "bytes.h"

enum {
    SHORTEN_FROM = 4 << 20,   /* a body up to here stays as it is */
    SHORTEN_ROOM = 16 << 20,  /* what is longer than this even then is cut off */
    STRING_HALF = 192 << 10,  /* how much is kept of each end of a string: far more than is stored */
    MOST_ITEMS = 200, MOST_DEPTH = 12,
    MARK_ROOM = 96, LONGEST_ESCAPE = 12
};

struct shortener {
    uint8_t *out;
    size_t size, room;
    unsigned long long taken;       /* bytes that came in */
    uint32_t items[MOST_DEPTH + 1]; /* of each open list or object */
    uint32_t depth, inner;          /* open ones that are kept; open ones within what is left out */
    uint8_t in_string, escape, high, plain, leaving_out;
    size_t string_at, ring_at;      /* where the string and the end of it that is kept begin; 0: no such end yet */
    unsigned long long ring_count;
};

static inline void begin_shorten(struct shortener *s, uint8_t *out, size_t room) {
    *s = (struct shortener){0};
    s->out = out, s->room = room;
}

/* A byte of the result. The end of a long string is written round and round over the same room. */
static inline void put_byte(struct shortener *s, uint8_t c) {
    if (s->leaving_out) return;
    if (s->ring_at) {
        size_t at = s->ring_at + (size_t)(s->ring_count % STRING_HALF);
        if (s->ring_count < STRING_HALF) s->size = at + 1;
        s->out[at] = c;
        s->ring_count++;
    } else if (s->size < s->room - 2 * STRING_HALF) {
        s->out[s->size++] = c;
    }
}

static inline void turn_round(uint8_t *first, uint8_t *last) {
    for (; first < last; first++, last--) {
        uint8_t kept = *first;
        *first = *last, *last = kept;
    }
}

/* Where a string may begin anew: not within an escape or a letter of several bytes. 0: nowhere. */
static inline size_t find_restart(const uint8_t *text, size_t length) {
    size_t clear = 0;
    for (size_t at = 0; at < length; at++) {
        if (at >= MARK_ROOM && clear >= LONGEST_ESCAPE && (text[at] & 0xC0) != 0x80) return at;
        clear = text[at] == '\\' ? 0 : clear + 1;
    }
    return 0;
}

static inline size_t write_mark(uint8_t *to, unsigned long long left_out) {
    static const char OPEN[] = "\\n[\xE2\x80\xA6 ", CLOSE[] = " characters left out \xE2\x80\xA6]\\n";
    uint8_t digits[24];
    size_t n = 0, count = 0;
    for (const char *c = OPEN; *c; c++) to[n++] = (uint8_t)*c;
    do digits[count++] = (uint8_t)('0' + left_out % 10);
    while (left_out /= 10);
    while (count) to[n++] = digits[--count];
    for (const char *c = CLOSE; *c; c++) to[n++] = (uint8_t)*c;
    return n;
}

/* The end of a long string is put in order, and what is missing before it is named. */
static inline void close_ring(struct shortener *s) {
    if (s->ring_at && s->ring_count > STRING_HALF) {
        uint8_t *ring = s->out + s->ring_at, *last = ring + STRING_HALF - 1;
        size_t turned = (size_t)(s->ring_count % STRING_HALF);
        if (turned) turn_round(ring, ring + turned - 1), turn_round(ring + turned, last), turn_round(ring, last);
        size_t from = find_restart(ring, STRING_HALF), kept = from ? STRING_HALF - from : 0;
        size_t mark = write_mark(ring, s->ring_count - kept);
        for (size_t n = 0; n < kept; n++) ring[mark + n] = ring[from + n];
        s->size = s->ring_at + mark + kept;
    }
    s->ring_at = 0;
    s->ring_count = 0;
}

/* A unit of a string begins here: from now on its end is kept apart, if its beginning is long enough. */
static inline void may_begin_ring(struct shortener *s, uint8_t next) {
    if (s->ring_at || s->leaving_out || s->high || (next & 0xC0) == 0x80) return;
    if (s->size - s->string_at >= STRING_HALF && s->size < s->room - 2 * STRING_HALF) s->ring_at = s->size;
}

static inline void shorten_in_string(struct shortener *s, uint8_t c) {
    if (s->escape == 1) {
        s->escape = c == 'u' ? 5 : 0;
        s->high = 0;
    } else if (s->escape > 1) {
        if (s->escape == 5) s->high = lowered(c) == 'd';
        if (s->escape == 4) s->high = s->high && (c == '8' || c == '9' || lowered(c) == 'a' || lowered(c) == 'b');
        s->escape = s->escape == 2 ? 0 : s->escape - 1;
    } else if (c == '"') {
        close_ring(s);
        s->in_string = s->high = 0;
    } else {
        may_begin_ring(s, c);
        s->escape = c == '\\';
        s->high = s->high && c == '\\';
    }
    put_byte(s, c);
}

static inline void shorten_open(struct shortener *s, uint8_t c) {
    if (s->leaving_out) {
        s->inner++;
        return;
    }
    put_byte(s, c);
    s->items[++s->depth] = 0;
    s->leaving_out = s->depth >= MOST_DEPTH;
}

static inline void shorten_close(struct shortener *s, uint8_t c) {
    if (s->inner) {
        s->inner--;
        return;
    }
    s->leaving_out = 0;
    if (s->depth) s->depth--;
    put_byte(s, c);
}

static inline void shorten_outside(struct shortener *s, uint8_t c) {
    if (c == '"') {
        put_byte(s, c);
        s->in_string = 1;
        s->string_at = s->size;
    } else if (c == '{' || c == '[') {
        shorten_open(s, c);
    } else if (c == '}' || c == ']') {
        shorten_close(s, c);
    } else if (c == ',' && !s->leaving_out && s->depth && ++s->items[s->depth] >= MOST_ITEMS) {
        s->leaving_out = 1;
    } else {
        put_byte(s, c);
    }
}

/* `bytes` may lie in `out` itself, as long as they are not before what was written. */
static inline void feed_shorten(struct shortener *s, const uint8_t *bytes, size_t count) {
    if (!s->taken && count) {
        size_t first = 0;
        while (first + 1 < count && is_one_of(bytes[first], " \t\r\n")) first++;
        s->plain = bytes[first] != '{' && bytes[first] != '[';
    }
    s->taken += count;
    for (size_t n = 0; n < count; n++) {
        if (s->plain) {
            if (s->size < SHORTEN_FROM) s->out[s->size++] = bytes[n];
        } else if (s->in_string) {
            shorten_in_string(s, bytes[n]);
        } else {
            shorten_outside(s, bytes[n]);
        }
    }
}

/* A text that was cut off while it came ends within a string. */
static inline void finish_shorten(struct shortener *s) {
    if (s->in_string) close_ring(s);
}

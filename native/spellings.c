/* Reads the strings of a JSON document, escapes and percent signs for src/holdfast/analysis/redact/decoded_forms.py: the decoded text, and
 * where each part of it came from. Nothing is allocated, no library is called. */
#include "rules.h"
#include "shorten.h"

static int hex_digit(uint8_t c) {
    if (is_digit(c)) return c - '0';
    c = lowered(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Two hexadecimal digits that stand for a printable character or for 0x7f; 0 if they do not. */
static uint8_t hex_pair(const uint8_t *at, size_t left) {
    if (left < 2 || at[0] < '2' || at[0] > '7') return 0;
    int low = hex_digit(at[1]);
    return low < 0 ? 0 : (uint8_t)((at[0] - '0') * 16 + low);
}

static int begins_with(const uint8_t *at, size_t left, const char *word) {
    size_t n = 0;
    for (; word[n]; n++)
        if (n >= left || at[n] != (uint8_t)word[n]) return 0;
    return 1;
}

struct change { size_t length; uint8_t byte; int same; };

static int is_octal(uint8_t c) { return c >= '0' && c <= '7'; }

/* `\147`, `\063` or `\63`: how many digits stand for a printable character or for 0x7f, and which; 0 if none do. */
static size_t read_octal(const uint8_t *at, size_t left, uint8_t *byte) {
    size_t n = left > 0 && at[0] >= '4' && at[0] <= '7' ? 2 : 3;
    if (left < n || !is_octal(at[1]) || (n == 2 && left > 2 && is_octal(at[2]))) return 0;
    if (n == 3 && (!is_octal(at[2]) || !(at[0] == '1' || (at[0] == '0' && at[1] >= '4')))) return 0;
    *byte = 0;
    for (size_t m = 0; m < n; m++) *byte = (uint8_t)(*byte * 8 + (at[m] - '0'));
    return n;
}

/* `\u0070`, `\x70`, `\U00000070`, `\u{70}`, `\160`, `\/`, `\_`, after one to eight backslashes. */
static struct change read_backslash(const uint8_t *at, size_t left) {
    size_t n = 0;
    while (n < left && n < 8 && at[n] == '\\') n++;
    const uint8_t *rest = at + n;
    size_t after = left - n;
    if (after && (*rest == '/' || *rest == '_')) return (struct change){n + 1, *rest, 0};
    size_t head = begins_with(rest, after, "u{") || begins_with(rest, after, "x{") ? 2
                : begins_with(rest, after, "u00") ? 3 : begins_with(rest, after, "U000000") ? 7
                : begins_with(rest, after, "x") ? 1 : 0;
    int braced = head == 2;
    while (braced && head < 6 && head < after && rest[head] == '0') head++;
    uint8_t byte = head ? hex_pair(rest + head, after - head) : 0;
    if (byte && (!braced || (head + 2 < after && rest[head + 2] == '}')))
        return (struct change){n + head + 2 + (size_t)braced, byte, 0};
    size_t digits = head ? 0 : read_octal(rest, after, &byte);
    return digits ? (struct change){n + digits, byte, 0} : (struct change){0, 0, 0};
}

/* `&#x70;`, `&#112;`, `&quot;`. A number that is no printable character stays as it is. */
static struct change read_entity(const uint8_t *at, size_t left) {
    for (size_t n = 0; n < sizeof ENTITIES / sizeof *ENTITIES; n++)
        if (begins_with(at, left, ENTITIES[n].word)) {
            size_t length = 0;
            while (ENTITIES[n].word[length]) length++;
            return (struct change){length, ENTITIES[n].byte, 0};
        }
    if (!begins_with(at, left, "&#")) return (struct change){0, 0, 0};
    if (left > 5 && at[2] == 'x') {
        uint8_t byte = hex_pair(at + 3, left - 3);
        return byte && at[5] == ';' ? (struct change){6, byte, 0} : (struct change){0, 0, 0};
    }
    size_t n = 2;
    unsigned value = 0;
    for (; n < left && n < 5 && is_digit(at[n]); n++) value = value * 10 + (unsigned)(at[n] - '0');
    if (n < 4 || n >= left || at[n] != ';') return (struct change){0, 0, 0};
    return (struct change){n + 1, (uint8_t)value, value < 32 || value > 126};
}

/* The text with its escapes (or, with `percent`, its percent signs) read. `places` gets pairs (in the result, in the
 * text): the start of the text, then start and end of each change; `count` tells how many pairs there are. */
size_t holdfast_decode_view(const uint8_t *text, size_t length, int percent, uint8_t *out, uint32_t *places, size_t *count) {
    size_t size = 0, n = 1, at = 0;
    places[0] = places[1] = 0;
    while (at < length) {
        struct change c = {0, 0, 0};
        uint8_t byte = text[at];
        if (percent && byte == '%') {
            uint8_t code = hex_pair(text + at + 1, length - at - 1);
            c = code ? (struct change){3, code, 0} : c;
        } else if (!percent && byte == '\\') {
            size_t run = at;
            while (run < length && text[run] == '\\') run++;
            for (; run - at > 8; at++) out[size++] = '\\';
            c = read_backslash(text + at, length - at);
            if (!c.length)
                for (; at + 1 < run; at++) out[size++] = '\\';
        } else if (!percent && byte == '&') {
            c = read_entity(text + at, length - at);
        }
        if (!c.length) {
            out[size++] = text[at++];
            continue;
        }
        places[2 * n] = (uint32_t)size;
        places[2 * n + 1] = (uint32_t)at;
        for (size_t m = 0; c.same && m < c.length; m++) out[size++] = text[at + m];
        if (!c.same) out[size++] = c.byte;
        at += c.length;
        places[2 * n + 2] = (uint32_t)size;
        places[2 * n + 3] = (uint32_t)at;
        n += 2;
    }
    *count = n;
    return size;
}

/* The sign of a terminal's settings, as a byte or as programs write it: `\\u001b`, `\\x1b`, `\\033`, `\\e`. */
static size_t read_escape_sign(const uint8_t *at, size_t left) {
    if (*at == 0x1b) return 1;
    size_t n = 0;
    while (n < left && n < 8 && at[n] == '\\') n++;
    for (size_t m = 0; n && m < sizeof ESCAPE_SIGNS / sizeof *ESCAPE_SIGNS; m++)
        if (begins_with(at + n, left - n, ESCAPE_SIGNS[m])) {
            size_t length = 0;
            while (ESCAPE_SIGNS[m][length]) length++;
            return n + length;
        }
    return 0;
}

/* A colour (`[1;31m`), the clearing of a line (`[K`) or the ends of a link, behind that sign. */
static size_t read_setting(const uint8_t *at, size_t left) {
    size_t n = read_escape_sign(at, left), first;
    if (!n || n >= left) return 0;
    if (at[n] == '[') {
        for (first = ++n; n < left && n - first < 24 && (is_digit(at[n]) || at[n] == ';' || at[n] == ':'); n++) continue;
        return n < left && (at[n] == 'm' || at[n] == 'K') ? n + 1 : 0;
    }
    if (*at != 0x1b || !begins_with(at + n, left - n, "]8;")) return 0;
    for (first = n += 3; n < left && n - first < 400; n++) {
        if (at[n] == 0x07) return n + 1;
        if (at[n] == 0x1b) return n + 1 < left && at[n + 1] == '\\' ? n + 2 : 0;
        if (is_one_of(at[n], "\r\n\x1e\x1f")) return 0;
    }
    return 0;
}

static int is_shown_word(uint8_t c, const char *signs) { return is_letter(c) || is_digit(c) || is_one_of(c, signs); }

/* The text as a terminal shows it, and `places` as `holdfast_decode_view` writes them. `within` tells whether a word is in
 * one piece then that was none before. */
size_t holdfast_strip_colours(const uint8_t *text, size_t length, uint8_t *out, uint32_t *places, size_t *count, size_t *within) {
    size_t size = 0, n = 1, at = 0;
    places[0] = places[1] = 0;
    *within = 0;
    while (at < length) {
        size_t end = at, one;
        if (text[at] == 0x1b || text[at] == '\\')
            while (end < length && (text[end] == 0x1b || text[end] == '\\') && (one = read_setting(text + end, length - end))) end += one;
        if (end == at) {
            size_t run = at++;
            if (text[run] == '\\')
                while (at < length && text[at] == '\\') at++;
            while (run < at) out[size++] = text[run++];
            continue;
        }
        *within |= at && end < length && is_shown_word(text[at - 1], "_+/=.-") &&
                   is_shown_word(text[end], "_+/.");
        places[2 * n] = places[2 * n + 2] = (uint32_t)size;
        places[2 * n + 1] = (uint32_t)at;
        places[2 * n + 3] = (uint32_t)end;
        n += 2;
        at = end;
    }
    *count = n;
    return size;
}

static long read_unit(const uint8_t *at, size_t left) {
    long value = 0;
    if (left < 4) return -1;
    for (size_t n = 0; n < 4; n++) {
        int digit = hex_digit(at[n]);
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static size_t write_utf8(uint8_t *out, unsigned long code) {
    if (code < 0x80) return out[0] = (uint8_t)code, 1;
    if (code < 0x800) return out[0] = (uint8_t)(0xC0 | code >> 6), out[1] = (uint8_t)(0x80 | (code & 63)), 2;
    size_t n = 0;
    if (code >= 0x10000) out[n++] = (uint8_t)(0xF0 | code >> 18), out[n++] = (uint8_t)(0x80 | (code >> 12 & 63));
    else out[n++] = (uint8_t)(0xE0 | code >> 12);
    out[n++] = (uint8_t)(0x80 | (code >> 6 & 63));
    out[n++] = (uint8_t)(0x80 | (code & 63));
    return n;
}

/* One escape of a JSON string at a backslash: its length, and in `size` how many bytes it wrote; 0 if it is none. */
static size_t read_json_escape(const uint8_t *at, size_t left, uint8_t *out, size_t *size) {
    static const char FROM[] = "n\"\\t/rbf", TO[] = "\n\"\\\t/\r\b\f";
    if (left < 2) return 0;
    for (size_t n = 0; n < 8; n++)
        if (at[1] == (uint8_t)FROM[n]) return out[0] = (uint8_t)TO[n], *size = 1, 2;
    long high = at[1] == 'u' ? read_unit(at + 2, left - 2) : -1;
    if (high < 0 || (high >= 0xDC00 && high < 0xE000)) return 0;
    if (high < 0xD800 || high > 0xDFFF) return *size = write_utf8(out, (unsigned long)high), 6;
    long low = left >= 12 && at[6] == '\\' && at[7] == 'u' ? read_unit(at + 8, left - 8) : -1;
    if (low < 0xDC00 || low > 0xDFFF) return 0;
    *size = write_utf8(out, 0x10000ul + ((unsigned long)(high - 0xD800) << 10) + (unsigned long)(low - 0xDC00));
    return 12;
}

/* How many bytes stand before the next quote or backslash; they are copied, and at most seven more. */
static size_t copy_plain(const uint8_t *from, size_t left, uint8_t *out) {
    const uint64_t ONES = 0x0101010101010101u, HIGH = 0x8080808080808080u;
    size_t n = 0;
    for (; n + 8 <= left; n += 8) {
        uint64_t bytes;
        __builtin_memcpy(&bytes, from + n, 8);
        __builtin_memcpy(out + n, &bytes, 8);
        uint64_t quote = bytes ^ (ONES * '"'), slash = bytes ^ (ONES * '\\');
        uint64_t found = (((quote - ONES) & ~quote) | ((slash - ONES) & ~slash)) & HIGH;
        if (found) return n + (size_t)(__builtin_ctzll(found) >> 3);
    }
    for (; n < left && from[n] != '"' && from[n] != '\\'; n++) out[n] = from[n];
    return n;
}

static size_t find_string_end(const uint8_t *body, size_t length, size_t at) {
    while (at < length && body[at] != '"') at += body[at] == '\\' ? 2 : 1;
    return at < length ? at : 0;
}

/* A JSON string from its opening quote: where it ends (after the closing quote; 0: nowhere). What it holds is written
 * decoded; as it stands where an escape is none. */
static size_t read_json_string(const uint8_t *body, size_t length, size_t start, uint8_t *out, size_t *size) {
    size_t at = start + 1, n = 0;
    for (;;) {
        size_t plain = copy_plain(body + at, length - at, out + n);
        at += plain;
        n += plain;
        if (at >= length) return 0;
        if (body[at] == '"') break;
        size_t written = 0, read = read_json_escape(body + at, length - at, out + n, &written);
        if (!read) {
            size_t end = find_string_end(body, length, at);
            if (!end) return 0;
            for (n = 0, at = start + 1; at < end; at++) out[n++] = body[at];
            break;
        }
        at += read;
        n += written;
    }
    *size = n;
    return at + 1;
}

/* Every key, string and number of a JSON document in order, decoded; 0x1e ends a key, 0x1f the others. `places` gets for
 * each of them where it begins and ends in the document and where it begins in `out`; `count` tells how many there are. */
size_t holdfast_flatten_json(const uint8_t *body, size_t length, uint8_t *out, uint32_t *places, size_t *count, size_t *other) {
    size_t size = 0, n = 0, at = 0;
    *other = 0;
    while (at < length) {
        size_t end = at, written = 0;
        if (body[at] == '"') {
            end = read_json_string(body, length, at, out + size, &written);
            if (!end) {
                *other += length - at;
                break;
            }
        } else if (is_digit(body[at]) || (body[at] == '-' && at + 1 < length && is_digit(body[at + 1]))) {
            do out[size + written++] = body[end++];
            while (end < length && (is_digit(body[end]) || is_one_of(body[end], ".eE+-")));
        } else {
            *other += !is_one_of(body[at++], " \t\r\n{}[],:truefalsn");
            continue;
        }
        places[3 * n] = (uint32_t)at;
        places[3 * n + 1] = (uint32_t)end;
        places[3 * n + 2] = (uint32_t)size;
        n++;
        size_t next = end;
        while (body[at] == '"' && next < length && is_one_of(body[next], " \t\r\n\f\v")) next++;
        size += written;
        out[size++] = body[at] == '"' && next < length && body[next] == ':' ? 0x1e : 0x1f;
        at = end;
    }
    *count = n;
    return size;
}

typedef uint8_t block __attribute__((vector_size(16)));

static int is_word_at(const uint8_t *at, const uint8_t *word, size_t length) {
    for (size_t n = 0; n < length; n++)
        if (lowered(at[n]) != word[n]) return 0;
    return 1;
}

/* Where, from `at` on, this word, given in lower case, stands in the text in any mixture of capitals; `size` if it does not.
 * Sixteen places at once are asked for two of its letters; only where both stand is it compared. */
size_t holdfast_find_word(const uint8_t *text, size_t size, size_t at, const uint8_t *word, size_t length) {
    size_t other = length / 2;
    if (!length) return size;
    for (; at + length + 16 <= size; at += 16) {
        block first, second;
        uint64_t halves[2];
        __builtin_memcpy(&first, text + at, 16);
        __builtin_memcpy(&second, text + at + other, 16);
        block both = (block)((first | 32) == word[0]) & (block)((second | 32) == word[other]);
        __builtin_memcpy(halves, &both, 16);
        if (!(halves[0] | halves[1])) continue;
        for (size_t n = at; n < at + 16; n++)
            if (is_word_at(text + n, word, length)) return n;
    }
    for (; at + length <= size; at++)
        if (is_word_at(text + at, word, length)) return at;
    return size;
}

/* Frames of clients that do not shorten what they send: src/holdfast/daemon/ingest/frames.py. */
size_t holdfast_shortener_size(void) { return sizeof(struct shortener); }

void holdfast_begin_shorten(struct shortener *s, uint8_t *out) { begin_shorten(s, out, SHORTEN_ROOM); }

void holdfast_feed_shorten(struct shortener *s, const uint8_t *bytes, size_t count) { feed_shorten(s, bytes, count); }

/* How long the result is. */
size_t holdfast_finish_shorten(struct shortener *s) {
    finish_shorten(s);
    return s->size;
}

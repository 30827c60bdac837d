/* What is asked of an anchor beyond its own text, so that few reach Python: included by anchors.c only.
 *
 * Nothing is refused here that the rules would take: tests/analysis/redact/test_native.py compares both. */
#pragma once
#include "search.h"
#include "values.h"

/* In a text full of names the closer looks end: Python has a bound of its own for how many it judges. */
static int is_walked_out(const struct search *s) { return s->count >= s->room || s->walked > 16384 + s->length / 4; }

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

/* The same for a long list: where the words of each length begin, then the words. */
static int is_indexed(const uint8_t *words, const uint8_t *bytes, size_t length) {
    uint16_t from, to;
    if (length >= 32) return 0;
    __builtin_memcpy(&from, words + 2 * length, 2);
    __builtin_memcpy(&to, words + 2 * length + 2, 2);
    for (; length && from < to; from = (uint16_t)(from + length)) {
        size_t n = 0;
        while (n < length && lowered(bytes[n]) == words[from + n]) n++;
        if (n == length) return 1;
    }
    return 0;
}

/* `_token2` after a stem: where the first further word or number ends; 0 if it is none that names have. */
static size_t skip_tail(const struct tables *t, const uint8_t *text, size_t length, size_t end) {
    size_t at = end + (size_t)is_one_of(text[end], "_.-"), first = at;
    while (at < length && is_letter(text[at])) at++;
    if (at - first > 16 || (at > first && !is_indexed(t->tail_words, text + first, at - first))) return 0;
    while (at < length && is_digit(text[at])) at++;
    return at > first ? at : 0;
}

static int follows_space(const struct tables *t, const uint8_t *text, size_t length, size_t at) {
    while (at < length && (text[at] == ' ' || text[at] == '\t')) at++;
    if (at >= length || !(is_letter(text[at]) || is_digit(text[at]))) return 1;
    size_t first = at;
    for (; at < length && at < first + 26 && !is_one_of(text[at], " \t\n\r\v\f"); at++)
        if (is_digit(text[at]) || is_one_of(text[at], "!@#$%^&*") || (at > first && is_upper(text[at]))) return 1;
    struct word word = {0};
    for (at = first; at < length && is_letter(text[at]); at++)
        if (may_be_unspeakable(&word, text[at])) return 1;
    if (at == first + 1 && at < length && text[at] >= 128) return 1; /* `für` */
    return at - first <= 16 && is_indexed(t->said_words, text + first, at - first);
}

static int may_follow(const struct tables *t, const uint8_t *text, size_t length, size_t end) {
    uint8_t after = text[end], next = end + 1 < length ? text[end + 1] : 0;
    if (is_one_of(after, NO_VALUE) || (after == '(' && !is_one_of(next, BEFORE_QUOTED))) return 0;
    return (after != ' ' && after != '\t') || follows_space(t, text, length, end);
}

/* `_banco` in `senha_banco=`: one or two further words, then a sign. */
static int has_other_tail(const uint8_t *text, size_t length, size_t at) {
    for (int words = 0; words < 2 && at < length && (text[at] == '_' || text[at] == '-'); words++)
        for (at++; at < length && (is_letter(text[at]) || text[at] >= 128);) at++;
    if (at + 1 < length && text[at] == '\\' && text[at + 1] == 'u') return 1; /* letters of another script in undecoded JSON */
    while (at < length && is_one_of(text[at], "0123456789\"'`\\ \t")) at += 1 + (text[at] == '\\' && at + 1 < length && text[at + 1] == 't');
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

/* A run of eight bytes or more with a digit, or with wild case, a word that cannot be spoken, or what an escape may hide.
 * Where there was none for an earlier anchor, `clear` tells it, and the same bytes are not read again: a text full of names is read once. */
static int has_random(struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t length = s->length, stop = end + 300 < length ? end + 300 : length, run = 0, flips = 0, at = end;
    int digit = 0;
    struct word word = {0};
    if (end + 4 < length && text[end] == '(' && (is_one_of(text[end + 1], "\"'`\\ ") || is_one_of(text[end + 2], "\"'`\\"))) return 1;
    if (end < s->random_from && s->random_to < stop) return 1;
    if (end >= s->clear_from && end < s->clear_to) at = s->clear_to, run = s->clear_run, flips = s->clear_flips, word = s->clear_word;
    for (; at < stop; at++) {
        uint8_t c = text[at];
        if (c == ' ' || c == 0x1f) {
            run = flips = 0;
            digit = 0;
            word = (struct word){0};
            continue;
        }
        run++;
        digit |= is_digit(c) || (c == '\\' && at + 1 < length && is_one_of(text[at + 1], "u\\/bf"));
        flips += is_upper(c) && at > end && (is_lower(text[at - 1]) || (at + 1 < length && is_upper(text[at - 1]) && is_lower(text[at + 1])));
        if ((run >= 8 && (digit || flips >= 2)) || may_be_unspeakable(&word, c)) {
            s->random_from = at + 1 - run;
            s->random_to = at;
            return 1;
        }
    }
    if (end < s->clear_from || end >= s->clear_to) s->clear_from = end;
    s->clear_to = at;
    s->clear_run = run;
    s->clear_flips = flips;
    s->clear_word = word;
    return stop < length && run > 0;
}

/* A stretch between two words: spaces, quotes, line breaks and their escapes. Where another escape begins, its place. */
static size_t skip_gap(const struct search *s, size_t at, int *escaped) {
    for (const uint8_t *text = s->text; at < s->length; at++) {
        size_t sign = at;
        while (sign < s->length && text[sign] == '\\') sign++;
        if (sign > at && (sign == s->length || !is_one_of(text[sign], "nrt\"'`"))) *escaped = 1;
        if (*escaped || !is_one_of(text[sign < s->length ? sign : at], sign > at ? "nrt\"'`" : " \t\r\n\"'`\x1e\x1f")) return at;
        at = sign;
    }
    return at;
}

static size_t end_of_word(struct search *s, size_t at, size_t stop) {
    size_t first = at;
    while (at < stop && !is_one_of(s->text[at], " \t\r\n\"'`\x1e\x1f\\")) at++;
    s->walked += 1 + at - first;
    return at;
}

static int has_within(const struct search *s, size_t at, size_t reach, const char *word) {
    size_t stop = at + reach < s->length ? at + reach : s->length, size = 0;
    while (word[size]) size++;
    for (; at + size <= stop; at++) {
        size_t n = 0;
        while (n < size && lowered(s->text[at + n]) == (uint8_t)word[n]) n++;
        if (n == size) return 1;
    }
    return 0;
}

/* Whether one of these stands here; each word is ended by a zero, the list by another. */
static int begins_with_any(const struct search *s, size_t at, const char *words) {
    for (; *words; words++) {
        size_t n = 0;
        while (words[n] && at + n < s->length && lowered(s->text[at + n]) == (uint8_t)words[n]) n++;
        if (!words[n]) return 1;
        for (words += n; *words;) words++;
    }
    return 0;
}

/* `page.fill("#token", "…")` and the payloads of tools that type: the value stands further away. */
static int is_typed(struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t stop = end + 400 < s->length ? end + 400 : s->length, near = end + 60, quote = 0;
    int typed = 0;
    s->walked += 60;
    for (size_t at = end; at + 5 < stop; at++) {
        uint8_t c = text[at];
        if (!quote && (is_one_of(c, "\"'\x1e\x1f\n\\") || at == end + 41)) {
            for (quote = at; quote < stop && is_one_of(text[quote], "\\\"'` ");) quote++;
            typed = c == 0x1f || (quote < stop && text[quote] == ',');
            s->walked += typed ? 340 : 0;
        }
        if (at < near && c == ')' && text[at + 1] == '.' && begins_with_any(s, at + 2, "fill(\0type(\0press\0send\0setvalue\0clear_\0")) return 1;
        if (quote && !typed && at >= near) return 0;
        if (typed && (c | 32) == 't' && begins_with_any(s, at, "text\0") && is_one_of(text[at + 4], "\x1e\"'`\\")) return 1;
        if (typed && (c | 32) == 'v' && begins_with_any(s, at, "value\0") && is_one_of(text[at + 5], "\x1e\"'`\\")) return 1;
    }
    return 0;
}

/* Names with commas between them to the end of the line: the values stand below. */
static int is_heading(struct search *s, size_t at) {
    const uint8_t *text = s->text;
    if (at >= s->length || !is_one_of(text[at], ",\"'\\")) return 0;
    uint8_t last = 0;
    for (size_t stop = at + 1700; at < s->length && at < stop; at++) {
        if (text[at] == '\n' || text[at] == '\r' || (text[at] == '\\' && at + 1 < s->length && is_one_of(text[at + 1], "nr"))) return last != ',';
        if (!is_alnum(text[at]) && !is_one_of(text[at], "_ .,\"'-\\")) return 0;
        if (!is_one_of(text[at], " \"'\\")) last = text[at];
        s->walked++;
    }
    return 0;
}

static int has_value_word(const struct search *s, size_t at) {
    for (size_t stop = at + 170; at < stop && at + 4 < s->length; at++)
        if (is_one_of(s->text[at] | 32, "vdcps") && begins_with_any(s, at, "val\0default\0content\0plaintext\0string\0")) return 1;
    return 0;
}

/* A value in several pieces: the next begins with a quote of its own, or on a new line. */
static int is_joined(const struct search *s, size_t at) {
    const uint8_t *text = s->text;
    size_t sign = at;
    while (sign < s->length && text[sign] == '\\') sign++;
    if (sign + 1 >= s->length) return 0;
    if (text[sign] == '\n' || text[sign] == '\r' || (sign > at && is_one_of(text[sign], "nr"))) return is_alnum(text[sign + 1]) || text[sign + 1] == '\n';
    for (sign += is_one_of(text[sign], "\"'`") != 0; sign < s->length && text[sign] == ' ';) sign++;
    return sign < s->length && is_one_of(text[sign], "\"'`+.&\n\r\\");
}

/* How many further words may stand between this one and a value; `linked` tells whether the next one may be it. */
static int words_after(const struct search *s, const struct anchor *a, size_t first, size_t end, int *linked) {
    const uint8_t *text = s->text;
    size_t letters = first;
    int few = 0;
    *linked = is_one_of(text[end - 1], ":=(>|,-") || end - first < 3;
    for (size_t at = first; at < end; at++) {
        if (text[at] >= 128) return *linked = 1, 6;
        if (text[at] == '{') return *linked = 1, has_value_word(s, at) ? 40 : 3;
        few |= text[at] == '>' || text[at] == '<';
    }
    while (letters < end && is_letter(text[letters])) letters++;
    if (is_listed(LEADING, text + first, letters - first, 0)) return *linked = 1, 6;
    if ((a->guard & GUARD_SPOKEN) && is_indexed(s->tables->said_words, text + first, letters - first)) {
        *linked |= !is_listed(BETWEEN, text + first, letters - first, 0);
        return 6;
    }
    /* `--body`, `!tag`, `name=`, `Some(`, `[default]:` */
    few |= is_one_of(text[first], "-![") || is_one_of(text[end - 1], "=(");
    int joined = end - first >= 8 && is_joined(s, end);
    *linked |= few || joined;
    return few ? 3 : joined;
}

/* `name: type =`: where the value begins. */
static size_t skip_type(const struct search *s, size_t at) {
    if (at >= s->length || s->text[at] != ':') return at;
    for (size_t n = at + 1; n < s->length && n < at + 48; n++) {
        if (s->text[n] == '=') return may_be_random(s->text + at + 1, n - at - 1, 8, 1) ? at : n + 1;
        if (!is_alnum(s->text[n]) && !is_one_of(s->text[n], ":_.<>[]|&' ")) break;
    }
    return at;
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
    return first < last && is_indexed(t->plain_words, text + first, last - first);
}

static int is_part(const struct search *s, const struct anchor *a, size_t start, size_t end) {
    const struct tables *t = s->tables;
    const uint8_t *text = s->text;
    if (!start) return !(a->guard & GUARD_KEY);
    uint8_t first = text[start], last = text[start - 1], before = start > 1 ? text[start - 2] : 0;
    uint8_t after = end < s->length ? text[end] : 0;
    if ((before == '\\' && is_one_of(last, "nrt")) || (last == 'm' && (is_digit(before) || before == '[' || before == ';'))) return 1;
    /* `SMBPass`: an abbreviation in capitals, then a word of its own. */
    int glued = is_upper(first) ? is_upper(last) && !(start + 1 < end && is_lower(text[start + 1])) : is_letter(last);
    size_t from = start > 24 ? start - 24 : 0;
    if (glued && (a->guard & (GUARD_KEY | GUARD_TOKEN)))
        return is_listed(a->guard & GUARD_KEY ? t->glued_key : t->glued_token, text + from, start - from, 1);
    if (glued && after == ' ') after = end + 1 < s->length ? text[end + 1] : 0;
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

static size_t skip_name(struct search *s, size_t at) {
    const uint8_t *text = s->text;
    size_t end = at;
    while (at < s->length && at < end + 64 && (is_alnum(text[at]) || text[at] == '_' || (is_one_of(text[at], ".-") && at + 1 < s->length && is_alnum(text[at + 1])))) at++;
    return at;
}

/* Whether a random value may stand where a value of this name would: right after it, or behind words that lead there. */
static int may_have_random(struct search *s, const struct anchor *a, size_t end) {
    const uint8_t *text = s->text;
    size_t at = is_alnum(text[end - 1]) ? skip_name(s, end) : end, stop = end + 400 < s->length ? end + 400 : s->length;
    int words = 1, linked = 1, escaped = 0;
    if (text[end - 1] >= 128 || at > end + 60 || is_heading(s, end)) return 1;
    if ((a->guard & GUARD_SPOKEN) && at + 2 < stop && text[at + (text[at] != '(')] == '(' && has_within(s, at, 45, ")")) words = 12;
    if ((a->guard & GUARD_SPOKEN) && at + 2 < stop && text[at] == ',' && text[at + 1] == ' ' && has_within(s, at, 45, ":")) words = 12;
    for (at = skip_type(s, at); words > 0; words--) {
        size_t first = skip_gap(s, at, &escaped);
        at = end_of_word(s, first, first + 400 < s->length ? first + 400 : s->length);
        s->walked += at - first + 8;
        int inside = 0, signs = 1;
        for (size_t n = first; n < at; n++) {
            inside |= is_one_of(text[n], "=:(>\xef");
            signs &= !is_alnum(text[n]);
            escaped |= text[n] == 0x1b; /* a colour of the terminal */
        }
        if (escaped || at >= first + 400 || ((linked || inside) && may_be_random(text + first, at - first, a->guard & GUARD_RANDOM ? 8 : 5, a->guard & GUARD_RANDOM))) return 1;
        if (first >= stop || at == first) break;
        int more = words_after(s, a, first, at, &linked);
        if (words <= more) words = more + 1;
        words += signs;
    }
    return is_typed(s, end);
}

/* `pass # nothing to do`, `password=None,`, `to pass on cmd`: a password is hardly asked for anything, but it is none of these. */
static int is_no_password(struct search *s, const struct anchor *a, size_t end) {
    const uint8_t *text = s->text;
    size_t at = skip_name(s, end), first = skip_spaces(s, at);
    if (text[end - 1] >= 128 || at > end + 60 || first + 2 >= s->length || is_heading(s, end) || is_typed(s, end)) return 0;
    if (first > at && text[first] == '#' && text[first + 1] == ' ') return 1;
    if (text[at] == ',') {
        size_t next = skip_spaces(s, at + 1);
        return is_blank(s, next) || (next > at + 1 && is_alnum(text[next]) && !has_within(s, at, 48, ":"));
    }
    if (text[first] == '=' || text[first] == ':') {
        size_t value = skip_spaces(s, first + 1), last = value;
        while (last < s->length && last < value + 64 && (is_letter(text[last]) || text[last] == '_')) last++;
        if (!is_indexed(s->tables->no_words, text + value, last - value) && !has_within(s, value, last - value, "passw")) return 0;
        while (last < s->length && last < value + 72 && is_one_of(text[last], ",;)}]:")) last++;
        size_t next = skip_spaces(s, last);
        return is_blank(s, last) && !(next < s->length && is_one_of(text[next], "=|["));
    }
    size_t last = first;
    while (last < s->length && last < first + 20 && is_letter(text[last])) last++;
    return first > at && last > first && is_blank(s, last) && !is_listed(LEADING, text + first, last - first, 0) &&
           is_indexed(s->tables->said_words, text + first, last - first) && !may_have_random(s, a, end);
}

/* What lies between is read once, however many names stand there. */
static int has_equals(struct search *s, size_t at, size_t stop) {
    if (stop > s->length) stop = s->length;
    if (at >= s->even_from && at < s->even_to) at = s->even_to;
    else s->even_from = at;
    while (at < stop && s->text[at] != '=') at++;
    s->even_to = at;
    return at < stop;
}

/* Where an assigned value begins that is a name of a program; 0 if none does. `name: type = value` is not looked at. */
static size_t find_assigned_name(struct search *s, size_t end) {
    const uint8_t *text = s->text;
    size_t at = skip_tail(s->tables, text, s->length, end), quote = at = at ? at : end;
    while (quote < s->length && quote < at + 7 && text[quote] == '\\') quote++;
    at = skip_spaces(s, quote < s->length && is_one_of(text[quote], "\"'`") ? quote + 1 : at);
    if (at + 1 >= s->length || (text[at] != '=' && text[at] != ':') || is_one_of(text[at + 1], "=>~:-")) return 0;
    if (text[at] == ':' && has_equals(s, at + 1, at + 60)) return 0;
    at = skip_spaces(s, at + 1);
    return at < s->length && (is_letter(text[at]) || text[at] == '_' || text[at] == '[') ? at : 0;
}

/* `Some("…")`, `Token(value="…")`: a string follows, perhaps behind a name and on the next line. */
static int is_wrapped(const struct search *s, size_t at) {
    const uint8_t *text = s->text;
    size_t stop = at + 40 < s->length ? at + 40 : s->length;
    while (at < stop && is_one_of(text[at], " \t\r\n")) at++;
    while (at < stop && (is_lower(text[at]) || text[at] == '_')) at++;
    while (at < stop && is_one_of(text[at], " =:")) at++;
    return at < stop && is_one_of(text[at], "\"'\\");
}

/* `token = next_token()`, `password = given`: code, where the rules ask for a value. */
static int is_assigned_code(struct search *s, const struct anchor *a, size_t start, size_t end) {
    const uint8_t *text = s->text;
    size_t first = find_assigned_name(s, end), at = first, flips = 0;
    int digit = 0, dotted = 0, lower = 0;
    struct word word = {0};
    if (!first || is_walked_out(s)) return 0;
    if (text[first] == '[') {
        for (at = first + 1; at < s->length && at < first + 48 && is_one_of(text[at], " \t\r\n\\");) at++;
        return (a->guard & GUARD_RANDOM) && !(at < s->length && is_one_of(text[at], "\"'`n"));
    }
    for (; at < s->length && at < first + 256 && (is_letter(text[at]) || is_digit(text[at]) || is_one_of(text[at], "_.$:")); at++) {
        digit |= is_digit(text[at]) || may_be_unspeakable(&word, text[at]);
        dotted |= is_one_of(text[at], ".$:");
        flips += at > first && is_upper(text[at]) && !(is_upper(text[at - 1]) && at + 1 < s->length && is_upper(text[at + 1]));
    }
    s->walked += at - first;
    if (at < s->length && (text[at] == '(' || text[at] == '[')) return !(text[at] == '(' && is_wrapped(s, at + 1));
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

/* `Cookie: sid=…`: a name and an equals sign come next, perhaps in quotes; what an escape hides is not looked at. */
static int has_cookie_pair(const struct search *s, size_t at) {
    const uint8_t *text = s->text;
    size_t stop = at + 32 < s->length ? at + 32 : s->length, first;
    if (at < stop && (text[at] | 32) == 's') at++;
    while (at < stop && is_one_of(text[at], " \t\r\n\f\v\"'`:=,\\\x1e"))
        if (text[at++] == '\\' && at < stop && is_letter(text[at]) && !is_one_of(text[at++], "nrt")) return 1;
    for (first = at; at < s->length && at <= first + 100 && (is_letter(text[at]) || is_digit(text[at]) || is_one_of(text[at], "!#$%&*+.^_|~-"));) at++;
    return at > first && at < s->length && text[at] == '=';
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

/* Whether the word that follows, which may stand in quotes, has a digit or may hide one in an escape. */
static int has_digit_next(const struct search *s, size_t at) {
    size_t stop = at + 200 < s->length ? at + 200 : s->length;
    while (at < stop && is_one_of(s->text[at], " \t\"'`\\")) at++;
    for (; at < stop && !is_one_of(s->text[at], " \t\r\n\x1e\x1f"); at++)
        if (is_digit(s->text[at]) || s->text[at] == '\\') return 1;
    return at == stop && stop < s->length;
}

/* Whether as many bytes of its class follow as the anchor asks for. */
static int is_followed(struct search *s, const struct anchor *a, size_t end) {
    const uint8_t *allowed = s->tables->classes + 256 * (size_t)a->class;
    struct run *run = &s->runs[a->class % RUNS];
    if (run->class != a->class || end < run->from || end > run->to) *run = (struct run){a->class, end, end};
    while (run->to < end + a->follow && allowed[s->text[run->to]]) run->to++;
    return run->to >= end + a->follow && (!a->then || (end + a->follow < s->length && s->text[end + a->follow] == a->then));
}

/* Of which sort a mark is: one of each in so many bytes is enough. */
static inline size_t sort_of(const struct anchor *a) { return a->guard >> 8 & (SORTS - 1); }

/* Whether a rule could find something here. Never false where it would: the rules themselves decide. */
static int is_plausible(struct search *s, const struct anchor *a, size_t start, size_t end) {
    const uint8_t *text = s->text;
    size_t width = a->guard >> 8 & 7;
    if (a->guard & GUARD_FAR) {
        s->next[sort_of(a)] = start + FAR;
        return 1;
    }
    if (a->guard & GUARD_LOGIN) return has_login(s, end);
    if (a->guard & GUARD_COOKIE) return width ? has_cookie_pair(s, end) : has_cookie_name(s, end);
    if ((a->guard & GUARD_PAREN) && width) return has_digit_next(s, end);
    if (a->guard & GUARD_PAREN) {
        for (size_t n = 1; n <= 5 && n <= start; n++)
            if (text[start - n] == ')') return 1;
        return 0;
    }
    if (width) start = end - width;
    if ((a->guard & (GUARD_WORD | GUARD_KEY | GUARD_TOKEN)) && !is_part(s, a, start, end)) return 0;
    if (may_have_value(s->tables, text, s->length, end) && !((a->guard & GUARD_RANDOM) && !has_random(s, end)) &&
        !((a->guard & GUARD_CODE) && is_assigned_code(s, a, start, end)) &&
        (is_walked_out(s) || (a->guard & GUARD_RANDOM ? may_have_random(s, a, end) : !((a->guard & GUARD_CODE) && is_no_password(s, a, end)))))
        return 1;
    if (!(a->guard & GUARD_SPOKEN)) return 0;
    for (size_t at = start > 48 ? start - 48 : 0; at + 4 <= start; at++)
        if (text[at] == ' ' && text[at + 3] == ' ' && text[at + 1] == 'a' && text[at + 2] == 's') return 1;
    return 0;
}

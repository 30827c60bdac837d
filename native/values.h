/* What a value looks like that the rules take for random: the cheap half of `looks_random` in src/holdfast/analysis/redact/judge.py.
 * Never false where that would be true. */
#pragma once
#include "bytes.h"

static inline int is_alnum(uint8_t c) { return is_letter(c) || is_digit(c) || c >= 128; }

/* `get_int_param`, `v-2.0`: words and short numbers with signs between them, and perhaps a number at the end. */
static int is_in_words(const uint8_t *text, size_t length) {
    size_t at = 0;
    while (at < length) {
        size_t first = at;
        if (is_digit(text[at])) {
            while (at < length && is_digit(text[at])) at++;
            if (at - first > 4) return 0;
        } else if (is_letter(text[at])) {
            while (at < length && is_upper(text[at])) at++;
            if (at - first > 1 && at < length && is_lower(text[at])) return 0;
            while (at < length && is_lower(text[at])) at++;
            if (length - at <= 3) {
                size_t last = at;
                while (last < length && is_digit(text[last])) last++;
                if (last == length) return 1;
            }
        }
        if (at == length) return 1;
        for (first = at; at < length && at - first < 4 && is_one_of(text[at], "-_.:/ "); at++) continue;
        if (at == first) return 0;
    }
    return 1;
}

static size_t end_of_lower(const uint8_t *text, size_t length, size_t at) {
    while (at < length && is_lower(text[at])) at++;
    return at;
}

/* `RegNtSetValueKey`: two thirds of it are words that can be spoken. */
static int is_camel_case(const uint8_t *text, size_t length) {
    size_t rest = 0, at = end_of_lower(text, length, 0);
    if (at < 3 || at == length || !is_upper(text[at])) at = 0;
    while (at < length) {
        if (!is_alnum(text[at])) return 0;
        size_t end = is_upper(text[at]) ? end_of_lower(text, length, at + 1) : at, vowels = 0;
        for (size_t n = at + 1; n < end && n < at + 5; n++) vowels += is_one_of(text[n], "aeiou") != 0;
        rest += !vowels || end - at < 3;
        at = vowels && end - at >= 3 ? end : at + 1;
    }
    return 3 * rest < length;
}

/* A word of sixteen or more with four consonants in a row may be random, though it has neither digits nor capitals. */
static inline int may_be_unspeakable(struct word *word, uint8_t c) {
    enum { VOWELS = 1 << ('a' - 97) | 1 << ('e' - 97) | 1 << ('i' - 97) | 1 << ('o' - 97) | 1 << ('u' - 97) | 1 << ('y' - 97) };
    int letter = is_letter(c);
    if (!letter && !is_digit(c)) return word->length = word->row = 0, word->dense = 0;
    word->row = letter && !(VOWELS >> ((c | 32) - 97) & 1) ? word->row + 1 : 0;
    word->dense |= word->row >= 4;
    return ++word->length >= 16 && word->dense;
}

/* Whether these bytes may be random, or `strict`ly so: for a password, words with a number or a sign are enough. */
static int is_random_piece(const uint8_t *text, size_t length, size_t least, int strict) {
    size_t flips = 0;
    int digit = 0, letter = 0, lower = 0, upper = 0, sign = 0, unspeakable = 0;
    struct word word = {0};
    if (length < least) return 0;
    for (size_t at = 0; !strict && at < length; at++) {
        lower |= is_lower(text[at]);
        upper |= is_upper(text[at]);
        sign |= is_one_of(text[at], "!@#$%^&*?+");
    }
    if (lower && upper && sign) return 1;
    while (length && !is_alnum(*text)) text++, length--;
    while (length && !is_alnum(text[length - 1])) length--;
    for (size_t at = 0; at < length; at++) {
        digit |= is_digit(text[at]);
        letter |= text[at] > 64;
        unspeakable |= may_be_unspeakable(&word, text[at]);
        flips += at && is_upper(text[at]) && (is_lower(text[at - 1]) || (at + 1 < length && is_upper(text[at - 1]) && is_lower(text[at + 1])));
    }
    if (digit && !letter) return length >= 16; /* keys in digits */
    if (digit && !(strict && is_in_words(text, length))) return 1;
    if (unspeakable) return 1;
    return !digit && flips >= 2 && flips * (length < 20 ? 4 : 12) >= length && !is_camel_case(text, length);
}

/* The same for a part between signs of programs. `least`: how many bytes there must be. */
static int may_be_random(const uint8_t *text, size_t length, size_t least, int strict) {
    size_t first = 0;
    if (is_random_piece(text, length, least, strict)) return 1;
    for (size_t at = 0; at <= length; at++) {
        if (at < length && !is_one_of(text[at], "=:(>|,;&)<{}[]?")) continue;
        if (at - first < length && is_random_piece(text + first, at - first, least, strict)) return 1;
        first = at + 1;
    }
    return 0;
}

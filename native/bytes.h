/* What a byte is, in ASCII: shared by anchors.c and spellings.c. */
#pragma once
#include <stddef.h>
#include <stdint.h>

static inline int is_upper(uint8_t c) { return c >= 'A' && c <= 'Z'; }
static inline int is_lower(uint8_t c) { return c >= 'a' && c <= 'z'; }
static inline int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }
static inline int is_letter(uint8_t c) { return is_upper(c) || is_lower(c); }
static inline uint8_t lowered(uint8_t c) { return is_upper(c) ? c | 32 : c; }

static inline int is_one_of(uint8_t c, const char *set) {
    for (; *set; set++)
        if ((uint8_t)*set == c) return 1;
    return 0;
}

/* How long a word without signs is so far, how many consonants end it, and whether there were four in a row. */
struct word {
    size_t length, row;
    int dense;
};

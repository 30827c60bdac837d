/* What is searched for, and what a search knows: the tables that src/holdfast/analysis/redact/anchors.py makes, and the state of one pass.
 * Sizes and guards come from rules.h, which native/build.py makes. */
#pragma once
#include "bytes.h"
#include "rules.h"

enum { SEEN = 1 << SEEN_BITS, SECOND = 1 << SECOND_BITS, FREE_HITS = 64, SORTS = 4, RUNS = 8, BLOCK = 512, CHUNK = 2048, MOST_DROPPED = 1024, PER_DROPPED = 32, LOOK_OF_GUARD = 20 };

struct anchor {
    uint32_t text;    /* where it lies in `texts` */
    uint32_t number;  /* what is reported */
    uint32_t hash;    /* of the first three of them */
    uint16_t length;
    int16_t key;      /* where its known bytes begin; -1: with the one before it */
    uint16_t follow;  /* how many bytes after it must be of `class` */
    uint16_t class;
    uint8_t left;     /* what may stand before it, as a class; 0: anything. The start of the text always may */
    uint8_t then;     /* the byte behind those of `follow`; 0: any */
    uint16_t guard;   /* what else is asked of it: GUARD_… (see rules/search.toml) and, in the upper byte, the width of the name's stem */
};

struct tables {
    const uint32_t *filter;         /* by the hash of three bytes: a bit for each fourth one (its lower bits) */
    const uint32_t *first;          /* by the hash's upper bits: its first anchor; the next entry ends them */
    const struct anchor *anchors;
    const uint8_t *texts;
    const uint8_t *classes;         /* 256 bytes each; the third is letters and digits */
    const uint8_t *second;          /* a bit for each hash of four known bytes, then one for each of three */
    /* Lists of words: by length (`is_indexed`), or those that are endings each after its length, ended by a zero (`is_listed`). */
    const uint8_t *tail_words, *said_words;
    const uint8_t *glued_key, *glued_token; /* endings */
    const uint8_t *plain_words;
    const uint8_t *cookie_words;    /* endings */
    const uint8_t *no_words;
    const uint8_t *public_words;    /* prefixes of ids */
    const uint8_t *secret_words;    /* what prefixes of secrets end with: endings */
    uint32_t run_number;            /* what a long run of letters and digits that may be a token is reported as */
    uint32_t run_least, run_most;
};

struct found { uint32_t number, start, end; };

/* Of the lower three bytes: the lowest byte of the factor is zero, so the fourth one has no part in it. */
static inline uint32_t hash(uint32_t bytes) { return (bytes * 0x3779B100u) >> (32 - HASH_BITS); }

/* For the second filter: of all four known bytes, or of the three of an anchor that has no more. */
static inline uint32_t hash_four(uint32_t bytes) { return (bytes * 0x85EBCA6Bu) >> 16; }
static inline uint32_t hash_three(uint32_t bytes) { return ((bytes & 0xffffff) * 0xC2B2AE35u) >> 16; }

struct search {
    const struct tables *tables;
    const uint8_t *text;
    size_t length, count, room, dropped;
    size_t looked;                  /* how much was compared and asked, beyond going through the text */
    struct found *out;
    uint64_t *seen;                 /* null: report repetitions too */
    size_t seen_count;
    int ended;                      /* so many were repetitions that the others are not looked for */
    size_t *rest;
    size_t clear_from, clear_to;    /* between them nothing random stands; a run of this many bytes ends there */
    size_t clear_run, clear_flips;
    struct word clear_word;
    size_t random_from, random_to;  /* the run between them is random */
    size_t next[SORTS];             /* for GUARD_FAR: where the next one may begin */
    size_t even_from, even_to;      /* between them no equals sign stands */
    size_t open_from, open_to;      /* between them nothing ends a login */
    size_t walked;                  /* how much was read to tell whether a value may follow a name */
    struct run { size_t class, from, to; } runs[RUNS]; /* between them all is of the class: each byte is read once */
};

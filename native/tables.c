/* Makes the tables of a search from its anchors: what src/holdfast/analysis/redact/anchors.py asks for when a process starts.
 *
 * Every anchor gets the bytes that it is looked for by: rare ones, and those of few other anchors. For thousands of
 * anchors Python took longer over this than over everything else that redaction does at the start. */
#include "search.h"

enum { KNOWN_WIDTH = 4, PLACES = 12, LOAD = 3, COMMON_PART = 20 };

/* How many anchors are looked for by these three bytes; those that stand in most texts begin with `COMMON_PART`. */
struct load { uint32_t three, count; };

/* What Python hands over and gets back: `_Making` in anchors.py. */
struct making {
    const struct anchor *given;
    size_t count;
    const uint8_t *texts, *classes;
    const uint8_t *weights;      /* by byte: how common it is */
    const uint8_t *parts;        /* groups of three letters that stand in most texts */
    size_t part_count;
    struct load *loads;          /* zeros; more than there are anchors and parts, and a power of two */
    size_t load_size;
    struct anchor *keyed;        /* with their keys, in no order */
    struct anchor *ordered;      /* by their hashes */
    size_t room;                 /* of each of the two */
    uint32_t *starts;            /* zeros, one more than there are hashes */
    uint32_t *filter, *first;
    uint8_t *second;
};

static uint32_t join_bytes(const uint8_t *at, size_t width) {
    uint32_t value = 0;
    for (size_t n = 0; n < width; n++) value |= (uint32_t)at[n] << (8 * n);
    return value;
}

static struct load *find_load(const struct making *m, uint32_t three) {
    size_t at = hash(three) & (m->load_size - 1);
    while (m->loads[at].count && m->loads[at].three != three) at = (at + 1) & (m->load_size - 1);
    return &m->loads[at];
}

static void add_load(const struct making *m, uint32_t three, uint32_t more) {
    struct load *load = find_load(m, three);
    load->three = three;
    load->count += more;
}

/* Where the four bytes begin that are the rarest, those of other anchors counting as common. */
static size_t find_rarest(const struct making *m, const uint8_t *text, size_t length) {
    uint32_t best = (uint32_t)-1;
    size_t place = 0, stop = length > 3 ? length - 3 : 1;
    for (size_t at = 0; at < stop && at < PLACES; at++) {
        uint32_t score = LOAD * find_load(m, join_bytes(text + at, 3))->count;
        for (size_t n = at; n < at + 4 && n < length; n++) score += m->weights[text[n]];
        if (score < best) best = score, place = at;
    }
    return place;
}

/* Which values the lower five bits of the byte behind a text may have. */
static uint32_t list_fourths(const struct making *m, const struct anchor *a) {
    uint32_t bits = 0;
    if (!a->follow) return (uint32_t)-1;
    for (size_t code = 0; code < 256; code++)
        if (m->classes[256 * (size_t)a->class + code]) bits |= 1u << (code & 31);
    return bits;
}

static void set_second(uint8_t *second, uint32_t bytes, size_t width) {
    uint32_t bit = width == 4 ? hash_four(bytes) : hash_three(bytes);
    second[(width == 4 ? 0 : SECOND) + (bit >> 3)] |= (uint8_t)(1 << (bit & 7));
}

static size_t add_key(const struct making *m, size_t used, const struct anchor *a, int key, const uint8_t *bytes, size_t width, uint32_t fourths) {
    uint32_t joined = join_bytes(bytes, width), hashed = hash(joined);
    if (used == m->room) return used;
    m->keyed[used] = *a;
    m->keyed[used].key = (int16_t)key;
    m->keyed[used].hash = hashed;
    m->filter[hashed] |= fourths;
    set_second(m->second, joined, width);
    m->starts[hashed + 1]++;
    return used + 1;
}

/* An anchor of two bytes borrows the one before it (key -1), if only a few may stand there, or the one after it. */
static size_t add_short(const struct making *m, size_t used, const struct anchor *a) {
    const uint8_t *text = m->texts + a->text;
    for (size_t code = 0; code < 256; code++) {
        uint8_t byte = (uint8_t)code, before[3] = {byte, text[0], text[1]}, after[3] = {text[0], text[1], byte};
        if (a->left && (m->classes[256 * (size_t)a->left + code] || is_one_of(byte, "ntr")))
            used = add_key(m, used, a, -1, before, 3, list_fourths(m, a)); /* `n`, `t` and `r` end escapes of undecoded JSON */
        if (!a->left && (!a->follow || m->classes[256 * (size_t)a->class + code]))
            used = add_key(m, used, a, 0, after, 3, (uint32_t)-1);
    }
    return used;
}

static size_t add_long(const struct making *m, size_t used, const struct anchor *a) {
    const uint8_t *text = m->texts + a->text;
    size_t place = find_rarest(m, text, a->length), width = a->length - place < KNOWN_WIDTH ? a->length - place : KNOWN_WIDTH;
    add_load(m, join_bytes(text + place, 3), 1);
    return add_key(m, used, a, (int)place, text + place, width, width == 4 ? 1u << (text[place + 3] & 31) : list_fourths(m, a));
}

/* How many entries there are in `ordered`. */
size_t holdfast_make_tables(const struct making *m) {
    size_t used = 0;
    for (size_t n = 0; n < m->part_count; n++) add_load(m, join_bytes(m->parts + 3 * n, 3), COMMON_PART);
    for (size_t n = 0; n < m->count; n++) used = m->given[n].length == 2 ? add_short(m, used, &m->given[n]) : add_long(m, used, &m->given[n]);
    for (size_t n = 0; n < 1 << HASH_BITS; n++) m->starts[n + 1] += m->starts[n];
    for (size_t n = 0; n <= 1 << BUCKET_BITS; n++) m->first[n] = m->starts[n << (HASH_BITS - BUCKET_BITS)];
    for (size_t n = 0; n < used; n++) m->ordered[m->starts[m->keyed[n].hash]++] = m->keyed[n];
    return used;
}

/* What both load clients share: arguments as key=value, a clock, percentiles, JSON on stdout.
 *
 * No networking here. Each client prints exactly one JSON object and exits with 0, or prints a line on
 * stderr and exits with 1. Start at `text_option`.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

static int option_count;
static char **options;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

/* The value of `name=value` on the command line, or `fallback`; a null fallback makes it required. */
static inline const char *text_option(const char *name, const char *fallback) {
    size_t length = strlen(name);
    for (int i = 0; i < option_count; i++)
        if (!strncmp(options[i], name, length) && options[i][length] == '=')
            return options[i] + length + 1;
    if (!fallback)
        die("missing option %s=", name);
    return fallback;
}

static inline int64_t int_option(const char *name, int64_t fallback) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)fallback);
    return strtoll(text_option(name, text), NULL, 10);
}

static inline int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline void sleep_until_ns(int64_t due_ns) {
    struct timespec due = {due_ns / 1000000000, due_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL))
        ;
}

/* The kernel may otherwise round each sleep up by 50 microseconds to save wake-ups. */
static inline void want_exact_sleeps(void) { prctl(PR_SET_TIMERSLACK, 1UL); }

static int compare_int64(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static inline double percentile_ms(const int64_t *sorted_ns, int64_t count, double share) {
    int64_t index = (int64_t)(share * (double)count);
    return count ? (double)sorted_ns[index >= count ? count - 1 : index] / 1e6 : 0.0;
}

/* Prints p50, p99, p99.9 and the maximum as JSON members; sorts the samples in place. */
static inline void print_latencies(int64_t *samples_ns, int64_t count) {
    qsort(samples_ns, (size_t)count, sizeof *samples_ns, compare_int64);
    printf("\"samples\": %lld, \"p50_ms\": %.4f, \"p99_ms\": %.4f, \"p999_ms\": %.4f, \"max_ms\": %.4f",
           (long long)count, percentile_ms(samples_ns, count, 0.5), percentile_ms(samples_ns, count, 0.99),
           percentile_ms(samples_ns, count, 0.999), percentile_ms(samples_ns, count, 1.0));
}

/* Half noise, half zeros: codecs shrink it to about a half, as they do common JSON. */
static inline void fill_payload(unsigned char *payload, int64_t size) {
    uint32_t state = 2463534242u;
    for (int64_t i = 0; i < size; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        payload[i] = (i / 16) % 2 ? 0 : (unsigned char)state;
    }
}

#endif

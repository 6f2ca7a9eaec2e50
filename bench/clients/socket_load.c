/* Drives a broker with frames encoded once and sent over plain sockets, so that the client costs next to nothing.
 *
 * For one-record requests, paced acknowledgement latency, idle connections and the first acknowledged record of
 * a starting broker. Applications are imitated by rdkafka_load.c. Start at `main`.
 *
 *   socket_load closed host=H port=P topic=T partitions=N connections=N depth=N seconds=S size=B acks=-1|1
 *   socket_load paced  host=H port=P topic=T partitions=N connections=N rate=N seconds=S size=B acks=-1|1
 *   socket_load idle   host=H port=P connections=N        (prints when all are open, closes them when stdin ends)
 *   socket_load seek   host=H port=P topic=T end=OFFSET count=N   (single fetches at offsets all over the partition)
 *   socket_load first  host=H port=P topic=T timeout=S    (retries until one record is acknowledged)
 *
 * Produce version 7, Fetch version 4 and Metadata version 4, all before the flexible encodings:
 *
 *   size | 0 7 correlation client | transactional id, acks, timeout, [topic, [partition, records]]
 *   size | correlation | [topic, [partition, error, base offset, append time, log start]], throttle
 */
#include "common.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PRODUCE = 0, FETCH = 1, METADATA = 3, API_VERSIONS = 18, MAX_REPLY = 1 << 16, MAX_DEPTH = 1024 };

struct buffer {
    unsigned char *bytes;
    size_t size, room;
};

static void put(struct buffer *out, const void *bytes, size_t size) {
    if (out->size + size > out->room) {
        out->room = (out->size + size) * 2;
        out->bytes = realloc(out->bytes, out->room);
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
}

static void put_int(struct buffer *out, int64_t value, int bytes) {
    for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8) {
        unsigned char byte = (unsigned char)((uint64_t)value >> shift);
        put(out, &byte, 1);
    }
}

static void put_varint(struct buffer *out, int64_t value) {
    uint64_t zigzag = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    for (; zigzag >= 0x80; zigzag >>= 7)
        put_int(out, (int64_t)(zigzag & 0x7f) | 0x80, 1);
    put_int(out, (int64_t)zigzag, 1);
}

static void put_string(struct buffer *out, const char *text) {
    put_int(out, (int64_t)strlen(text), 2);
    put(out, text, strlen(text));
}

static void set_int32(struct buffer *out, size_t position, uint32_t value) {
    value = htonl(value);
    memcpy(out->bytes + position, &value, 4);
}

static uint32_t get_int32(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static int16_t get_int16(const unsigned char *at) { return (int16_t)(at[0] << 8 | at[1]); }

static uint32_t crc32c(const unsigned char *bytes, size_t size) {
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (0x82f63b78u & -(crc & 1));
    }
    return ~crc;
}

static void put_batch_of_one(struct buffer *out, int64_t value_size) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    int64_t timestamp_ms = (int64_t)wall.tv_sec * 1000 + wall.tv_nsec / 1000000;
    struct buffer record = {0};
    unsigned char *value = malloc((size_t)value_size);
    fill_payload(value, value_size);
    put_int(&record, 0, 1);              /* attributes */
    put_varint(&record, 0);              /* timestamp delta */
    put_varint(&record, 0);              /* offset delta */
    put_varint(&record, -1);             /* no key */
    put_varint(&record, value_size);
    put(&record, value, (size_t)value_size);
    put_varint(&record, 0);              /* no headers */

    size_t start = out->size;
    put_int(out, 0, 8);                  /* base offset */
    put_int(out, 0, 4);                  /* batch length, set below */
    put_int(out, -1, 4);                 /* partition leader epoch */
    put_int(out, 2, 1);                  /* magic */
    put_int(out, 0, 4);                  /* crc, set below */
    put_int(out, 0, 2);                  /* attributes */
    put_int(out, 0, 4);                  /* last offset delta */
    put_int(out, timestamp_ms, 8);
    put_int(out, timestamp_ms, 8);
    put_int(out, -1, 8);                 /* producer id */
    put_int(out, -1, 2);                 /* producer epoch */
    put_int(out, -1, 4);                 /* base sequence */
    put_int(out, 1, 4);                  /* records */
    put_varint(out, (int64_t)record.size);
    put(out, record.bytes, record.size);
    set_int32(out, start + 8, (uint32_t)(out->size - start - 12));
    set_int32(out, start + 17, crc32c(out->bytes + start + 21, out->size - start - 21));
    free(record.bytes), free(value);
}

static size_t begin_request(struct buffer *out, int api_key, int version) {
    size_t start = out->size;
    put_int(out, 0, 4);
    put_int(out, api_key, 2);
    put_int(out, version, 2);
    put_int(out, 1, 4);
    put_string(out, "bench");
    return start;
}

static void end_request(struct buffer *out, size_t start) {
    set_int32(out, start, (uint32_t)(out->size - start - 4));
}

static void put_produce(struct buffer *out, const char *topic, int32_t partition, int acks, int64_t value_size) {
    struct buffer batch = {0};
    put_batch_of_one(&batch, value_size);
    size_t start = begin_request(out, PRODUCE, 7);
    put_int(out, -1, 2);                 /* no transactional id */
    put_int(out, acks, 2);
    put_int(out, 30000, 4);
    put_int(out, 1, 4);
    put_string(out, topic);
    put_int(out, 1, 4);
    put_int(out, partition, 4);
    put_int(out, (int64_t)batch.size, 4);
    put(out, batch.bytes, batch.size);
    end_request(out, start);
    free(batch.bytes);
}

/* The error code of a whole Produce reply, size field included. */
static int produce_error(const unsigned char *reply, size_t topic_length) {
    return get_int16(reply + 4 + 4 + 4 + 2 + topic_length + 4 + 4);
}

static int try_connect(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)int_option("port", 9092))};
    if (inet_pton(AF_INET, text_option("host", "127.0.0.1"), &address.sin_addr) != 1)
        die("host must be an IPv4 address");
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static int connect_or_die(void) {
    int fd = try_connect();
    if (fd < 0)
        die("connect: %s", strerror(errno));
    return fd;
}

static int send_all(int fd, const struct buffer *out) {
    size_t sent = 0;
    while (sent < out->size) {
        ssize_t done = send(fd, out->bytes + sent, out->size - sent, MSG_NOSIGNAL);
        if (done <= 0)
            return -1;
        sent += (size_t)done;
    }
    return 0;
}

/* Reads one whole reply, size field included; -1 when the connection ended or the reply is not credible. */
static ssize_t receive_reply(int fd, unsigned char *reply, size_t room) {
    if (recv(fd, reply, 4, MSG_WAITALL) != 4)
        return -1;
    uint32_t size = get_int32(reply);
    if (size > room - 4 || recv(fd, reply + 4, size, MSG_WAITALL) != (ssize_t)size)
        return -1;
    return (ssize_t)size + 4;
}

struct connection {
    int fd;
    struct buffer request;
    unsigned char reply[4096];
    size_t received;
    int64_t sent_ns[MAX_DEPTH];
    int sent, answered;
};

struct samples {
    int64_t *ns, count, room;
};

static void add_sample(struct samples *samples, int64_t ns) {
    if (samples->count == samples->room) {
        samples->room = samples->room ? samples->room * 2 : 1 << 16;
        samples->ns = realloc(samples->ns, (size_t)samples->room * sizeof *samples->ns);
    }
    samples->ns[samples->count++] = ns;
}

/* Sends the connection's request until it succeeds once: a topic just created has no leader for a moment. */
static void wait_for_leader(struct connection *on, size_t topic_length) {
    int error = 0;
    for (int attempt = 0; attempt < 2000; attempt++) {
        if (send_all(on->fd, &on->request) || receive_reply(on->fd, on->reply, sizeof on->reply) < 0)
            die("the broker closed a connection");
        error = produce_error(on->reply, topic_length);
        if (!error)
            return;
        usleep(5000);
    }
    die("produce keeps failing with error code %d", error);
}

static struct connection *open_connections(int count, int epoll) {
    struct connection *all = calloc((size_t)count, sizeof *all);
    const char *topic = text_option("topic", NULL);
    int32_t partitions = (int32_t)int_option("partitions", 1);
    for (int i = 0; i < count; i++) {
        all[i].fd = connect_or_die();
        put_produce(&all[i].request, topic, i % partitions, (int)int_option("acks", -1), int_option("size", 100));
        wait_for_leader(&all[i], strlen(topic));
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].fd, &event);
    }
    return all;
}

static void send_request(struct connection *to, int64_t stamp_ns) {
    if (to->sent - to->answered >= MAX_DEPTH)
        die("the broker is %d requests behind on one connection", MAX_DEPTH);
    to->sent_ns[to->sent++ % MAX_DEPTH] = stamp_ns;
    if (send_all(to->fd, &to->request))
        die("send: %s", strerror(errno));
}

/* Takes what the socket has; returns how many replies it completed, each checked and timed. */
static int take_replies(struct connection *from, size_t topic_length, struct samples *samples) {
    ssize_t got = recv(from->fd, from->reply + from->received, sizeof from->reply - from->received, 0);
    if (got <= 0)
        die("the broker closed a connection");
    from->received += (size_t)got;
    size_t position = 0;
    int completed = 0;
    while (from->received - position >= 4) {
        size_t size = get_int32(from->reply + position) + 4;
        if (from->received - position < size)
            break;
        int error = produce_error(from->reply + position, topic_length);
        if (error)
            die("produce failed with error code %d", error);
        add_sample(samples, now_ns() - from->sent_ns[from->answered++ % MAX_DEPTH]);
        position += size, completed++;
    }
    memmove(from->reply, from->reply + position, from->received - position);
    from->received -= position;
    return completed;
}

static void print_rate(struct samples *samples, double seconds) {
    printf("{\"requests_per_s\": %.1f, \"seconds\": %.3f, ", (double)samples->count / seconds, seconds);
    print_latencies(samples->ns, samples->count);
    printf("}\n");
}

/* Each connection keeps `depth` requests under way: as fast as the broker answers. */
static int closed_loop(void) {
    int count = (int)int_option("connections", 10), depth = (int)int_option("depth", 1), epoll = epoll_create1(0);
    size_t topic_length = strlen(text_option("topic", NULL));
    struct connection *all = open_connections(count, epoll);
    struct samples samples = {0};
    struct epoll_event events[256];
    for (int i = 0; i < count; i++)
        for (int j = 0; j < depth; j++)
            send_request(&all[i], now_ns());
    int64_t start_ns = now_ns(), end_ns = start_ns + int_option("seconds", 5) * 1000000000, now;
    while ((now = now_ns()) < end_ns) {
        int ready = epoll_wait(epoll, events, 256, 1000);
        for (int i = 0; i < ready; i++) {
            int answered = take_replies(events[i].data.ptr, topic_length, &samples);
            while (answered--)
                send_request(events[i].data.ptr, now_ns());
        }
    }
    print_rate(&samples, (double)(now - start_ns) / 1e9);
    return 0;
}

/* Requests leave on a fixed schedule, whatever the broker does; a reply is timed from when its request was due. */
static int paced(void) {
    int count = (int)int_option("connections", 1), epoll = epoll_create1(0);
    int64_t rate = int_option("rate", 1000), total = rate * int_option("seconds", 5), sent = 0;
    size_t topic_length = strlen(text_option("topic", NULL));
    struct connection *all = open_connections(count, epoll);
    struct samples samples = {0};
    struct epoll_event events[256];
    want_exact_sleeps();
    int64_t start_ns = now_ns() + 1000000;
    while (samples.count < total) {
        int64_t due_ns = start_ns + sent * 1000000000 / rate, wait_ns = sent < total ? due_ns - now_ns() : 1000000000;
        if (wait_ns <= 0) {
            send_request(&all[sent++ % count], due_ns);
            continue;
        }
        struct timespec wait = {wait_ns / 1000000000, wait_ns % 1000000000};
        int ready = epoll_pwait2(epoll, events, 256, &wait, NULL);
        for (int i = 0; i < ready; i++)
            take_replies(events[i].data.ptr, topic_length, &samples);
    }
    print_rate(&samples, (double)(now_ns() - start_ns) / 1e9);
    return 0;
}

/* Opens connections that have said hello (ApiVersions) and then keep silent. */
static int idle(void) {
    int count = (int)int_option("connections", 2000);
    struct rlimit files = {(rlim_t)count + 64, (rlim_t)count + 64};
    struct buffer hello = {0};
    unsigned char *reply = malloc(MAX_REPLY);
    setrlimit(RLIMIT_NOFILE, &files);
    end_request(&hello, begin_request(&hello, API_VERSIONS, 0));
    int64_t start_ns = now_ns();
    for (int i = 0; i < count; i++) {
        int fd = connect_or_die();
        if (send_all(fd, &hello) || receive_reply(fd, reply, MAX_REPLY) < 0)
            die("connection %d was not greeted", i);
    }
    printf("{\"connections\": %d, \"seconds\": %.6f}\n", count, (double)(now_ns() - start_ns) / 1e9);
    fflush(stdout);
    while (read(0, reply, 1) > 0)
        ;
    return 0;
}

static void put_fetch(struct buffer *out, const char *topic, int64_t offset) {
    size_t start = begin_request(out, FETCH, 4);
    put_int(out, -1, 4);                 /* a consumer, not a replica */
    put_int(out, 500, 4);                /* longest wait */
    put_int(out, 1, 4);                  /* fewest bytes */
    put_int(out, 1, 4);                  /* most bytes: one batch comes all the same */
    put_int(out, 0, 1);                  /* read uncommitted */
    put_int(out, 1, 4);
    put_string(out, topic);
    put_int(out, 1, 4);
    put_int(out, 0, 4);
    put_int(out, offset, 8);
    put_int(out, 1, 4);
    end_request(out, start);
}

static int seek(void) {
    enum { ROOM = 1 << 24 };
    const char *topic = text_option("topic", NULL);
    int64_t end = int_option("end", 1), count = int_option("count", 200);
    int fd = connect_or_die();
    unsigned char *reply = malloc(ROOM);
    struct samples samples = {0};
    uint64_t state = 88172645463325252ull;
    int64_t start_ns = now_ns();
    for (int64_t i = 0; i < count; i++) {
        struct buffer request = {0};
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        put_fetch(&request, topic, (int64_t)(state % (uint64_t)end));
        int64_t sent_ns = now_ns();
        if (send_all(fd, &request) || receive_reply(fd, reply, ROOM) < 0)
            die("the broker closed the connection");
        add_sample(&samples, now_ns() - sent_ns);
        int error = get_int16(reply + 4 + 4 + 4 + 4 + 2 + strlen(topic) + 4 + 4);
        if (error)
            die("fetch failed with error code %d", error);
        free(request.bytes);
    }
    print_rate(&samples, (double)(now_ns() - start_ns) / 1e9);
    return 0;
}

/* Asks for the topic, which makes the broker create it, then sends one record; true once that is acknowledged. */
static int first_record_on(int fd, const char *topic, unsigned char *reply) {
    struct buffer metadata = {0}, produce = {0};
    size_t start = begin_request(&metadata, METADATA, 4);
    put_int(&metadata, 1, 4);
    put_string(&metadata, topic);
    put_int(&metadata, 1, 1);            /* allow auto topic creation */
    end_request(&metadata, start);
    put_produce(&produce, topic, 0, -1, 100);
    int acknowledged = 0, alive = 1;
    while (alive && !acknowledged) {
        alive = !send_all(fd, &metadata) && receive_reply(fd, reply, MAX_REPLY) > 0 && !send_all(fd, &produce) &&
                receive_reply(fd, reply, MAX_REPLY) > 0;
        acknowledged = alive && produce_error(reply, strlen(topic)) == 0;
        if (!acknowledged)
            usleep(2000);
    }
    free(metadata.bytes), free(produce.bytes);
    return acknowledged;
}

static int first(void) {
    const char *topic = text_option("topic", NULL);
    unsigned char *reply = malloc(MAX_REPLY);
    struct timeval patience = {5, 0};
    int64_t give_up_ns = now_ns() + int_option("timeout", 120) * 1000000000;
    want_exact_sleeps();
    while (now_ns() < give_up_ns) {
        int fd = try_connect();
        if (fd < 0) {
            usleep(1000);
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        if (first_record_on(fd, topic, reply)) {
            printf("{\"acknowledged_ns\": %lld}\n", (long long)now_ns());
            return 0;
        }
        close(fd);
    }
    die("no record was acknowledged in time");
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(void);
    } commands[] = {{"closed", closed_loop}, {"paced", paced}, {"idle", idle}, {"seek", seek}, {"first", first}};
    option_count = argc - 2, options = argv + 2;
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run();
    die("usage: %s closed|paced|idle|seek|first key=value...", argv[0]);
}

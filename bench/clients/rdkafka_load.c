/* Drives a broker through librdkafka, as applications do: produce, consume, end-to-end latency, topics.
 *
 * Not for single-request rates or start-up, where the library itself would be measured: see socket_load.c.
 * Start at `main`; each command is one function that prints one JSON object.
 *
 *   rdkafka_load produce brokers=H:P topic=T partitions=N size=B count=N acks=1|all idempotent=0|1 codec=C keys=K
 *                        transaction=N   (records in each transaction; 0 for none)
 *   rdkafka_load text    brokers=H:P topic=T count=N size=B keys=K words=W   (keyed text, placed as Java clients would)
 *   rdkafka_load consume brokers=H:P topic=T partitions=N count=N consumers=N
 *   rdkafka_load latency brokers=H:P topic=T rate=N count=N size=B
 *   rdkafka_load create  brokers=H:P topic=T partitions=N replicas=N config=k=v,k=v
 *   rdkafka_load alter   brokers=H:P topic=T config=k=v,k=v     (replaces the whole set)
 *   rdkafka_load delete  brokers=H:P topic=T
 */
#include "common.h"

#include <librdkafka/rdkafka.h>
#include <pthread.h>

static rd_kafka_conf_t *conf;
static volatile int64_t failed_count;

static void set(const char *name, const char *value) {
    char problem[256];
    if (rd_kafka_conf_set(conf, name, value, problem, sizeof problem) != RD_KAFKA_CONF_OK)
        die("%s", problem);
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    if (!message->err)
        return;
    if (!failed_count++)
        fprintf(stderr, "first failed delivery: %s\n", rd_kafka_err2str(message->err));
}

static void new_conf(void) {
    conf = rd_kafka_conf_new();
    set("bootstrap.servers", text_option("brokers", NULL));
    set("socket.nagle.disable", "true");
    set("log_level", "3");
    set("broker.address.family", "v4");
}

static rd_kafka_t *client(rd_kafka_type_t type) {
    char problem[256];
    rd_kafka_t *made = rd_kafka_new(type, conf, problem, sizeof problem);
    if (!made)
        die("%s", problem);
    return made;
}

static rd_kafka_topic_t *topic_of(rd_kafka_t *owner) {
    rd_kafka_topic_t *topic = rd_kafka_topic_new(owner, text_option("topic", NULL), NULL);
    if (!topic)
        die("topic: %s", rd_kafka_err2str(rd_kafka_last_error()));
    return topic;
}

static rd_kafka_t *producer(const char *linger_ms) {
    new_conf();
    set("acks", text_option("acks", "all"));
    set("enable.idempotence", int_option("idempotent", 0) ? "true" : "false");
    set("compression.codec", text_option("codec", "none"));
    set("linger.ms", linger_ms);
    set("queue.buffering.max.messages", "500000");
    /* Successes are counted by the queue running empty, so that the client costs as little as it can. */
    set("delivery.report.only.error", "true");
    if (int_option("transaction", 0))
        set("transactional.id", text_option("topic", NULL));
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return client(RD_KAFKA_PRODUCER);
}

static void send_one(rd_kafka_topic_t *topic, int32_t partition, void *payload, size_t size, void *key, size_t key_size) {
    if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_BLOCK, payload, size, key, key_size, NULL))
        die("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
}

static void wait_until_acknowledged(rd_kafka_t *from) {
    while (rd_kafka_outq_len(from) > 0)
        rd_kafka_poll(from, 1);
    if (failed_count)
        die("%lld records failed", (long long)failed_count);
}

static void check_transaction(rd_kafka_error_t *error) {
    if (error)
        die("transaction: %s", rd_kafka_error_string(error));
}

static void begin_transaction(rd_kafka_t *owner, int64_t transaction) {
    if (transaction)
        check_transaction(rd_kafka_begin_transaction(owner));
}

static void commit_transaction(rd_kafka_t *owner, int64_t transaction) {
    if (transaction)
        check_transaction(rd_kafka_commit_transaction(owner, 60000));
}

static int produce(void) {
    int64_t transaction = int_option("transaction", 0);
    int64_t count = int_option("count", 0), size = int_option("size", 1000), key_count = int_option("keys", 0);
    int32_t partitions = (int32_t)int_option("partitions", 1);
    unsigned char *payload = malloc((size_t)size);
    char (*keys)[16] = calloc((size_t)key_count + 1, sizeof *keys);
    fill_payload(payload, size);
    for (int64_t i = 0; i < key_count; i++)
        snprintf(keys[i], sizeof *keys, "key-%010u", (unsigned)i);
    rd_kafka_t *sender = producer(text_option("linger", "5"));
    rd_kafka_topic_t *topic = topic_of(sender);

    /* One record to each partition first: connections, metadata and producer id are not timed. */
    if (transaction)
        check_transaction(rd_kafka_init_transactions(sender, 60000));
    begin_transaction(sender, transaction);
    for (int32_t p = 0; p < partitions; p++)
        send_one(topic, p, payload, (size_t)size, keys[0], key_count ? 14 : 0);
    wait_until_acknowledged(sender);
    commit_transaction(sender, transaction);

    int64_t start_ns = now_ns();
    begin_transaction(sender, transaction);
    for (int64_t i = 0; i < count; i++) {
        if (transaction && i && !(i % transaction)) {
            commit_transaction(sender, transaction);
            begin_transaction(sender, transaction);
        }
        char *key = key_count ? keys[(i * 7919) % key_count] : NULL;
        send_one(topic, (int32_t)(i % partitions), payload, (size_t)size, key, key ? 14 : 0);
        if (!(i & 0xffff))
            rd_kafka_poll(sender, 0);
    }
    wait_until_acknowledged(sender);
    commit_transaction(sender, transaction);
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    printf("{\"records\": %lld, \"written\": %lld, \"seconds\": %.6f, \"mb_per_s\": %.3f}\n", (long long)count,
           (long long)(count + partitions), seconds, (double)(count * size) / seconds / 1e6);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(sender);
    return 0;
}

enum { TEXTS = 1024 };

/* Words of a vocabulary of `words`, separated by spaces, cut at `size`. */
static void fill_text(char *text, int64_t size, int64_t words, uint32_t *state) {
    int64_t written = 0;
    while (written < size) {
        *state ^= *state << 13, *state ^= *state >> 17, *state ^= *state << 5;
        char word[24];
        int length = snprintf(word, sizeof word, "word%u ", (unsigned)(*state % (uint32_t)words));
        for (int i = 0; i < length && written < size; i++)
            text[written++] = word[i];
    }
}

static int produce_text(void) {
    int64_t count = int_option("count", 0), size = int_option("size", 100);
    int64_t key_count = int_option("keys", 10000), words = int_option("words", 1000);
    char (*keys)[16] = calloc((size_t)key_count, sizeof *keys);
    for (int64_t i = 0; i < key_count; i++)
        snprintf(keys[i], sizeof *keys, "key-%010u", (unsigned)i);
    char *texts = malloc((size_t)(TEXTS * size));
    uint32_t state = 2463534242u;
    for (int64_t i = 0; i < TEXTS; i++)
        fill_text(texts + i * size, size, words, &state);
    rd_kafka_t *sender = producer(text_option("linger", "5"));
    rd_kafka_topic_conf_t *placed = rd_kafka_topic_conf_new();
    char problem[256];
    if (rd_kafka_topic_conf_set(placed, "partitioner", "murmur2", problem, sizeof problem) != RD_KAFKA_CONF_OK)
        die("%s", problem);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(sender, text_option("topic", NULL), placed);
    int64_t start_ns = now_ns();
    for (int64_t i = 0; i < count; i++) {
        state ^= state << 13, state ^= state >> 17, state ^= state << 5;
        /* Every key at least once, in turn, and then at random. */
        char *key = keys[i < key_count ? i : state % (uint32_t)key_count];
        send_one(topic, RD_KAFKA_PARTITION_UA, texts + (i % TEXTS) * size, (size_t)size, key, 14);
        if (!(i & 0xffff))
            rd_kafka_poll(sender, 0);
    }
    wait_until_acknowledged(sender);
    printf("{\"records\": %lld, \"seconds\": %.6f}\n", (long long)count, (double)(now_ns() - start_ns) / 1e9);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(sender);
    return 0;
}

struct reader {
    pthread_t thread;
    int32_t first_partition, step, partitions;
    int64_t records, bytes, first_ns, last_ns;
};

static volatile int64_t records_left;

static void on_record(rd_kafka_message_t *message, void *opaque) {
    struct reader *reader = opaque;
    if (message->err) {
        if (message->err != RD_KAFKA_RESP_ERR__PARTITION_EOF && message->err != RD_KAFKA_RESP_ERR__TRANSPORT)
            die("consume: %s", rd_kafka_message_errstr(message));
        return;
    }
    if (!reader->records)
        reader->first_ns = now_ns();
    reader->records++, reader->bytes += (int64_t)message->len;
}

static void *read_partitions(void *argument) {
    struct reader *reader = argument;
    rd_kafka_conf_t *own = rd_kafka_conf_dup(conf);
    char problem[256];
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, own, problem, sizeof problem);
    if (!consumer)
        die("%s", problem);
    rd_kafka_topic_t *topic = topic_of(consumer);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(consumer);
    for (int32_t p = reader->first_partition; p < reader->partitions; p += reader->step)
        if (rd_kafka_consume_start_queue(topic, p, RD_KAFKA_OFFSET_BEGINNING, queue))
            die("consume start: %s", rd_kafka_err2str(rd_kafka_last_error()));
    while (__atomic_load_n(&records_left, __ATOMIC_RELAXED) > 0) {
        int64_t before = reader->records;
        rd_kafka_consume_callback_queue(queue, 100, on_record, reader);
        if (reader->records == before)
            continue;
        reader->last_ns = now_ns();
        __atomic_sub_fetch(&records_left, reader->records - before, __ATOMIC_RELAXED);
    }
    for (int32_t p = reader->first_partition; p < reader->partitions; p += reader->step)
        rd_kafka_consume_stop(topic, p);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(consumer);
    return NULL;
}

static void new_consumer_conf(void) {
    new_conf();
    set("enable.auto.commit", "false");
    set("auto.offset.reset", "error");
    set("fetch.message.max.bytes", "1048576");
    set("queued.min.messages", "500000");
    set("queued.max.messages.kbytes", "262144");
    /* Old releases pause this long when their queue is full; the default of 500 ms would be all we measure. */
    set("fetch.error.backoff.ms", "1");
}

/* The partitions are split among the consumers, as a group would; all start together. */
static int consume(void) {
    int32_t consumers = (int32_t)int_option("consumers", 1), partitions = (int32_t)int_option("partitions", 1);
    struct reader *readers = calloc((size_t)consumers, sizeof *readers);
    records_left = int_option("count", 0);
    new_consumer_conf();
    int64_t start_ns = now_ns();
    for (int32_t i = 0; i < consumers; i++) {
        readers[i] = (struct reader){.first_partition = i, .step = consumers, .partitions = partitions};
        pthread_create(&readers[i].thread, NULL, read_partitions, &readers[i]);
    }
    int64_t records = 0, bytes = 0, first_ns = INT64_MAX, last_ns = 0;
    for (int32_t i = 0; i < consumers; i++) {
        pthread_join(readers[i].thread, NULL);
        records += readers[i].records, bytes += readers[i].bytes;
        if (readers[i].first_ns && readers[i].first_ns < first_ns)
            first_ns = readers[i].first_ns;
        if (readers[i].last_ns > last_ns)
            last_ns = readers[i].last_ns;
    }
    double seconds = (double)(last_ns - first_ns) / 1e9;
    printf("{\"records\": %lld, \"seconds\": %.6f, \"wait_s\": %.6f, \"mb_per_s\": %.3f}\n", (long long)records, seconds,
           (double)(first_ns - start_ns) / 1e9, (double)bytes / seconds / 1e6);
    return 0;
}

struct latency_run {
    rd_kafka_t *consumer;
    rd_kafka_queue_t *queue;
    int64_t *samples_ns, count, received;
    volatile int is_reading;
};

static void on_stamped(rd_kafka_message_t *message, void *opaque) {
    struct latency_run *run = opaque;
    int64_t due_ns;
    if (message->err || message->len < sizeof due_ns)
        return;
    memcpy(&due_ns, message->payload, sizeof due_ns);
    run->is_reading = 1;
    if (due_ns && run->received < run->count)
        run->samples_ns[run->received++] = now_ns() - due_ns;
}

static void *receive_stamped(void *argument) {
    struct latency_run *run = argument;
    int64_t give_up_ns = now_ns() + 120000000000;
    want_exact_sleeps();
    while (run->received < run->count && now_ns() < give_up_ns)
        rd_kafka_consume_callback_queue(run->queue, 100, on_stamped, run);
    return NULL;
}

/* Latency counts from the moment a record was due, not from when a late client got round to sending it. */
static int latency(void) {
    int64_t count = int_option("count", 1000), rate = int_option("rate", 1000), size = int_option("size", 100);
    int64_t warm_up = count / 5;
    struct latency_run run = {.count = count + warm_up, .samples_ns = calloc((size_t)(count + warm_up), 8)};
    unsigned char *payload = malloc((size_t)size);
    pthread_t thread;
    fill_payload(payload, size);
    rd_kafka_t *sender = producer("0");
    rd_kafka_topic_t *out = topic_of(sender);
    memset(payload, 0, 8);
    send_one(out, 0, payload, (size_t)size, NULL, 0);
    wait_until_acknowledged(sender);

    new_consumer_conf();
    run.consumer = client(RD_KAFKA_CONSUMER);
    run.queue = rd_kafka_queue_new(run.consumer);
    rd_kafka_topic_t *in = topic_of(run.consumer);
    if (rd_kafka_consume_start_queue(in, 0, RD_KAFKA_OFFSET_BEGINNING, run.queue))
        die("consume start: %s", rd_kafka_err2str(rd_kafka_last_error()));
    pthread_create(&thread, NULL, receive_stamped, &run);
    want_exact_sleeps();
    /* The record sent above comes back first: from then on the consumer is fetching, and the clock may run. */
    while (!run.is_reading)
        sleep_until_ns(now_ns() + 1000000);
    int64_t first_ns = now_ns() + 100000000;
    for (int64_t i = 0; i < run.count; i++) {
        int64_t due_ns = first_ns + i * 1000000000 / rate;
        sleep_until_ns(due_ns);
        memcpy(payload, &due_ns, sizeof due_ns);
        if (rd_kafka_produce(out, 0, RD_KAFKA_MSG_F_BLOCK | RD_KAFKA_MSG_F_COPY, payload, (size_t)size, NULL, 0, NULL))
            die("produce: %s", rd_kafka_err2str(rd_kafka_last_error()));
    }
    wait_until_acknowledged(sender);
    pthread_join(thread, NULL);
    if (run.received < run.count)
        die("only %lld of %lld records came back", (long long)run.received, (long long)run.count);
    printf("{");
    print_latencies(run.samples_ns + warm_up, count);
    printf("}\n");
    rd_kafka_consume_stop(in, 0);
    return 0;
}

static void check_topic_result(rd_kafka_queue_t *queue) {
    size_t count;
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 90000);
    if (!event)
        die("no answer to the admin request");
    if (rd_kafka_event_error(event))
        die("%s", rd_kafka_event_error_string(event));
    const rd_kafka_topic_result_t **results = NULL;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT)
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DELETETOPICS_RESULT)
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    if (results && rd_kafka_topic_result_error(results[0]))
        die("%s: %s", rd_kafka_topic_result_name(results[0]), rd_kafka_err2str(rd_kafka_topic_result_error(results[0])));
    rd_kafka_event_destroy(event);
    printf("{\"ok\": true}\n");
}

/* Calls `apply(target, key, value)` for each k=v of the option config=k=v,k=v. */
static void each_config(void *target, rd_kafka_resp_err_t (*apply)(void *, const char *, const char *)) {
    char *text = strdup(text_option("config", "")), *save = NULL;
    for (char *pair = strtok_r(text, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
        char *value = strchr(pair, '=');
        if (!value)
            die("config %s has no value", pair);
        *value++ = 0;
        apply(target, pair, value);
    }
}

static rd_kafka_resp_err_t apply_to_topic(void *target, const char *key, const char *value) {
    return rd_kafka_NewTopic_set_config(target, key, value);
}

static rd_kafka_resp_err_t apply_to_resource(void *target, const char *key, const char *value) {
    return rd_kafka_ConfigResource_set_config(target, key, value);
}

static int create_topic(void) {
    char problem[256];
    new_conf();
    rd_kafka_t *admin = client(RD_KAFKA_PRODUCER);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    rd_kafka_AdminOptions_t *admin_options = rd_kafka_AdminOptions_new(admin, RD_KAFKA_ADMIN_OP_CREATETOPICS);
    rd_kafka_AdminOptions_set_operation_timeout(admin_options, 60000, problem, sizeof problem);
    rd_kafka_AdminOptions_set_request_timeout(admin_options, 80000, problem, sizeof problem);
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(text_option("topic", NULL), (int)int_option("partitions", 1),
                              (int)int_option("replicas", 1), problem, sizeof problem);
    each_config(topic, apply_to_topic);
    rd_kafka_CreateTopics(admin, &topic, 1, admin_options, queue);
    check_topic_result(queue);
    rd_kafka_destroy(admin);
    return 0;
}

static int alter_topic(void) {
    new_conf();
    rd_kafka_t *admin = client(RD_KAFKA_PRODUCER);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, text_option("topic", NULL));
    each_config(resource, apply_to_resource);
    rd_kafka_AlterConfigs(admin, &resource, 1, NULL, queue);
    check_topic_result(queue);
    rd_kafka_destroy(admin);
    return 0;
}

static int delete_topic(void) {
    new_conf();
    rd_kafka_t *admin = client(RD_KAFKA_PRODUCER);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(admin);
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(text_option("topic", NULL));
    rd_kafka_DeleteTopics(admin, &topic, 1, NULL, queue);
    check_topic_result(queue);
    rd_kafka_destroy(admin);
    return 0;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*run)(void);
    } commands[] = {{"produce", produce},     {"text", produce_text},   {"consume", consume},     {"latency", latency},
                    {"create", create_topic}, {"alter", alter_topic}, {"delete", delete_topic}};
    option_count = argc - 2, options = argv + 2;
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (!strcmp(argv[1], commands[i].name))
            return commands[i].run();
    die("usage: %s produce|text|consume|latency|create|alter|delete key=value...", argv[0]);
}

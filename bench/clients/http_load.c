/* HTTP requests made beforehand, over a number of kept connections, one request at a time on each.
 *
 *   http_load requests host=127.0.0.1 port=8081 connections=16 requests=100000 file=requests.bin
 *
 * The file holds requests one after the other, each behind its length in four bytes (little endian); they are sent in
 * turn, over and over. An answer counts when its status is 200 and its body has come as announced. Latency is from the
 * sending of a request to the last byte of its answer. Start at `main`.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common.h"

enum { ANSWER_BYTES = 1 << 22 };

struct request {
    const char *content;
    uint32_t size;
};

struct connection {
    int socket;
    int64_t sent_ns;
    char *answer;
    size_t received;
};

static struct request *requests;
static int64_t request_count;

static void load_requests(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        die("%s: %s", path, strerror(errno));
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *content = malloc((size_t)size);
    if (fread(content, 1, (size_t)size, file) != (size_t)size)
        die("%s cannot be read", path);
    fclose(file);
    for (long position = 0; position < size; request_count++) {
        uint32_t length;
        memcpy(&length, content + position, 4);
        requests = realloc(requests, (size_t)(request_count + 1) * sizeof *requests);
        requests[request_count] = (struct request){content + position + 4, length};
        position += 4 + (long)length;
    }
    if (!request_count)
        die("%s holds no request", path);
}

static int connected(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1)
        die("%s is no IPv4 address", host);
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        die("cannot connect to %s:%d: %s", host, port, strerror(errno));
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void send_request(struct connection *connection, const struct request *request) {
    connection->sent_ns = now_ns();
    connection->received = 0;
    for (uint32_t done = 0; done < request->size;) {
        ssize_t sent = send(connection->socket, request->content + done, request->size - done, MSG_NOSIGNAL);
        if (sent <= 0)
            die("sending failed: %s", strerror(errno));
        done += (uint32_t)sent;
    }
}

/* Whether the answer has come as a whole; dies of one that is no good. */
static int is_answered(struct connection *connection) {
    connection->answer[connection->received] = 0;
    char *body = strstr(connection->answer, "\r\n\r\n");
    if (!body)
        return 0;
    char *length = strcasestr(connection->answer, "\r\ncontent-length:");
    if (!length || length > body)
        die("an answer without a content length");
    if (strncmp(connection->answer, "HTTP/1.1 200", 12))
        die("not answered well: %.200s", connection->answer);
    size_t expected = (size_t)(body + 4 - connection->answer) + strtoul(length + 17, NULL, 10);
    return connection->received >= expected;
}

static int receive_some(struct connection *connection) {
    ssize_t size = recv(connection->socket, connection->answer + connection->received,
                        ANSWER_BYTES - 1 - connection->received, 0);
    if (size <= 0)
        die("the server closed a connection");
    connection->received += (size_t)size;
    return is_answered(connection);
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "requests"))
        die("usage: http_load requests host= port= connections= requests= file=");
    option_count = argc - 2, options = argv + 2;
    load_requests(text_option("file", NULL));
    int connection_count = (int)int_option("connections", 16);
    int64_t wanted = int_option("requests", request_count);
    int64_t *samples = malloc((size_t)wanted * sizeof *samples);
    struct connection *connections = calloc((size_t)connection_count, sizeof *connections);
    int poller = epoll_create1(0);
    for (int i = 0; i < connection_count; i++) {
        connections[i].socket = connected(text_option("host", "127.0.0.1"), (int)int_option("port", 8081));
        connections[i].answer = malloc(ANSWER_BYTES);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &connections[i]};
        epoll_ctl(poller, EPOLL_CTL_ADD, connections[i].socket, &event);
    }
    int64_t sent = 0, done = 0, began_ns = now_ns();
    for (int i = 0; i < connection_count && sent < wanted; i++)
        send_request(&connections[i], &requests[sent++ % request_count]);
    while (done < wanted) {
        struct epoll_event events[256];
        int count = epoll_wait(poller, events, 256, 30000);
        if (count <= 0)
            die("no answer within 30 s");
        for (int i = 0; i < count; i++) {
            struct connection *connection = events[i].data.ptr;
            if (!receive_some(connection))
                continue;
            samples[done++] = now_ns() - connection->sent_ns;
            if (sent < wanted)
                send_request(connection, &requests[sent++ % request_count]);
        }
    }
    double seconds = (double)(now_ns() - began_ns) / 1e9;
    printf("{\"requests_per_s\": %.1f, \"seconds\": %.3f, ", (double)wanted / seconds, seconds);
    print_latencies(samples, wanted);
    printf("}\n");
    return 0;
}

/*
 * Goodput of one TCP flow of the running kernel over an emulated last hop.
 *
 *     kernel KEY=VALUE...
 *
 * Two network namespaces, each with a TUN device; between them, in this program, a link: a drop-tail queue, a rate,
 * losses, retransmissions and a delay towards the receiver, and the delay alone back. Keys are the variables below.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/tcp.h>
#include <math.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *cc = "cubic";   /* congestion control */
static const char *trace = NULL;   /* file: time, direction, sequence number, payload, acknowledgement, fate */
static const char *list = NULL;    /* file: numbers of the data packets to lose, from 0, in place of chance */
static double rate = 10e6;         /* bits per second */
static double delay = 0.030;       /* seconds, each way */
static double loss = 0;            /* probability, or the share of bad time */
static double burst = 0;           /* mean length of bad periods, in packets; 0: independent losses */
static double seconds = 40;        /* length of the run */
static double queue = 75;          /* packets that may wait */
static double retransmissions = 0; /* of the link, at once */
static double mtu = 1500;
static double wmem = 0;            /* greatest send buffer in bytes, if not the kernel's own */
static double seed = 1;
static double rt = 1;              /* real-time priority */

enum { RING = 1 << 16, DATA = 0, ACKS = 1 };

struct waiting { double due; int len; unsigned char *data; };
struct direction { struct waiting *ring; unsigned head, tail; };
static struct shared { volatile uint64_t delivered; volatile int told; char counters[1 << 16]; } *shared;
static uint64_t rng;

static void die(const char *what) { perror(what); exit(1); }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double uniform(void) { /* splitmix64 */
    uint64_t z = (rng += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double exponential(double mean) { return -mean * log(1 - uniform()); }

static void set_priority(int priority) {
    struct sched_param p = {.sched_priority = priority};
    if (rt) sched_setscheduler(0, SCHED_FIFO, &p);
    prctl(PR_SET_TIMERSLACK, 1);
}

/* Moves into a fresh network with a point-to-point TUN device, and returns that. */
static int new_network(const char *ours, const char *theirs) {
    struct ifreq r = {0};
    struct sockaddr_in *address = (void *)&r.ifr_addr;
    if (unshare(CLONE_NEWNET)) die("unshare");
    int tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK), s = socket(AF_INET, SOCK_DGRAM, 0);
    if (tun < 0) die("/dev/net/tun");
    strcpy(r.ifr_name, "air");
    r.ifr_flags = IFF_TUN | IFF_NO_PI;
    if (ioctl(tun, TUNSETIFF, &r)) die("TUNSETIFF");
    r.ifr_mtu = mtu;
    if (ioctl(s, SIOCSIFMTU, &r)) die("mtu");
    r.ifr_qlen = 20000; /* nothing is dropped but by the link */
    if (ioctl(s, SIOCSIFTXQLEN, &r)) die("queue of the device");
    memset(&r.ifr_addr, 0, sizeof r.ifr_addr);
    address->sin_family = AF_INET;
    inet_pton(AF_INET, ours, &address->sin_addr);
    if (ioctl(s, SIOCSIFADDR, &r)) die("address");
    inet_pton(AF_INET, theirs, &address->sin_addr);
    if (ioctl(s, SIOCSIFDSTADDR, &r)) die("address of the peer");
    memset(&r.ifr_addr, 0, sizeof r.ifr_addr);
    r.ifr_flags = IFF_UP | IFF_POINTOPOINT | IFF_RUNNING;
    if (ioctl(s, SIOCSIFFLAGS, &r)) die("up");
    close(s);
    return tun;
}

/* The counters of TcpExt in this network that are not zero. */
static void tell_counters(void) {
    static char text[1 << 16];
    FILE *f = fopen("/proc/self/net/netstat", "r");
    if (!f) return;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    char *names, *values, *n, *v, *out = shared->counters;
    names = strtok(text, "\n");
    values = strtok(NULL, "\n");
    strtok_r(names, " ", &names);
    strtok_r(values, " ", &values);
    while ((n = strtok_r(NULL, " ", &names)) && (v = strtok_r(NULL, " ", &values)))
        if (strcmp(v, "0")) out += sprintf(out, " %s=%s", n, v);
}

static volatile sig_atomic_t stopped;
static void on_stop(int signal) { (void)signal; stopped = 1; }

static void send_all(const struct sockaddr_in *to) {
    static char data[1 << 17];
    sigset_t stop, none;
    sigemptyset(&none);
    sigemptyset(&stop);
    sigaddset(&stop, SIGUSR1);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    signal(SIGUSR1, on_stop);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    if (setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc))) die(cc);
    if (connect(s, (const void *)to, sizeof *to)) die("connect");
    fcntl(s, F_SETFL, O_NONBLOCK);
    while (!stopped) {
        struct pollfd p = {.fd = s, .events = POLLOUT};
        if (ppoll(&p, 1, NULL, &none) > 0)
            while (write(s, data, sizeof data) > 0) {}
    }
    tell_counters();
    shared->told = 1;
    pause();
}

static void receive_all(int listener) {
    static char data[1 << 17];
    int s = accept(listener, NULL, NULL);
    ssize_t n;
    while ((n = read(s, data, sizeof data)) > 0) shared->delivered += n;
    pause();
}

/* Whether something that is on the air from `from` to `to` meets a bad period. Questions go forward in time. */
static int meets_fade(double from, double to) {
    static int bad;
    static double until = -1;
    double fade = burst * mtu * 8 / rate, good = fade * (1 - loss) / loss;
    if (until < 0) until = from + exponential(good);
    while (until <= from) until += exponential((bad = !bad) ? fade : good);
    int met = bad;
    while (until < to) until += exponential((bad = !bad) ? fade : good), met |= bad;
    return met;
}

int main(int count, char **words) {
    struct { const char *key; double *value; } numbers[] = {
        {"rate", &rate}, {"delay", &delay}, {"loss", &loss}, {"burst", &burst}, {"seconds", &seconds},
        {"queue", &queue}, {"retransmissions", &retransmissions}, {"mtu", &mtu}, {"wmem", &wmem},
        {"seed", &seed}, {"rt", &rt}};
    for (int i = 1; i < count; i++) {
        char *value = strchr(words[i], '=');
        int known = 0;
        if (value) {
            *value++ = 0;
            for (unsigned k = 0; k < sizeof numbers / sizeof *numbers; k++)
                if (!strcmp(words[i], numbers[k].key)) *numbers[k].value = atof(value), known = 1;
            if (!strcmp(words[i], "cc")) cc = value, known = 1;
            if (!strcmp(words[i], "trace")) trace = value, known = 1;
            if (!strcmp(words[i], "list")) list = value, known = 1;
        }
        if (!known) return fprintf(stderr, "%s: expected KEY=VALUE with a known key\n", words[i]), 2;
    }
    rng = (uint64_t)seed * 0x5851f42d4c957f2dull + 12345;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    int tun[2]; /* of the receiver and of the sender: where packets of each direction go */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(5001)};
    inet_pton(AF_INET, "10.9.0.2", &address.sin_addr);
    tun[DATA] = new_network("10.9.0.2", "10.9.0.1");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (void *)&address, sizeof address) || listen(listener, 1)) die("listen");
    pid_t receiver = fork();
    if (!receiver) prctl(PR_SET_PDEATHSIG, SIGKILL), set_priority(5), receive_all(listener);
    tun[ACKS] = new_network("10.9.0.1", "10.9.0.2");
    if (wmem) {
        FILE *f = fopen("/proc/sys/net/ipv4/tcp_wmem", "w");
        if (!f) die("tcp_wmem");
        fprintf(f, "4096 16384 %.0f", wmem);
        fclose(f);
    }
    pid_t sender = fork();
    if (!sender) prctl(PR_SET_PDEATHSIG, SIGKILL), set_priority(5), send_all(&address);
    set_priority(20);

    static unsigned char listed[1 << 22];
    FILE *log = trace ? fopen(trace, "w") : NULL, *losses = list ? fopen(list, "r") : NULL;
    for (unsigned k; losses && fscanf(losses, "%u", &k) == 1;) listed[k % sizeof listed] = 1;
    struct direction to[2] = {{calloc(RING, sizeof(struct waiting)), 0, 0}, {calloc(RING, sizeof(struct waiting)), 0, 0}};
    double *starts = calloc(RING, sizeof *starts), busy = 0; /* when what waits is sent; until when the link is busy */
    unsigned first = 0, last = 0;
    uint64_t number = 0, sent = 0, lost = 0, dropped = 0, forwarded = 0;
    double begin = now(), late = 0, latest = 0;
    for (double t; (t = now()) < begin + seconds;) {
        double next = begin + seconds;
        for (int d = 0; d < 2; d++)
            for (; to[d].tail != to[d].head; to[d].tail++) {
                struct waiting *packet = &to[d].ring[to[d].tail % RING];
                if (packet->due > t) {
                    next = fmin(next, packet->due);
                    break;
                }
                late += t - packet->due, latest = fmax(latest, t - packet->due), forwarded++;
                if (write(tun[d], packet->data, packet->len) < 0) die("write");
                free(packet->data);
            }
        double wait = fmax(0, next - now());
        struct timespec timeout = {.tv_sec = wait, .tv_nsec = (wait - floor(wait)) * 1e9};
        struct pollfd p[2] = {{.fd = tun[ACKS], .events = POLLIN}, {.fd = tun[DATA], .events = POLLIN}};
        if (ppoll(p, 2, &timeout, NULL) <= 0) continue;
        for (int d = 0; d < 2; d++) {
            unsigned char data[1 << 16];
            int len;
            while ((p[d].revents & POLLIN) && (len = read(tun[!d], data, sizeof data)) > 0) {
                if (data[0] >> 4 != 4) continue; /* router solicitations of IPv6 */
                t = now();
                unsigned char *tcp = data + (data[0] & 15) * 4;
                int payload = len - (tcp - data) - (tcp[12] >> 4) * 4;
                double due = t + delay, from = fmax(busy, t);
                char fate = '.';
                while (first != last && starts[first % RING] <= t) first++;
                if (d == DATA && from > t && last - first >= queue) fate = 'Q', dropped++;
                if (d == DATA && fate == '.') {
                    if (from > t) starts[last++ % RING] = from;
                    fate = 'L', sent++;
                    for (int tries = 0; tries <= retransmissions && fate == 'L'; tries++) {
                        double end = from + len * 8 / rate;
                        int is_lost = list   ? payload > 0 && listed[number % sizeof listed]
                                      : !loss ? 0
                                      : burst ? meets_fade(from, end)
                                              : uniform() < loss;
                        if (!is_lost) fate = '.';
                        from = end;
                    }
                    busy = from;
                    due = busy + delay;
                    lost += fate == 'L';
                }
                number += d == DATA && payload > 0;
                if (log) {
                    uint32_t seq = ntohl(*(uint32_t *)(tcp + 4)), ack = ntohl(*(uint32_t *)(tcp + 8));
                    fprintf(log, "%.6f %c %u %d %u %c\n", t - begin, d ? '<' : '>', seq, payload, ack, fate);
                }
                if (fate != '.') continue;
                if (to[d].head - to[d].tail >= RING) return fprintf(stderr, "more packets than the ring holds\n"), 1;
                struct waiting *packet = &to[d].ring[to[d].head++ % RING];
                *packet = (struct waiting){.due = due, .len = len, .data = malloc(len)};
                memcpy(packet->data, data, len);
            }
        }
    }
    uint64_t delivered = shared->delivered;
    kill(sender, SIGUSR1);
    for (int k = 0; k < 1000 && !shared->told; k++) usleep(1000);
    printf("%s goodput=%.4f sent=%lu lost=%lu dropped=%lu late_us=%.0f latest_us=%.0f%s\n", cc,
           delivered * 8e-6 / seconds, sent, lost, dropped, late / (forwarded + 1) * 1e6, latest * 1e6, shared->counters);
    kill(sender, SIGKILL), kill(receiver, SIGKILL);
    waitpid(sender, NULL, 0), waitpid(receiver, NULL, 0);
    return 0;
}

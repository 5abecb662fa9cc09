// Sends random commands to a zoned namespace of QEMU's by passthrough, and prints each with its answer. Runs
// in the guest. The format of what is printed is that of `record`.
//
//   draw PCI SEED COUNT zones size capacity block extension area granularity areas
//
// PCI is the address of the controller; the rest describes its only namespace, in logical blocks, but for
// `block` and `extension` (bytes). After every command all zones are reported once more, so that the next
// command is drawn for their states and what changed is printed.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WRITE = 0x01, READ = 0x02, WRITE_ZEROES = 0x08, SEND = 0x79, RECEIVE = 0x7a, APPEND = 0x7d };
enum { CLOSE = 1, FINISH, OPEN, RESET, OFFLINE, DESCRIBE = 0x10, FLUSH = 0x11, ALL = 0x100, AREA = 0x200 };
enum { EMPTY = 1, IMPLICIT, EXPLICIT, CLOSED, FULL = 0xe };
enum { HAS_AREA = 8, MOST_ZONES = 64, MOST_BYTES = 256 << 10 };

static struct {
    uint64_t zones, size, capacity, block, extension, area, granularity, areas;
} layout;

static struct zone {
    unsigned state, attributes;
    uint64_t pointer; // from the start of the zone
} zones[MOST_ZONES], before[MOST_ZONES];

static const char *pci;
static int device = -1;
static uint64_t seed, allocated;
static unsigned tag;
static unsigned char *data;

static void fail(const char *what) {
    fprintf(stderr, "draw: %s: %s\n", what, strerror(errno));
    exit(1);
}

static uint64_t next(void) {
    uint64_t mixed = seed += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

static uint64_t below(uint64_t end) { return next() % end; }
static int in(unsigned percent) { return below(100) < percent; }

// The namespace's character device, which appears some time after the controller.
static void attach(void) {
    char path[512];
    for (int tries = 0; tries < 600; tries++, usleep(50000)) {
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/nvme", pci);
        DIR *outer = opendir(path);
        struct dirent *entry;
        char name[300] = "";
        while (outer && (entry = readdir(outer)))
            if (!strncmp(entry->d_name, "nvme", 4))
                snprintf(name, sizeof name, "%s", entry->d_name);
        if (outer)
            closedir(outer);
        if (!*name)
            continue;
        snprintf(path, sizeof path, "/dev/ng%sn1", name + 4);
        if ((device = open(path, O_RDWR)) >= 0)
            return;
    }
    fail("no namespace appears");
}

static void put(const char *path, const char *text) {
    int file = open(path, O_WRONLY);
    if (file < 0 || write(file, text, strlen(text)) < 0)
        fail(path);
    close(file);
}

static int submit(unsigned long kind, unsigned opcode, const uint32_t cdw[6], unsigned bytes, uint64_t *result) {
    struct nvme_passthru_cmd64 command = {
        .opcode = opcode,
        .nsid = kind == NVME_IOCTL_IO64_CMD || cdw[0] == 5,
        .addr = bytes ? (uintptr_t)data : 0,
        .data_len = bytes,
        .cdw10 = cdw[0],
        .cdw11 = cdw[1],
        .cdw12 = cdw[2],
        .cdw13 = cdw[3],
        .cdw14 = cdw[4],
        .cdw15 = cdw[5],
    };
    int status = ioctl(device, kind, &command);
    if (status < 0)
        fail("ioctl");
    *result = command.result;
    return status;
}

static uint64_t number(const unsigned char *at) {
    uint64_t value = 0;
    for (int byte = 7; byte >= 0; byte--)
        value = value << 8 | at[byte];
    return value;
}

// Reads all zones.
static void look(void) {
    uint64_t result;
    unsigned bytes = 64 * (layout.zones + 1);
    const uint32_t cdw[6] = {0, 0, bytes / 4 - 1};
    if (submit(NVME_IOCTL_IO64_CMD, RECEIVE, cdw, bytes, &result) || number(data) != layout.zones)
        fail("the report of all zones");
    memcpy(before, zones, sizeof zones);
    for (uint64_t zone = 0; zone < layout.zones; zone++) {
        const unsigned char *at = data + 64 * (zone + 1);
        uint64_t pointer = number(at + 24);
        if (number(at + 16) != zone * layout.size || number(at + 8) != layout.capacity)
            fail("a zone has another place or capacity");
        if (pointer != UINT64_MAX)
            pointer -= zone * layout.size;
        zones[zone] = (struct zone){at[1] >> 4, at[2], pointer};
    }
}

static void print_bytes(unsigned bytes) {
    unsigned used = bytes;
    while (used && !data[used - 1])
        used--;
    printf(" %u:", bytes);
    for (unsigned byte = 0; byte < used; byte++)
        printf("%02x", data[byte]);
}

static void print_changes(void) {
    look();
    for (uint64_t zone = 0; zone < layout.zones; zone++)
        if (memcmp(&zones[zone], &before[zone], sizeof *zones))
            printf(" %lu=%x,%x,%lx", zone, zones[zone].state, zones[zone].attributes, zones[zone].pointer);
    printf("\n");
}

static void identify(unsigned cns) {
    uint64_t result;
    const uint32_t cdw[6] = {cns, 2u << 24};
    memset(data, 0, 4096);
    if (submit(NVME_IOCTL_ADMIN64_CMD, 0x06, cdw, 4096, &result))
        fail("identify");
    printf("identify %x", cns);
    print_bytes(4096);
    printf("\n");
}

// Sends a command with so many bytes of data, and prints it with its answer.
static void run(unsigned opcode, uint64_t at, uint32_t cdw12, uint32_t cdw13, unsigned bytes) {
    const uint32_t cdw[6] = {at, at >> 32, cdw12, cdw13};
    printf("%x", opcode);
    for (int word = 0; word < 6; word++)
        printf(" %x", cdw[word]);
    if (opcode == SEND && (cdw13 & 0xff) == DESCRIBE) {
        tag++;
        for (unsigned byte = 0; byte < bytes; byte++)
            data[byte] = tag >> (byte & 1) * 8 ^ byte;
        printf(" %u.%u", bytes, tag);
    } else {
        memset(data, 0, bytes);
        printf(" %u", bytes);
    }
    uint64_t result = 0;
    int status = submit(NVME_IOCTL_IO64_CMD, opcode, cdw, bytes, &result);
    printf(" %x %lx", status, status ? 0 : result);
    if (opcode == RECEIVE && !status)
        print_bytes(bytes);
    print_changes();
    if (opcode == SEND && (cdw13 & (AREA | 0xff)) == (AREA | OPEN) && !status && !(cdw13 & ALL))
        allocated++;
}

// An orderly shutdown and a start of the controller. Of the empty zones one is open then and, if there are
// extensions, another one is described.
static void restart(void) {
    unsigned action = layout.extension ? DESCRIBE : OPEN;
    for (uint64_t zone = 0; zone < layout.zones && action; zone++) {
        if (zones[zone].state == EMPTY) {
            run(SEND, zone * layout.size, 0, action, action == DESCRIBE ? layout.extension : 0);
            action = action == DESCRIBE ? OPEN : 0;
        }
    }
    close(device);
    put("/sys/bus/pci/drivers/nvme/unbind", pci);
    put("/sys/bus/pci/drivers/nvme/bind", pci);
    attach();
    printf("restart");
    print_changes();
}

// How many zones have a random write area.
static uint64_t taken(void) {
    uint64_t count = 0;
    for (uint64_t zone = 0; zone < layout.zones; zone++)
        count += zones[zone].attributes & HAS_AREA ? 1 : 0;
    return count;
}

// A zone with a random write area, or else the one that is given.
static uint64_t with_area(uint64_t zone) {
    for (uint64_t step = 0; step < layout.zones; step++) {
        uint64_t other = (zone + step) % layout.zones;
        if (zones[other].attributes & HAS_AREA)
            return other;
    }
    return zone;
}

static uint64_t in_state(unsigned state) {
    uint64_t count = 0;
    for (uint64_t zone = 0; zone < layout.zones; zone++)
        count += zones[zone].state == state;
    return count;
}

// QEMU neither asks whether an open zone may have a random write area nor whether it has one, and counts
// wrongly from then on. Nothing after such a command would say anything of zones, so that none is sent.
static int miscounts(uint64_t zone) {
    if (!layout.area)
        return 0;
    unsigned state = zones[zone].state;
    uint64_t left = layout.areas ? layout.areas - taken() : layout.zones - allocated;
    return zones[zone].attributes & HAS_AREA || ((state == IMPLICIT || state == EXPLICIT) && !left);
}

// An address that is now and then wrong: elsewhere in the zone, or beyond the namespace.
static uint64_t slip(uint64_t start) {
    if (in(92))
        return start;
    if (in(25))
        return layout.zones * layout.size + below(3) * layout.size;
    return in(5) ? next() : start + below(layout.size + 2);
}

static uint64_t some_length(uint64_t left) {
    if (in(12) && left)
        return left;
    return in(4) ? left + 1 + below(2) : 1 + below(4);
}

static void draw_write(uint64_t zone, int is_append) {
    uint64_t start = zone * layout.size, pointer = zones[zone].pointer;
    if (pointer > layout.capacity)
        pointer = below(layout.size);
    uint64_t blocks = some_length(layout.capacity - (pointer < layout.capacity ? pointer : layout.capacity));
    if (zones[zone].attributes & HAS_AREA && !is_append) {
        pointer += below(2 * layout.area + 1);
        blocks = 1 + below(in(80) ? layout.granularity + 1 : 2 * layout.area);
    } else if (in(8)) {
        pointer = below(layout.size);
    }
    unsigned opcode = is_append ? APPEND : in(80) ? WRITE : WRITE_ZEROES;
    uint64_t at = slip(is_append ? start : start + pointer);
    run(opcode, at, blocks - 1, 0, opcode == WRITE_ZEROES ? 0 : blocks * layout.block);
}

static void draw_read(void) {
    uint64_t blocks = 1 + below(in(60) ? 4 : 2 * layout.size);
    run(READ, slip(below(layout.zones * layout.size)), blocks - 1, 0, blocks * layout.block);
}

static void draw_send(uint64_t zone) {
    static const unsigned often[] = {CLOSE, CLOSE, CLOSE, FINISH, OPEN, OPEN, OPEN, OPEN, RESET, RESET, OFFLINE};
    unsigned action = often[below(sizeof often / sizeof *often)];
    if (in(layout.area ? 40 : 4)) {
        action = OPEN | AREA;
        // Few zones stay full, which have no areas.
        if (layout.area && zones[zone].state == FULL && in(85))
            action = RESET;
    }
    if (in(2))
        action = below(256);
    if ((action & 0xff) == DESCRIBE || (action & 0xff) == FLUSH)
        return;
    if (action & AREA && in(4) && !in_state(CLOSED)) {
        run(SEND, 0, 0, action | ALL, 0);
        return;
    }
    if (!(action & AREA) && in(action == RESET || action == FINISH ? 2 : 7)) {
        run(SEND, slip(zone * layout.size), 0, action | ALL, 0);
        return;
    }
    uint64_t at = slip(zone * layout.size);
    if (action & AREA && at < layout.zones * layout.size && miscounts(at / layout.size))
        return;
    run(SEND, at, 0, action, 0);
}

static void draw_flush(uint64_t zone) {
    if (in(60))
        zone = with_area(zone);
    uint64_t pointer = zones[zone].pointer, at = below(layout.size), action = FLUSH;
    if (zones[zone].attributes & HAS_AREA && in(90)) {
        uint64_t step = layout.granularity;
        at = pointer + (in(70) ? (1 + below(layout.area / step)) * step - 1 : below(layout.area + 2));
        at -= in(3) && at;
        // The first block behind the area.
        if (in(8) && pointer + layout.area < layout.capacity)
            at = pointer + layout.area;
    }
    if (in(2))
        action |= ALL;
    at += slip(zone * layout.size);
    // QEMU moves the write pointer beyond the capacity.
    uint64_t block = at % layout.size, other = at / layout.size;
    if (other < layout.zones && zones[other].attributes & HAS_AREA && block >= layout.capacity &&
        block <= zones[other].pointer + layout.area)
        return;
    run(SEND, at, 0, action, 0);
}

static void draw_report(uint64_t zone) {
    unsigned entry = 64, action = in(layout.extension ? 40 : 4), option = in(30) ? 0 : below(10);
    if (in(2))
        action = below(256);
    if (in(2))
        option = below(256);
    if (action)
        entry += layout.extension;
    unsigned bytes = 64 + entry * (in(50) ? layout.zones : below(layout.zones + 1));
    if (in(15))
        bytes += 4 * below(40);
    if (in(4))
        bytes = 4 + 4 * below(16);
    uint64_t at = in(40) ? 0 : slip(zone * layout.size + (in(30) ? below(layout.size) : 0));
    run(RECEIVE, at, bytes / 4 - 1, action | option << 8 | (unsigned)in(40) << 16, bytes);
}

int main(int count, char **words) {
    if (count != 12) {
        fprintf(stderr, "draw: 11 arguments\n");
        return 2;
    }
    uint64_t *fields = &layout.zones, commands = strtoull(words[3], 0, 0);
    pci = words[1];
    seed = strtoull(words[2], 0, 0);
    for (int field = 0; field < 8; field++)
        fields[field] = strtoull(words[4 + field], 0, 0);
    if (layout.zones > MOST_ZONES || posix_memalign((void **)&data, 4096, MOST_BYTES))
        fail("memory");
    attach();
    identify(5);
    identify(6);
    look();
    for (uint64_t step = 0; step < commands; step++) {
        uint64_t zone = below(layout.zones);
        // Half of the commands go to few zones, which so get far.
        if (in(50))
            zone = below(layout.zones / 3 + 1);
        if (in(30))
            zone = with_area(zone);
        // Shut down now and then, but not with random write areas: QEMU keeps them over a start.
        if (step % 400 == 399) {
            if (taken())
                run(SEND, 0, 0, RESET | ALL, 0);
            restart();
        }
        switch (below(22)) {
        case 0 ... 5: draw_write(zone, 0); break;
        case 6 ... 8: draw_write(zone, 1); break;
        case 9: draw_read(); break;
        case 10 ... 14: draw_send(zone); break;
        case 15:
            if (layout.extension || in(20))
                run(SEND, slip(zone * layout.size), 0, DESCRIBE | (in(4) ? ALL : 0), layout.extension);
            break;
        case 16 ... 18:
            if (layout.area || in(5))
                draw_flush(zone);
            break;
        default: draw_report(zone);
        }
    }
    return 0;
}
